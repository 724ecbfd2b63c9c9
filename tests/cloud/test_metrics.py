"""What the cloud shows of a run that has just begun, and of one with trouble; the rest is seen in tests/metrics."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloud.coordinator import leave
from cloud.metrics import DESCRIBED, CloudMetrics
from cloud.service import CloudService
from cloud.state import Change
from cloud.store import Store
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance
from sgfusion.wire.metrics import COMMON
from sgfusion.wire.status import Refusals
from tests.cloud.clouds import Cluster, a_cloud
from tests.cloud.coordinated import Run
from tests.cloud.values import NAMES, a_point, a_round, a_run
from tests.cluster.keys import run_async
from tests.edge.zones import until
from tests.metrics.shown import shown


def measured(cluster: Cluster, folder: Path) -> CloudMetrics:
    service: CloudService = cluster.service
    service.measures = metrics = CloudMetrics(service, refusals=cluster.refusals, keys=(), state=folder)
    return metrics


def test_before_anybody_has_come(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            metrics = measured(cluster, tmp_path)
            found = shown(metrics)
            assert found["sgfusion_cloud_zones", "state=expected"] == 5
            assert found["sgfusion_cloud_zone_state", "state=expected", "zone=ash"] == 1
            assert found["sgfusion_cloud_plan_version",] == 0
            assert found["sgfusion_cloud_rounds",] == 20
            # What nobody has said is not there: a loss of 0 would be a good one.
            assert not [key for key in found if key[0].endswith(("_loss", "_score", "_epsilon"))]
            assert not [
                key for key in found if key[0] == "sgfusion_certificate_expiry_timestamp_seconds"
            ]  # it has none
            names = {family.name for family in metrics.registry.collect()}
            assert {each.name.removesuffix("_total") for each in (*COMMON, *DESCRIBED)} <= names

    run_async(work())


def test_reports_are_seen_zone_by_zone(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run(zones=("ash", "birch"))) as cluster:
            metrics = measured(cluster, tmp_path)
            for zone, spent in (("ash", 1.5), ("birch", 0.0)):
                await cluster.enrol(zone)
                await cluster.submit(zone, epsilon=spent)
            await cluster.status_when(lambda status: status.plan == 1)
            here = Attendance(5, ("u1", "u2", "u3"), {"u3": "late", "u4": "gone", "u5": "gone"})
            await cluster.report(
                "ash",
                round=2,
                rounds=(a_round(1, drawn=(1,)), a_round(2, drawn=(1,), loss=0.25)),
                evaluations=(a_point(0, best=True), a_point(2, total=36.0)),
                attendance=here,
                overdue="waits for u3",
                plan=1,
            )
            await cluster.report("birch", ZoneState.DIVERGED, diverged="no number")
            found = shown(metrics)
            for expected in (
                ("zone_round", "zone=ash", 2),
                ("zone_loss", "zone=ash", 0.25),
                ("zone_score", "split=validation", "zone=ash", 3.0),
                ("zone_score", "split=test", "zone=ash", 3.0),
                ("zone_best_score", "split=validation", "zone=ash", 2**0.5),
                ("zone_devices", "state=attending", "zone=ash", 2),
                ("zone_devices", "state=late", "zone=ash", 1),
                ("zone_devices", "state=gone", "zone=ash", 2),
                ("zone_devices_expected", "zone=ash", 5),
                ("zone_overdue", "zone=ash", 1),
                ("zone_overdue", "zone=birch", 0),
                ("zone_plan_version", "zone=ash", 1),
                ("zone_epsilon", "zone=ash", 1.5),
                ("zone_epsilon", "zone=birch", 0),
                ("zone_state", "state=diverged", "zone=birch", 1),
                ("zone_lost", "zone=birch", 0),
                ("zones", "state=diverged", 1),
                ("rounds_reported_total", 2),
                ("phase_duration_seconds_count", "phase=fit", 1),
                ("phase_duration_seconds_count", "phase=report", 2),
                ("run_info", "metric=RMSE", "name=woods", "sampler=hrg", "task=linear", "unit=bpm", 1),
            ):
                *key, value = expected
                assert found[f"sgfusion_cloud_{key[0]}", *map(str, key[1:])] == value, expected
            assert ("sgfusion_cloud_zone_loss", "zone=birch") not in found
            assert found["sgfusion_cloud_phase_duration_seconds_count", "phase=store"] >= 4

    run_async(work())


def test_who_was_lost_is_told_from_who_left_by_its_own_word(planned: Run, tmp_path: Path) -> None:
    """Also once it counts as left, and over a restart of the cloud; of a zone that has ended nobody minds."""
    ash, birch, *_, elm, fir = NAMES
    planned.state = replace(planned.state, run=a_run("deadlines.zones=60"))
    planned.report(fir, ZoneState.DONE)
    planned.take(leave(planned.state, elm, planned.now))
    planned.pass_time(31, alive=(ash,))
    assert standings(planned, tmp_path) == [("waiting", 0), ("lost", 1), ("lost", 1), ("left", 0), ("done", 0)]
    planned.pass_time(61, alive=(ash,))
    assert standings(planned, tmp_path) == [("waiting", 0), ("left", 1), ("left", 1), ("left", 0), ("left", 0)]
    planned.take(leave(planned.state, birch, planned.now))
    assert planned.texts[-1] == "zone birch left"
    planned.enrol("cedar")
    planned.pass_time(1, alive=(ash,))
    assert standings(planned, tmp_path) == [("waiting", 0), ("left", 0), ("waiting", 0), ("left", 0), ("left", 0)]


def standings(run: Run, folder: Path) -> list[tuple[str, float]]:
    """The state that each zone is in by the metrics, and whether it is lost; of a cloud that has just come back."""
    with Store(folder) as store:
        store.load(run.state.run, 0.0)
        store.save([Change(run.state, zones=tuple(run.state.zones.values()))])
    with Store(folder) as store:
        state = store.load(run.state.run, 0.0)
        service = CloudService(store, state, refusals=Refusals(), clock=lambda: run.now)
        found = shown(CloudMetrics(service, refusals=Refusals(), keys=(), state=folder))
        service.close()
    states = {
        key[2].removeprefix("zone="): key[1].removeprefix("state=")
        for key, value in found.items()
        if key[0] == "sgfusion_cloud_zone_state" and value
    }
    return [(states[zone], found["sgfusion_cloud_zone_lost", f"zone={zone}"]) for zone in NAMES]


def test_a_run_beyond_its_deadline(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        now = [299.0]
        service = CloudService(store, store.load(a_run(), 0.0), refusals=Refusals(), clock=lambda: now[0])
        metrics = CloudMetrics(service, refusals=Refusals(), keys=(), state=tmp_path)
        assert shown(metrics)["sgfusion_cloud_overdue",] == 0
        now[0] = 300.0
        assert shown(metrics)["sgfusion_cloud_overdue",] == 1
        service.close()


def test_when_the_last_write_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("cloud.store.time", SimpleNamespace(time=lambda: now[0]))

    def seen(store: Store) -> float:
        """At once: nothing has been decided yet, and nobody has come."""
        service = CloudService(store, store.load(a_run(), 0.0), refusals=Refusals(), clock=lambda: 0.0)
        found = shown(CloudMetrics(service, refusals=Refusals(), keys=(), state=tmp_path))
        service.close()
        return found["sgfusion_cloud_store_timestamp_seconds",]

    for started in (1000.0, 2000.0):
        now[0] = started
        with Store(tmp_path) as store:
            assert seen(store) == started

    async def work() -> None:
        now[0] = 3000.0
        async with a_cloud(tmp_path, a_run()) as cluster:
            metrics = measured(cluster, tmp_path)
            now[0] = 4000.0
            await cluster.enrol("ash")
            now[0] = 5000.0
            assert shown(metrics)["sgfusion_cloud_store_timestamp_seconds",] == 4000

    run_async(work())


def test_changes_that_wait_for_the_disk(tmp_path: Path) -> None:
    async def work() -> None:
        with Store(tmp_path) as store:
            service = CloudService(store, store.load(a_run(), 0.0), refusals=Refusals(), clock=lambda: 1.0)
            metrics = CloudMetrics(service, refusals=Refusals(), keys=(), state=tmp_path)
            calls = [asyncio.create_task(service.enrol(zone, f"{zone}:1")) for zone in ("ash", "birch", "cedar")]
            await asyncio.sleep(0)
            assert shown(metrics)["sgfusion_cloud_journal_queue",] == 3  # nobody writes yet
            working = asyncio.create_task(service.run())
            await asyncio.gather(*calls)
            await until(lambda: shown(metrics)["sgfusion_cloud_journal_queue",] == 0)
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
            service.close()

    run_async(work())
