"""What an edge shows of itself when not all is well; what a healthy one shows is seen by Prometheus (tests/metrics)."""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from edge.checkpoints import Checkpoints
from edge.cloud_link import CloudLink
from edge.memory import Memory, Roster
from edge.metrics import DESCRIBED, EdgeMetrics
from edge.training import Training
from edge.zone import Zone
from sgfusion.plan import Peer, ZoneState
from sgfusion.wire.identity import Identity
from sgfusion.wire.metrics import COMMON
from tests.cloud.values import a_round
from tests.cluster.keys import CLOUD, dialled, run_async
from tests.edge.test_checkpoints import progress
from tests.edge.test_devices import Link, begun, weights
from tests.edge.zones import HISTOGRAM, MODEL, RUN, keys_of, until
from tests.metrics.shown import shown


def of_ash(name: str, *labels: str) -> tuple[str, ...]:
    return (f"sgfusion_edge_{name}", *sorted([*labels, "zone=ash"]))


def measured(folder: Path, **settings: float) -> tuple[Zone, EdgeMetrics]:
    zone = Zone("ash", Memory(folder), keys=None, expected=4)
    metrics = EdgeMetrics(zone, keys=(keys_of(Identity("edge", "ash")),), state=folder)
    zone.measures = metrics
    if settings:
        zone.take_run(RUN.format(**settings), 0)
    return zone, metrics


def test_before_its_cloud_has_answered(tmp_path: Path) -> None:
    async def work() -> None:
        _, metrics = measured(tmp_path)
        found = shown(metrics)
        assert found[of_ash("zone_state", "state=gathering")] == 1
        assert found[of_ash("devices_expected")] == 4
        assert found[of_ash("rounds_total")] == 0
        unknown = {of_ash(name)[0] for name in ("devices", "checkpoint_timestamp_seconds")}
        assert not [key for key in found if key[0] in unknown]
        metrics.look()
        names = {family.name for family in metrics.registry.collect()}  # all are told of, also those without a value
        assert {each.name.removesuffix("_total") for each in (*COMMON, *DESCRIBED)} <= names

    run_async(work())


def test_devices_are_here_or_late_or_gone(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=0.5, deadline=0.05)
        a, b, c, d = (Link(zone.devices, name) for name in "abcd")
        question = await begun(zone.devices.direction(weights(1), "ash"))
        for link in (a, b):
            link.answer(1.0)
        await question  # without c and d, after the deadline
        d.leave()
        found = shown(metrics)
        assert [found[of_ash("devices", f"state={state}")] for state in ("attending", "late", "gone")] == [2, 1, 1]
        assert found[of_ash("devices_needed")] == 2
        c.answer(1.0, c.asked[0].id)  # late as it is
        assert shown(metrics)[of_ash("devices", "state=late")] == 0

    run_async(work())


def test_questions_wait_for_their_turn_and_devices_beyond_the_deadline(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=1.0, deadline=0.05)
        link = Link(zone.devices, "a")
        questions = [await begun(zone.devices.direction(weights(number), "ash")) for number in range(10)]
        found = shown(metrics)
        assert (found[of_ash("questions", "state=asked")], found[of_ash("questions", "state=waiting")]) == (8, 2)
        assert found[of_ash("overdue")] == 0
        while not zone.devices.waiting_for():
            await asyncio.sleep(0.01)
        assert shown(metrics)[of_ash("overdue")] == 1
        while link.open:
            link.answer(1.0)
        await asyncio.gather(*questions)
        found = shown(metrics)
        assert (found[of_ash("questions", "state=asked")], found[of_ash("overdue")]) == (0, 0)

    run_async(work())


def test_rounds_are_counted_with_who_was_left_out_and_whether_they_are_on_disk(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=1.0, deadline=30.0)
        zone.state = ZoneState.TRAINING
        zone.last, zone.round = (7, weights(0)), 5
        for number in (6, 7):
            metrics.finished(a_round(number))
        zone.publish([{"round": {}}, {"round": {}}, {"evaluation": {}}])
        found = shown(metrics)
        assert (found[of_ash("round")], found[of_ash("rounds_unsaved")], found[of_ash("rounds_total")]) == (7, 2, 2)
        assert (found[of_ash("peers_drawn_total")], found[of_ash("peers_left_out_total")]) == (4, 2)
        assert found[of_ash("devices_left_out_total")] == 2
        assert found[of_ash("records_untold")] == 3
        assert found[of_ash("zone_state", "state=training")] == 1
        assert found[of_ash("zone_state", "state=gathering")] == 0

    run_async(work())


NOBODY = "127.0.0.1:1"
"""Where nobody listens."""


def retries(metrics: EdgeMetrics) -> dict[str, float]:
    found = shown(metrics)
    return {hop: found["sgfusion_retries_total", f"hop={hop}", "zone=ash"] for hop in ("cloud", "peer", "device")}


async def tried_again(metrics: EdgeMetrics, work: Coroutine[Any, Any, Any]) -> set[str]:
    """Whom the work tries again, and again, as nobody answers it."""
    assert set(retries(metrics).values()) == {0}  # there before the first: Prometheus sees the rise
    task = asyncio.create_task(work)
    await until(lambda: task.done() or max(retries(metrics).values()) >= 2)
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return {hop for hop, count in retries(metrics).items() if count}


def test_a_cloud_that_is_away_is_tried_again_and_counted(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path)
        async with dialled(NOBODY, me=Identity("edge", "ash"), server=CLOUD) as channel:
            assert await tried_again(metrics, CloudLink(zone, channel, NOBODY).run()) == {"cloud"}

    run_async(work())


def test_a_peer_that_is_away_is_tried_again_and_counted(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=1.0, deadline=30.0)
        zone.peers.learn([Peer(1, "birch", NOBODY, ZoneState.TRAINING)])
        question = zone.peers.direction(1, weights(0), round=1, contract=zone.contract, fingerprint=MODEL.fingerprint)
        assert await tried_again(metrics, question) == {"peer"}
        await zone.peers.close()

    run_async(work())


def test_devices_that_do_not_answer_are_asked_again_and_counted(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=1.0, deadline=0.05)
        zone.roster = Roster(0, MODEL, "00" * 32, {"u1": HISTOGRAM}, {"u1": 0.0})
        assert await tried_again(metrics, Training(zone).run()) == {"device"}

    run_async(work())


def test_a_checkpoint_that_is_written_is_a_phase(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=1.0, deadline=30.0)
        training = Training(zone)
        training._save(progress(1))
        await training._flush()
        assert Checkpoints(zone.memory.checkpoints).written() > 0
        assert shown(metrics)[of_ash("phase_duration_seconds_count", "phase=checkpoint")] == 1

    run_async(work())


def test_phases_and_whole_rounds_are_apart(tmp_path: Path) -> None:
    async def work() -> None:
        _, metrics = measured(tmp_path)
        with metrics.phase("round"), metrics.phase("own"):
            pass
        found = shown(metrics)
        assert found[of_ash("round_duration_seconds_count")] == 1
        assert found[of_ash("phase_duration_seconds_count", "phase=own")] == 1
        assert of_ash("phase_duration_seconds_count", "phase=round") not in found

    run_async(work())


def test_a_checkpoint_is_as_old_as_its_file(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.written() == 0
    checkpoints.save(progress(1))
    os.utime(tmp_path / "round-00000001.json", (1000, 1000))
    assert checkpoints.written() == 1000
    checkpoints.save(progress(2))
    assert checkpoints.written() > 1000


def test_the_time_of_a_checkpoint_is_not_that_of_a_report(tmp_path: Path) -> None:
    async def work() -> None:
        _, metrics = measured(tmp_path)
        metrics.saved(123.0)
        metrics.told()
        assert shown(metrics)[of_ash("checkpoint_timestamp_seconds")] == 123

    run_async(work())


def test_a_checkpoint_is_as_old_as_it_is_after_a_restart_too(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=1.0, deadline=30.0)
        Checkpoints(zone.memory.checkpoints).save(progress(1))
        os.utime(zone.memory.checkpoints / "round-00000001.json", (1000, 1000))
        zone.roster = Roster(0, MODEL, "00" * 32, {"u1": HISTOGRAM}, {"u1": 0.0})
        life = asyncio.create_task(Training(zone).run())
        await until(lambda: zone.state is ZoneState.WAITING)  # for a plan: it has seen what its disk has
        assert shown(metrics)[of_ash("checkpoint_timestamp_seconds")] == 1000
        life.cancel()
        with suppress(asyncio.CancelledError):
            await life

    run_async(work())


def test_peers_that_are_not_waited_for(tmp_path: Path) -> None:
    async def work() -> None:
        zone, metrics = measured(tmp_path, quorum=1.0, deadline=30.0)
        assert shown(metrics)[of_ash("peers_unreliable")] == 0
        zone.peers.unreliable |= {3, 5}
        assert shown(metrics)[of_ash("peers_unreliable")] == 2

    run_async(work())


def test_when_its_certificates_end(tmp_path: Path) -> None:
    async def work() -> None:
        _, metrics = measured(tmp_path)
        found, before = shown(metrics), shown(metrics)[of_ash("reported_timestamp_seconds")]
        days = {
            which: (found["sgfusion_certificate_expiry_timestamp_seconds", f"certificate={which}"] - before) / 86_400
            for which in ("own", "ca")
        }
        assert 8 < days["own"] <= 9
        assert 98 < days["ca"] <= 99
        metrics.told()
        assert shown(metrics)[of_ash("reported_timestamp_seconds")] > before

    run_async(work())
