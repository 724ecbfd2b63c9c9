"""The cloud behind its RPCs, over real TLS."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from cloud import service as module
from cloud.planner import Tree, draws_of, make_tree
from cloud.service import STATUS_EVERY
from cloud.state import Fit
from cloud.store import Store
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import ContractError, IdentityError, NotEnrolledError, StoreError, UnavailableError
from sgfusion.plan import ZonePlan, ZoneState
from sgfusion.reports import Attendance
from sgfusion.runfile import RunFile, parse_run_file
from sgfusion.waiting import Waiting
from sgfusion.wire.cloud_rpc import Submission
from sgfusion.zone_tree import fit_zone_tree
from tests.cloud.clouds import a_cloud
from tests.cloud.values import MASSES, MODEL, NAMES, RMSE, THETA, a_point, a_report, a_round, a_run
from tests.cluster.keys import run_async

NUMBERS = {name: number for number, name in enumerate(NAMES)}


def the_tree(run: RunFile, zones: tuple[str, ...] = NAMES) -> ZoneTree:
    return fit_zone_tree(np.array([MASSES[zone] for zone in zones]), zones, run)


def test_edges_are_not_told_where_zones_lie(tmp_path: Path) -> None:
    """An edge of before knows no such key and would refuse the run; and the map is for who looks at the page."""

    async def work() -> None:
        async with a_cloud(tmp_path, a_run("zones.places={ash=[[[52.2, 21.0]]]}")) as cluster:
            _, text, _ = await cluster.enrol("ash")
            assert "places" not in text
            assert parse_run_file(text) == a_run()

    run_async(work())


def test_from_enrolment_to_a_plan(tmp_path: Path) -> None:
    run = a_run()

    async def work() -> None:
        async with a_cloud(tmp_path, run) as cluster:
            number, text, lease = await cluster.enrol("cedar")
            assert (number, parse_run_file(text), lease) == (2, run, 30.0)
            assert not await cluster.submit("cedar")
            async with cluster.plans("cedar") as plans:
                coming = asyncio.create_task(anext(plans))
                await cluster.arrive("ash", "birch", "elm")
                await asyncio.sleep(0.1)
                assert not coming.done()
                await cluster.arrive("fir")
                plan = await coming
            assert (plan.version, plan.number, plan.reason) == (1, 2, "all 5 zones have reported")
            text = the_tree(run).to_json()
            assert plan.draws == draws_of(text, run, NUMBERS)["cedar"]
            assert [(peer.number, peer.zone, peer.address) for peer in plan.directory] == [
                (number, zone, f"{zone}:1") for number, zone in enumerate(NAMES)
            ]
            tree, _ = await (await cluster.operator()).records()
            assert tree == text

    run_async(work())


@pytest.mark.parametrize(
    ("override", "kind"),
    [("sampler.kind=hrg", "each"), ("sampler={kind='top-k', k=2}", "fixed"), ("sampler={kind='chi', chi=2}", "chosen")],
)
def test_draws_are_what_the_sampler_says(tmp_path: Path, override: str, kind: str) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run(override)) as cluster:
            await cluster.arrive(*NAMES)
            async with cluster.plans("fir") as plans:
                assert (await anext(plans)).draws.kind == kind

    run_async(work())


def test_neighbours_are_the_run_files(tmp_path: Path) -> None:
    adjacent = "zones.adjacent={ash=['birch', 'fir'], birch=['ash'], fir=['ash']}"

    async def work() -> None:
        async with a_cloud(tmp_path, a_run("sampler.kind=neighbours", adjacent)) as cluster:
            await cluster.arrive(*NAMES)
            drawn = []
            for zone in NAMES:
                async with cluster.plans(zone) as plans:
                    drawn.append((await anext(plans)).draws.zones)
            assert drawn == [(1, 4), (0,), (), (), (0,)]

    run_async(work())


def test_a_plan_that_cannot_be_drawn_by_is_no_plan_and_says_why(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run("sampler.kind=neighbours")) as cluster:
            await cluster.arrive(*NAMES)
            status = await cluster.status_when(lambda status: bool(status.overdue))
            assert status.plan == 0
            assert "no plan 1 (all 5 zones have reported): " in status.overdue
            assert "zones.adjacent" in status.overdue

    run_async(work())


def test_a_given_dendrogram_is_taken_as_it_is(tmp_path: Path) -> None:
    given = tmp_path / "dendrogram.json"
    text = the_tree(a_run("hrg.metric=manhattan")).to_json()
    given.write_text(text)

    async def work() -> None:
        async with a_cloud(tmp_path / "state", a_run(f"hrg.from={given}")) as cluster:
            await cluster.arrive(*NAMES)
            await cluster.status_when(lambda status: status.plan == 1)
            assert (await (await cluster.operator()).records())[0] == text
            await cluster.arrive("gum")
            why = "give the dendrogram of this run's zones"
            status = await cluster.status_when(lambda status: any(why in event.text for event in status.events))
            assert status.plan == 1
            assert not status.overdue  # the zones train on by the plan that they have

    run_async(work())


def test_changes_of_the_directory_are_pushed_without_a_new_version(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run(), lease=0.6) as cluster:
            await cluster.arrive(*NAMES)
            await cluster.status_when(lambda status: status.plan == 1)
            async with cluster.plans("ash") as plans:
                await anext(plans)
                await cluster.enrol("birch", port=2)
                plan = await _until(plans, lambda plan: plan.directory[1].address == "birch:2")
                assert plan.version == 1
                await cluster.report("birch", ZoneState.DONE, 20)
                plan = await _until(plans, lambda plan: plan.directory[1].state is ZoneState.DONE)
                for _ in range(8):
                    await cluster.report("ash")
                    await asyncio.sleep(0.1)
                plan = await _until(plans, lambda plan: plan.directory[4].state is ZoneState.LOST)
                assert plan.version == 1
                assert plan.directory[0].state is ZoneState.TRAINING

    run_async(work())


def test_joining_leaving_and_drifting_push_new_versions(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.arrive(*NAMES)
            async with cluster.plans("ash") as plans:
                assert (await anext(plans)).version == 1
                await cluster.arrive("gum")
                joined = await _until(plans, lambda plan: plan.version == 2)
                assert joined.reason == "zone gum joined"
                assert (joined.directory[5].number, joined.directory[5].zone) == (5, "gum")
                await (await cluster.edge("birch")).leave("birch")
                assert (await _until(plans, lambda plan: plan.version == 3)).reason == "zone birch left"
                assert await cluster.submit("ash", (0.5, 0.3, 0.1, 0.1))
                drifted = await _until(plans, lambda plan: plan.version == 4)
                assert drifted.reason == "zone ash drifted by 0.2828"
                assert {zone for branch in drifted.draws.branches for zone in branch.zones} == {2, 3, 4, 5}

    run_async(work())


async def _until(plans: AsyncGenerator[ZonePlan], holds: Callable[[ZonePlan], bool]) -> ZonePlan:
    async for plan in plans:
        if holds(plan):
            return plan
    raise AssertionError("the watch has ended")


def test_a_fit_blocks_nobody_and_what_comes_meanwhile_gives_one_more(tmp_path: Path) -> None:
    may_end, fits = threading.Event(), []

    def slow(fit: Fit, run: RunFile, numbers: Mapping[str, int]) -> Tree:
        fits.append(fit)
        assert may_end.wait(20)
        return make_tree(fit, run, numbers)

    async def work() -> None:
        async with a_cloud(tmp_path, a_run(), tree=slow) as cluster:
            await cluster.arrive(*NAMES)
            await cluster.arrive("gum")
            await (await cluster.edge("ash")).leave("ash")
            begun = time.monotonic()
            status = await (await cluster.operator()).status()
            assert time.monotonic() - begun < 5
            assert (status.plan, len(fits)) == (0, 1)
            may_end.set()
            status = await cluster.status_when(lambda status: status.plan == 2)
            assert status.reason == "zone gum joined, zone ash left"
            assert [fit.zones for fit in fits] == [NAMES, (*NAMES[1:], "gum")]

    run_async(work())


def test_a_failing_fit_does_not_end_the_cloud(tmp_path: Path) -> None:
    def broken(fit: Fit, _run: RunFile, _numbers: Mapping[str, int]) -> Tree:
        if len(fit.zones) == 5:
            raise ZeroDivisionError
        return make_tree(fit, _run, _numbers)

    async def work() -> None:
        async with a_cloud(tmp_path, a_run(), tree=broken) as cluster:
            await cluster.arrive(*NAMES)
            status = await cluster.status_when(lambda status: bool(status.overdue))
            assert status.overdue == "no plan 1 (all 5 zones have reported): ZeroDivisionError()"
            await cluster.arrive("gum")
            assert not (await cluster.status_when(lambda status: status.plan == 1)).overdue

    run_async(work())


def test_status(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            status = await (await cluster.operator()).status()
            assert (status.run, status.rounds, status.plan, status.metric) == ("woods", 20, 0, None)
            assert [(zone.zone, zone.state) for zone in status.zones] == [(zone, ZoneState.EXPECTED) for zone in NAMES]
            await cluster.arrive(*NAMES)
            await cluster.status_when(lambda status: status.plan == 1)
            acknowledged = await cluster.report(
                "birch",
                round=2,
                rounds=(a_round(1), a_round(2, loss=0.25)),
                evaluations=(a_point(0), a_point(2, best=True)),
                attendance=Attendance(2, ("u1",), {"u2": "gone"}),
                overdue="waits for u2",
                refusals={"InputError": 3},
                plan=1,
                version="0.0.9",
            )
            assert acknowledged == 2
            status = await (await cluster.operator()).status()
            zone = status.zones[1]
            assert (zone.number, zone.address, zone.state, zone.leased) == (1, "birch:1", ZoneState.TRAINING, True)
            assert (zone.round, zone.drawn, zone.left_out, zone.loss) == (2, (1, 3), {3: "late"}, 0.25)
            assert (zone.first, zone.last, zone.best) == (a_point(0), a_point(2, best=True), a_point(2, best=True))
            assert zone.attendance == Attendance(2, ("u1",), {"u2": "gone"})
            assert (zone.overdue, zone.refusals, zone.plan) == ("waits for u2", {"InputError": 3}, 1)
            assert (status.version, zone.version) == (metadata.version("sgfusion"), "0.0.9")
            assert status.metric == RMSE
            assert not status.finished
            assert "plan 1 over 5 zones: all 5 zones have reported" in [event.text for event in status.events]
            for name in NAMES:
                await cluster.report(name, ZoneState.DONE, 20)
            assert (await (await cluster.operator()).status()).finished

    run_async(work())


def test_a_status_watch_gives_a_few_a_second_and_the_latest(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run(rounds=10_000)) as cluster:
            await cluster.arrive(*NAMES)
            seen = []

            async def watch() -> None:
                async for status in (await cluster.operator()).watch_status():
                    seen.append(status.zones[0].round)  # noqa: PERF401 (it never ends by itself)

            watching = asyncio.create_task(watch())
            begun = time.monotonic()
            last = 0
            while time.monotonic() - begun < 1.5:
                last += 1
                await cluster.report("ash", round=last, rounds=(a_round(last),))
            await asyncio.sleep(0.6)
            took = time.monotonic() - begun
            watching.cancel()
            assert seen[-1] == last > 20
            assert 3 <= len(seen) <= 4 * took + 2

    run_async(work())


def test_time_that_goes_by_is_no_news(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run(), lease=0.4) as cluster:  # ticks every tenth of a second
            await cluster.arrive("ash")
            seen = []

            async def watch() -> None:
                async for status in (await cluster.operator()).watch_status():
                    seen.append(status)
                    if status.zones[0].state is ZoneState.LOST:
                        return

            await asyncio.wait_for(watch(), 20)
            assert len(seen) == 2  # as it was, and that the zone is lost: not one a tick
            assert 0 < seen[0].time < seen[1].time

    run_async(work())


def test_that_a_zone_waits_longer_is_news_at_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status is of all zones, and megabytes in a large run: not one a tick for each watcher."""

    async def work() -> None:
        async with a_cloud(tmp_path, a_run(), lease=4.0) as cluster:  # ticks every second
            await cluster.arrive("ash")
            await cluster.report("ash", waiting=Waiting(1, 3.0, (1,)))
            service = cluster.service
            stream = service.watch_status()
            first = await anext(stream)
            more = asyncio.ensure_future(anext(stream))
            for _ in range(20):
                service._status_bell.ring()  # as ticks do
                await asyncio.sleep(STATUS_EVERY / 10)
            assert not more.done()
            monkeypatch.setattr(module, "AGED", 0.0)
            second = await asyncio.wait_for(more, 10)
            waits = [status.zones[0].waiting for status in (first, second)]
            assert waits[0] is not None
            assert waits[1] is not None
            assert waits[0].seconds < waits[1].seconds

    run_async(work())


def test_who_reads_slowly_gets_the_latest_only(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.arrive(*NAMES)
            await cluster.status_when(lambda status: status.plan == 1)
            stream = cluster.service.watch_plan("ash")
            await anext(stream)
            for port in range(2, 50):
                await cluster.enrol("birch", port)
            assert (await anext(stream)).directory[1].address == "birch:49"
            more = asyncio.create_task(anext(stream))
            await asyncio.sleep(0.1)
            assert not more.done()
            more.cancel()

    run_async(work())


def test_news_of_all_zones_to_all_zones_is_told_in_few_messages(tmp_path: Path) -> None:
    zones = tuple(f"z{number}" for number in range(60))
    told = dict.fromkeys(zones, 0)
    knowing: set[str] = set()

    async def work() -> None:
        async with a_cloud(tmp_path, a_run("hrg.restarts=1", zones=zones)) as cluster:
            service = cluster.service

            async def watch(zone: str) -> None:
                async for plan in service.watch_plan(zone):
                    told[zone] += 1
                    if all(peer.state is ZoneState.TRAINING for peer in plan.directory):
                        knowing.add(zone)
                        return

            for number, zone in enumerate(zones):
                await service.enrol(zone, f"h:{number + 1}")
            watching = [asyncio.create_task(watch(zone)) for zone in zones]
            submissions = (Submission(zone, MASSES["ash"], 1, MODEL, THETA) for zone in zones)
            await asyncio.gather(*map(service.submit_histogram, submissions))
            await cluster.status_when(lambda status: status.plan == 1)
            await asyncio.gather(*(service.report(a_report(zone)) for zone in zones))
            await asyncio.gather(*watching)
            assert knowing == set(zones)
            assert max(told.values()) < 40  # not one for each of 60 changes

    run_async(work(), patience=60)


def test_an_edge_speaks_for_its_own_zone_alone(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.enrol("birch")
            ash = await cluster.edge("ash")
            calls = [
                ash.enrol("birch", "h:1"),
                ash.submit_histogram("birch", MASSES["birch"], devices=1, model=MODEL, initial=THETA),
                anext(ash.watch_plan("birch")),
                ash.report(a_report("birch")),
                ash.leave("birch"),
                ash.status(),
                anext(ash.watch_status()),
                ash.records(),
            ]
            for call in calls:
                with pytest.raises(IdentityError, match=r"edge ash may not"):
                    await call
            operator = await cluster.operator()
            with pytest.raises(IdentityError, match="operator may not call"):
                await operator.leave("birch")
            assert (await operator.status()).refusals == {"IdentityError": 9}
            assert (await operator.status()).zones[1].state is ZoneState.GATHERING

    run_async(work())


def test_who_is_not_enrolled_is_told_so_in_its_own_words(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            for call in (
                cluster.submit("ash"),
                cluster.report("ash"),
                anext((await cluster.edge("ash")).watch_plan("ash")),
            ):
                with pytest.raises(NotEnrolledError, match="zone 'ash' is not enrolled"):
                    await call
            await cluster.arrive("ash")
            async with cluster.plans("ash") as plans:
                coming = asyncio.create_task(anext(plans))
                await asyncio.sleep(0.1)
                await (await cluster.edge("ash")).leave("ash")
                with pytest.raises(NotEnrolledError, match="has left the run"):
                    await coming

    run_async(work())


def test_another_model_is_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.arrive("ash")
            await cluster.enrol("birch")
            birch = await cluster.edge("birch")
            with pytest.raises(ContractError, match=r"zone 'birch' begins with weights of SHA-256 00.*torch"):
                await birch.submit_histogram("birch", MASSES["birch"], devices=1, model=MODEL, initial=bytes(32))

    run_async(work())


def test_records_of_long_runs_come_whole(tmp_path: Path) -> None:
    zones = ("ash", "birch", "cedar")
    rounds = 2500

    async def work() -> None:
        async with a_cloud(tmp_path, a_run(zones=zones, rounds=rounds)) as cluster:
            await cluster.arrive("ash", "birch")
            sent: dict[str, list[object]] = {}
            for number, zone in enumerate(("ash", "birch")):
                for start in range(1, rounds + 1, 500):
                    batch = tuple(a_round(r, zone=number, drawn=(2,)) for r in range(start, start + 500))
                    await cluster.report(zone, round=start + 499, rounds=batch, evaluations=(a_point(start),))
                    sent.setdefault(zone, []).extend(batch)
            await cluster.report("ash", ZoneState.DIVERGED, rounds, diverged="too fast")
            text, records = await (await cluster.operator()).records()
            assert text == ""
            assert [record.zone for record in records] == list(zones)
            assert list(records[0].rounds) == sent["ash"]
            assert list(records[1].rounds) == sent["birch"]
            assert [point.round for point in records[1].evaluations] == [1, 501, 1001, 1501, 2001]
            assert [(r.parameters, r.devices, r.diverged) for r in records] == [
                (100, 3, "too fast"),
                (100, 3, ""),
                (0, 0, ""),
            ]

    run_async(work(), patience=60)


def test_a_restarted_cloud_has_everything_and_the_same_plan(tmp_path: Path) -> None:
    async def before() -> tuple[object, object]:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.arrive(*NAMES)
            await cluster.report("ash", round=1, rounds=(a_round(1),))
            async with cluster.plans("ash") as plans:
                plan = await anext(plans)
            return plan, await (await cluster.operator()).records()

    async def after() -> tuple[object, object]:
        async with a_cloud(tmp_path, a_run()) as cluster:
            async with cluster.plans("ash") as plans:
                plan = await anext(plans)  # also to an edge that does not yet know that the cloud was away
            operator = await cluster.operator()
            async with asyncio.timeout(20):
                while "the cloud is back: its state" not in (await operator.status()).events[-1].text:
                    await asyncio.sleep(0.01)
            return plan, await operator.records()

    first = run_async(before())
    assert run_async(after()) == first


def test_a_store_that_fails_ends_the_cloud_and_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("cloud.sqlite cannot be used: database or disk is full")

    async def work() -> None:
        with pytest.raises(ExceptionGroup) as ended:  # noqa: PT012 (as it ends)
            async with a_cloud(tmp_path, a_run()) as cluster:
                await cluster.enrol("ash")
                monkeypatch.setattr(Store, "save", full)
                with pytest.raises(UnavailableError, match=r"the cloud cannot write: .* disk is full"):
                    await cluster.enrol("birch")
                with pytest.raises(UnavailableError, match="the cloud cannot write"):
                    await cluster.enrol("cedar")
                status = await (await cluster.operator()).status()
                assert [zone.state for zone in status.zones[:2]] == [ZoneState.GATHERING, ZoneState.EXPECTED]
        assert ended.group_contains(StoreError)

    run_async(work())
