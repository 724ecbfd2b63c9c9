"""Both sources tell the same of the same run: a live cloud, also one that was started again, and a results folder."""

import asyncio
import json
import math
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloud.page.folder import FinishedRun
from cloud.page.live import LiveRun
from cloud.page.source import Source
from sgfusion.distance import zone_distances
from sgfusion.durable import replace_file
from sgfusion.errors import DataError
from sgfusion.evaluation import Score
from sgfusion.reports import Attendance, ZoneEvaluation
from sgfusion.waiting import Waiting
from tests.cloud.clouds import a_cloud
from tests.cloud.page.runs import (
    EDGES,
    ROUNDS,
    ZONES,
    a_source,
    arrive,
    picture_of,
    the_run,
    train,
    trained_cloud,
    write_folder,
)
from tests.cloud.values import MASSES, NAN_SCORE, a_report, a_round
from tests.cluster.keys import run_async

PATIENCE = 60.0
See = Callable[[Source], Coroutine[Any, Any, None]]


@pytest.fixture(params=["live", "restarted", "folder"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestEverySource:
    """What holds of all of them."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path, kind: str) -> None:
        self._folder, self._kind = tmp_path, kind

    def seen(self, see: See) -> None:
        async def work() -> None:
            async with a_source(self._kind, self._folder) as source:
                await see(source)

        run_async(work(), PATIENCE)

    def test_the_parts_are_those_of_the_contract(self) -> None:
        async def see(source: Source) -> None:
            found = picture_of(source)
            assert set(found) == {
                "run", "metric", "edges", "zones", "tree", "plans", "status", "series", "pooled", "events",
            }  # fmt: skip
            assert found["run"]["live"] is source.live is (self._kind != "folder")
            assert set(found["run"]) == {
                "name", "seed", "rounds", "task", "sampler", "sharpness", "epsilon", "budget", "every", "live", "title",
                "synthetic", "version", "started", "comparing", "simulated",
            }  # fmt: skip
            assert found["run"]["comparing"] is found["run"]["simulated"] is False
            assert found["metric"] == {"name": "RMSE", "unit": "bpm", "lower_is_better": True, "root": True}
            assert found["edges"] == list(EDGES)

        self.seen(see)

    def test_zones(self) -> None:
        async def see(source: Source) -> None:
            zones = picture_of(source)["zones"]
            assert [(zone["number"], zone["name"]) for zone in zones] == list(enumerate(ZONES))
            assert [zone["place"] for zone in zones] == [[[[50.0, 19.0]]], None, None]
            assert [zone["histogram"] for zone in zones] == [list(MASSES[name]) for name in ZONES]
            assert {(zone["devices"], zone["epsilon"], zone["alone"]) for zone in zones} == {(3, 3.0, None)}
            # a_point: the test split has 2 labels and half the total
            assert [zone["before"] for zone in zones] == pytest.approx(
                [math.sqrt((8.0 + number) / 4) for number in range(3)], rel=1e-5
            )
            assert all(0 <= value <= 1 for zone in zones for value in zone["at"])
            assert len({tuple(zone["at"]) for zone in zones}) == 3

        self.seen(see)

    def test_the_tree_and_plans(self) -> None:
        async def see(source: Source) -> None:
            found = picture_of(source)
            (plan,) = found["plans"]
            assert (plan["version"], plan["reason"], plan["zones"]) == (1, "all 3 zones have reported", 3)
            assert plan["time"] > 1e9
            tree = found["tree"]
            assert (tree["version"], tree["reason"], tree["zones"]) == (1, "all 3 zones have reported", list(ZONES))
            assert sorted(zone for branch in tree["branches"]["ash"] for zone in branch["zones"]) == ["birch", "cedar"]
            assert tree["loss"] == pytest.approx(sum(tree["distances"]), rel=1e-5)
            assert found["events"][-1]["text"] == "zone cedar is done"
            assert "plan 1 over 3 zones: all 3 zones have reported" in [event["text"] for event in found["events"]]

        self.seen(see)

    def test_series(self) -> None:
        async def see(source: Source) -> None:
            found = picture_of(source)
            apart = zone_distances([MASSES[name] for name in ZONES])
            homophily = (apart[0, 1] + apart[0, 2]) / 2
            assert found["series"]["ash"]["rounds"] == [
                [round, 2, pytest.approx(homophily, rel=1e-5)] for round in range(1, ROUNDS + 1)
            ]
            value = pytest.approx
            assert found["series"]["birch"]["evaluations"] == [
                [
                    r,
                    value(math.sqrt((9.0 + r) / 4), rel=1e-5),
                    value(math.sqrt((9.0 + r) / 4), rel=1e-5),
                    int(r in (0, 2)),
                ]
                for r in (0, 2, 4)
            ]
            # totals 8 + r + z over 4 labels each
            assert found["pooled"] == [
                [r, value(math.sqrt((27.0 + 3 * r) / 12), rel=1e-5), value(math.sqrt((27.0 + 3 * r) / 12), rel=1e-5)]
                for r in (0, 2, 4)
            ]

        self.seen(see)

    def test_status(self) -> None:
        async def see(source: Source) -> None:
            status = picture_of(source)["status"]
            assert {key for key in status if key not in ("time", "zones")} == {
                "plan", "reason", "finished", "overdue", "waits", "refusals", "rounds_per_minute", "bytes", "kept",
            }  # fmt: skip
            # Of the models of round 2, which were kept: not of the last ones.
            kept = [status["kept"]["test"], status["kept"]["before"]]
            assert kept == pytest.approx([math.sqrt(33 / 12), math.sqrt(27 / 12)], rel=1e-5)
            assert (status["plan"], status["finished"], status["overdue"]) == (1, True, "")
            assert status["bytes"] == 3 * ROUNDS * 4096
            zone = status["zones"][1]
            assert {key: zone[key] for key in ("number", "name", "state", "round", "bytes")} == {
                "number": 1, "name": "birch", "state": "done", "round": 4, "bytes": 4 * 4096,
            }  # fmt: skip
            assert (zone["attention"], zone["left_out"]) == ({"0": 1.0}, {"2": "late"})
            assert zone["left_out_so_far"] == {"2": {"rounds": 4, "last": 4, "why": "late"}}
            assert zone["best"] == {
                "round": 2, "validation": pytest.approx(math.sqrt(11 / 4), rel=1e-5),
                "test": pytest.approx(math.sqrt(11 / 4), rel=1e-5),
            }  # fmt: skip
            assert (zone["attending"], zone["expected"], zone["late"], zone["gone"]) == (3, 3, {}, {})

        self.seen(see)

    def test_all_rounds_of_a_zone(self) -> None:
        async def see(source: Source) -> None:
            found = json.loads(await source.zone("ash") or "")
            part = {"attention": {"1": 1.0}, "left_out": {"2": "late"}, "devices_left_out": {"u3": "late"}}
            assert found == {"rounds": [{"round": round, **part} for round in range(1, ROUNDS + 1)]}
            assert await source.zone("gum") is None

        self.seen(see)

    def test_one_round_of_all_zones(self) -> None:
        async def see(source: Source) -> None:
            assert json.loads(await source.round(2)) == {
                "ash": {"attention": {"1": 1.0}, "left_out": {"2": "late"}},
                "birch": {"attention": {"0": 1.0}, "left_out": {"2": "late"}},
                "cedar": {"attention": {"0": 1.0}, "left_out": {"1": "late"}},
            }
            assert json.loads(await source.round(99)) == {}

        self.seen(see)


# Live


def messages(source: Source) -> dict[str, dict[str, Any]]:
    found = source.news()
    assert len({kind for kind, _ in found}) == len(found)
    return {kind: json.loads(text) for kind, text in found}


def test_news_are_what_has_changed_and_are_told_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path, rounds=1) as (cluster, source):
            whole = messages(source)
            assert set(whole) == {"plan", "status", "news"}
            assert set(whole["plan"]) == {"tree", "plans", "zones", "metric", "edges"}
            assert whole["plan"]["tree"]["zones"] == list(ZONES)
            assert [zone["name"] for zone in whole["status"]["status"]["zones"]] == list(ZONES)
            assert whole["news"]["events"][0]["text"].startswith("zone ash enrolled at")
            assert messages(source) == {}
            await train(cluster, 2, zones=("birch",))  # rounds 0 and 1 again, and round 2
            told = messages(source)
            assert set(told) == {"status"}
            assert [zone["name"] for zone in told["status"]["status"]["zones"]] == ["birch"]
            assert [row[0] for row in told["status"]["series"]["birch"]["rounds"]] == [2]
            assert [row[0] for row in told["status"]["series"]["birch"]["evaluations"]] == [2]
            assert set(told["status"]["series"]) == {"birch"}
            assert told["status"]["pooled"] == []  # the others have not evaluated round 2
            await train(cluster, 2)
            assert [row[0] for row in messages(source)["status"]["pooled"]] == [2]

    run_async(work(), PATIENCE)


def test_what_a_zone_was_before_training_is_told_when_it_is_known(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, the_run()) as cluster:
            source = LiveRun(cluster.service)
            await source.load()
            await arrive(cluster, *ZONES)
            assert [zone["before"] for zone in messages(source)["plan"]["zones"]] == [None] * 3
            await train(cluster, 0, zones=("ash",))
            assert [zone["before"] for zone in messages(source)["plan"]["zones"]] == [
                pytest.approx(2**0.5, rel=1e-5),
                None,
                None,
            ]
            await train(cluster, 1, zones=("ash",))
            assert "plan" not in messages(source)

    run_async(work(), PATIENCE)


def test_the_picture_has_no_event_that_is_still_to_be_told(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path, rounds=1) as (cluster, source):
            messages(source)
            await cluster.service.leave("cedar")
            before = [event["text"] for event in picture_of(source)["events"]]
            assert "zone cedar left" not in before
            assert messages(source)["news"]["events"][0]["text"] == "zone cedar left"
            after = [event["text"] for event in picture_of(source)["events"]]
            assert after[: len(before) + 1] == [*before, "zone cedar left"]
            assert picture_of(source)["status"]["zones"][2]["state"] == "left"

    run_async(work(), PATIENCE)


def test_what_nobody_sees_is_not_kept_and_the_picture_has_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path) as (_, source):
            source.forget()
            assert messages(source) == {}
            assert picture_of(source)["events"][-1]["text"] == "zone cedar is done"
            assert len(picture_of(source)["series"]["ash"]["rounds"]) == ROUNDS

    run_async(work(), PATIENCE)


def test_a_zone_that_joins_is_on_the_page_and_so_is_the_plan_with_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path, rounds=1) as (cluster, source):
            messages(source)
            await arrive(cluster, "gum")
            plan = messages(source)["plan"]
            assert [zone["name"] for zone in plan["zones"]] == [*ZONES, "gum"]
            assert plan["tree"]["zones"] == [*ZONES, "gum"]
            assert [entry["version"] for entry in plan["plans"]] == [1, 2]
            await cluster.service.report(a_report("gum", round=0))
            assert "gum" in picture_of(source)["series"]

    run_async(work(), PATIENCE)


def test_homophily_is_by_the_plan_of_now_also_of_earlier_rounds_and_after_a_restart(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path / "state", rounds=2) as (cluster, source):
            messages(source)
            assert await cluster.submit("cedar", MASSES["gum"])
            while cluster.service.shown.plan is None or cluster.service.shown.plan.version < 2:
                await asyncio.sleep(0.01)  # between two looks: a thread fits
            apart = zone_distances([MASSES[name] for name in ("ash", "birch", "gum")])
            homophily = pytest.approx((apart[0, 1] + apart[0, 2]) / 2, rel=1e-5)
            rows = [[1, 2, homophily], [2, 2, homophily]]
            assert messages(source)["status"]["series"]["ash"]["rounds"] == rows
            again = LiveRun(cluster.service)
            await again.load()
            await write_folder(cluster, tmp_path / "results")
            finished = FinishedRun(tmp_path / "results")
            assert picture_of(source)["series"]["ash"]["rounds"] == rows
            assert picture_of(again)["series"] == picture_of(source)["series"]
            assert picture_of(finished)["series"]["ash"]["rounds"] == rows
            finished.close()

    run_async(work(), PATIENCE)


def test_time_alone_is_told_by_what_it_changes(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path, rounds=1) as (cluster, source):
            messages(source)
            cluster.refusals.count("NaN")
            await asyncio.wait_for(source.changed(), 10)  # the cloud's tick
            told = messages(source)
            assert told["status"]["status"]["refusals"] == {"NaN": 1}
            assert told["status"]["status"]["zones"] == []
            zone = cluster.service.shown.zones["ash"]
            waiting = Waiting(1, 4.0, (1,))
            await cluster.service.report(
                a_report("ash", zone.said, zone.round, attendance=zone.attendance, plan=zone.plan, waiting=waiting)
            )
            status = messages(source)["status"]["status"]
            assert status["waits"] == [{"zone": "birch", "text": "ash waits 4 s for it in round 1"}]
            assert status["zones"] == [], "it is no zone's news"

    run_async(work(), PATIENCE)


def test_who_is_late_and_who_is_gone(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path, rounds=1) as (cluster, source):
            attendance = Attendance(3, ("u1", "u2"), {"u2": "has not answered", "u3": "its stream broke"})
            await cluster.service.report(a_report("ash", round=1, attendance=attendance))
            zone = messages(source)["status"]["status"]["zones"][0]
            assert (zone["late"], zone["gone"]) == ({"u2": "has not answered"}, {"u3": "its stream broke"})

    run_async(work(), PATIENCE)


def test_a_cloud_before_anybody_has_come(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, the_run()) as cluster:
            source = LiveRun(cluster.service, {"ash": 4.0})
            await source.load()
            found = picture_of(source)
            assert (found["tree"], found["metric"], found["edges"], found["plans"]) == (None, None, [], [])
            assert [zone["alone"] for zone in found["zones"]] == [4.0, None, None]
            assert [zone["state"] for zone in found["status"]["zones"]] == ["expected"] * 3
            assert json.loads(await source.zone("ash") or "") == {"rounds": []}

    run_async(work(), PATIENCE)


# Folders


def test_a_folder_of_before_zones_json_shows_what_there_is(tmp_path: Path) -> None:
    async def work() -> None:
        async with trained_cloud(tmp_path / "state") as (cluster, _):
            await write_folder(cluster, tmp_path / "old", zones_json=False)

    run_async(work(), PATIENCE)
    source = FinishedRun(tmp_path / "old")
    found = picture_of(source)
    source.close()
    assert [zone["histogram"] for zone in found["zones"]] == [None] * 3
    assert [zone["name"] for zone in found["zones"]] == list(ZONES)
    first, best = found["series"]["ash"]["evaluations"]
    assert (first[0], first[3], best[0], best[3]) == (0, 0, 2, 1)
    assert {zone["bytes"] for zone in found["status"]["zones"]} == {0}
    assert (found["pooled"], found["edges"], found["events"]) == ([], [], [])
    assert found["plans"] == [{"version": 1, "reason": "", "zones": 3, "time": None}]


def without_cedar(folder: Path, *, leaves: bool = True) -> dict[str, Any]:
    """The picture of results of which cedar has none: it went after round 2."""

    async def work() -> None:
        async with trained_cloud(folder / "state", rounds=2) as (cluster, _):
            if leaves:
                await cluster.service.leave("cedar")
            await train(cluster, ROUNDS, zones=("ash", "birch"))
            await write_folder(cluster, folder / "results", away=("cedar",))

    run_async(work(), PATIENCE)
    source = FinishedRun(folder / "results")
    found = picture_of(source)
    source.close()
    return found


def test_of_a_zone_that_left_all_is_shown_until_then(tmp_path: Path) -> None:
    found = without_cedar(tmp_path)
    zones = found["status"]["zones"]
    assert [(zone["state"], zone["round"]) for zone in zones] == [("done", 4), ("done", 4), ("left", 2)]
    assert (zones[2]["attention"], zones[2]["left_out"]) == ({"0": 1.0}, {"1": "late"})
    assert (zones[2]["bytes"], zones[2]["attending"]) == (2 * 4096, 3)
    assert [row[0] for row in found["series"]["cedar"]["evaluations"]] == [0, 2]
    assert found["zones"][2]["histogram"] == list(MASSES["cedar"])
    assert [row[0] for row in found["pooled"]] == [0, 2, 4]  # of those who have results


def test_a_zone_whose_model_is_not_here_is_not_said_to_have_left(tmp_path: Path) -> None:
    zones = without_cedar(tmp_path, leaves=False)["status"]["zones"]
    assert (zones[2]["state"], zones[2]["round"]) == ("training", 2)


def test_how_far_a_zone_came_is_unknown_if_nobody_has_written_it_down(tmp_path: Path) -> None:
    """As in folders of before; the page counts the rounds of zones that are not "left" alone."""
    without_cedar(tmp_path)
    folder = tmp_path / "results"
    known = json.loads((folder / "zones.json").read_text())
    known["zones"]["cedar"] = {"number": 2}
    (folder / "zones.json").write_text(json.dumps(known))
    lines = (folder / "rounds.jsonl").read_text().splitlines(keepends=True)
    (folder / "rounds.jsonl").write_text("".join(line for line in lines if json.loads(line)["zone"] != 2))
    source = FinishedRun(folder)
    found = picture_of(source)
    source.close()
    zones = found["status"]["zones"]
    assert [(zone["state"], zone["round"]) for zone in zones] == [("done", 4), ("done", 4), ("left", None)]
    assert found["series"]["cedar"]["evaluations"] == []


def broken(folder: Path, name: str, text: str | None) -> str:
    """What is said of the folder with that file so."""

    async def work() -> None:
        async with trained_cloud(folder / "state") as (cluster, _):
            await write_folder(cluster, folder / "results")

    run_async(work(), PATIENCE)
    path = folder / "results" / name
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(DataError) as caught:
        FinishedRun(folder / "results")
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("summary.json", None, "has no summary.json: give the results folder that"),
        ("summary.json", "{", "summary.json is not JSON"),
        ("summary.json", "[]", "is no summary of a run"),
        ("summary.json", "{}", "has results that this SGFusion cannot read ('metric' is missing): write them anew"),
        ("run.toml", None, "run.toml is not there: give the results folder of a run"),
        ("dendrogram.json", "{}", "dendrogram.json is damaged (format None"),
        ("dendrogram.json", "{", "dendrogram.json is damaged ("),
        ("rounds.jsonl", '{"zone": 0}\n{"zone"', "rounds.jsonl is damaged at byte 12: write the results anew"),
        ("zones.json", "no", "zones.json is not JSON"),
        ("zones.json", "{}", "has no table of zones"),
        ("zones.json", '{"zones": {"ash": {"number": 5}}}', "zones.json numbers its zones [5]"),
        ("rounds.jsonl", None, "rounds.jsonl is not there"),
        (
            "rounds.jsonl",
            '{"zone": 9, "round": 1, "drawn": [], "left_out": {}}\n',
            "cannot read (list index out of range)",
        ),
    ],
)
def test_a_folder_that_cannot_be_shown_is_named(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    assert said in broken(tmp_path, name, text)


def test_a_summary_that_was_written_anew_is_seen_by_who_asks_anew(tmp_path: Path) -> None:
    """As when zones have trained alone meanwhile; what is half written or gone changes nothing."""

    async def work() -> None:
        async with a_source("folder", tmp_path) as source:
            path = tmp_path / "results" / "summary.json"
            summary = json.loads(path.read_bytes())

            def alone() -> list[float | None]:
                return [zone["alone"] for zone in picture_of(source)["zones"]]

            for value in (4.0, 5.0, 6.0):  # of the reading before the last nothing is left open
                for zone in summary["zones"].values():
                    zone["alone"] = value
                replace_file(path, json.dumps(summary).encode())
                assert alone() == [value] * 3
                assert len(json.loads(await source.zone("ash") or "")["rounds"]) == ROUNDS
            path.write_text("{")
            assert alone() == [6.0] * 3
            path.unlink()
            assert alone() == [6.0] * 3
            summary["pooled"]["alone"] = 7.0
            replace_file(path, json.dumps(summary).encode())
            assert picture_of(source)["status"]["kept"]["alone"] == 7.0

    run_async(work(), PATIENCE)


def test_a_cluster_that_has_not_finished_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    with pytest.raises(DataError, match="This run is not finished: `sgfusion up` goes on with it"):
        FinishedRun(tmp_path)


def test_scores_that_are_no_numbers_are_none(tmp_path: Path) -> None:
    """JSON has no NaN, and a diverged zone's scores are that."""

    async def work() -> None:
        async with trained_cloud(tmp_path, rounds=1) as (cluster, source):
            point = ZoneEvaluation(2, NAN_SCORE, Score(math.inf, 2), best=False)
            record = replace(a_round(2, drawn=()), loss=math.nan)  # which is metrics' alone
            await cluster.service.report(a_report("ash", round=2, rounds=(record,), evaluations=(point,)))
            found = picture_of(source)
            assert found["series"]["ash"]["evaluations"][-1] == [2, None, None, 0]
            assert found["series"]["ash"]["rounds"][-1] == [2, 0, None]

    run_async(work(), PATIENCE)
