"""What a host of devices shows: attendance by zone, answers by outcome, what waits for a thread."""

import asyncio
from contextlib import suppress
from pathlib import Path

from device.attendance import AddressBook, attend
from device.metrics import DESCRIBED, DeviceMetrics
from sgfusion.wire.metrics import COMMON
from tests.cluster.keys import run_async
from tests.device.test_virtual import a_device, question
from tests.edge.zones import until
from tests.metrics.shown import shown


def test_answers_by_outcome_and_work_that_waits(tmp_path: Path) -> None:
    async def work() -> None:
        device, compute, _ = a_device(tmp_path)
        compute.measures = metrics = DeviceMetrics(["ash"], compute, keys=(), state=tmp_path / "not" / "there")
        before = shown(metrics)
        assert {value for key, value in before.items() if key[0] == "sgfusion_device_answers_total"} == {0}
        assert before["sgfusion_device_answers_total", "kind=initial", "outcome=failed"] == 0  # the first one is a rise
        compute.free.clear()
        asked = [asyncio.create_task(device.answer(question(device, number))) for number in (1.0, 2.0, 3.0)]
        while compute.calls == 0:
            await asyncio.sleep(0.01)
        found = shown(metrics)
        assert found["sgfusion_device_computations", "state=running"] == 1  # there is one thread
        assert found["sgfusion_device_computations", "state=waiting"] == 2
        compute.free.set()
        await asyncio.gather(*asked)
        await device.answer(question(device, 3.0))
        await device.answer(question(device, kind="evaluation"))
        compute.failure = ValueError("secret")
        await device.answer(question(device, 4.0))
        found = shown(metrics)
        for kind, outcome, count in (
            ("direction", "computed", 3),
            ("direction", "remembered", 1),
            ("evaluation", "computed", 1),
            ("direction", "failed", 1),
        ):
            assert found["sgfusion_device_answers_total", f"kind={kind}", f"outcome={outcome}"] == count
        assert found["sgfusion_device_phase_duration_seconds_count", "phase=direction"] == 3
        assert found["sgfusion_device_phase_duration_seconds_count", "phase=evaluation"] == 1
        assert found["sgfusion_device_phase_duration_seconds_count", "phase=queueing"] == 5
        assert found["sgfusion_device_computations", "state=waiting"] == 0
        assert found["sgfusion_device_computations", "state=running"] == 0
        assert found["sgfusion_state_size_bytes",] > 0  # of the file system where its folder would be
        names = {family.name for family in metrics.registry.collect()}
        assert {each.name.removesuffix("_total") for each in (*COMMON, *DESCRIBED)} <= names

    run_async(work())


def test_attendance_by_zone(tmp_path: Path) -> None:
    async def work() -> None:
        _, compute, _ = a_device(tmp_path)
        metrics = DeviceMetrics(["ash", "ash", "birch"], compute, keys=(), state=tmp_path)
        metrics.attends("ash")
        metrics.attends("ash")
        metrics.left("ash")
        metrics.refused("ash", "ContractError")
        found = shown(metrics)
        assert [found["sgfusion_device_hosted", f"zone={zone}"] for zone in ("ash", "birch")] == [2, 1]
        assert [found["sgfusion_device_attending", f"zone={zone}"] for zone in ("ash", "birch")] == [1, 0]
        assert found["sgfusion_retries_total", "hop=edge", "zone=birch"] == 0
        refused = {key[1:]: value for key, value in found.items() if key[0] == "sgfusion_device_refusals_total"}
        assert refused.pop(("reason=ContractError", "zone=ash")) == 1
        assert set(refused.values()) == {0}  # there before the first: Prometheus sees the rise
        assert ("reason=UnprovenError", "zone=birch") in refused
        assert not [key for key in found if key[0] == "sgfusion_refusals_total"]  # it serves nothing

    run_async(work())


def test_an_edge_that_is_away_is_tried_again_and_counted(tmp_path: Path) -> None:
    async def work() -> None:
        device, compute, _ = a_device(tmp_path)
        compute.measures = metrics = DeviceMetrics(["ash", "birch"], compute, keys=(), state=tmp_path)
        task = asyncio.create_task(attend(device, AddressBook({"ash": "127.0.0.1:1"}), None))  # nobody listens there
        await until(lambda: shown(metrics)["sgfusion_retries_total", "hop=edge", "zone=ash"] >= 2)
        assert shown(metrics)["sgfusion_retries_total", "hop=edge", "zone=birch"] == 0
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run_async(work())
