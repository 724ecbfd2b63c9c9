"""`sgfusion up` without its processes: from the zones' records to the results folder and the table."""

import io
import json
import shlex
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cloud.page import beside
from console import concluding, follow, simulate, up
from console.cluster import LocalCluster
from console.cluster_results import fault_notes
from console.concluding import alone_run, conclusion
from console.interruption import Terminated, interruptible
from console.reach import Reached
from console.report.alone_table import alone_table, remedies, unfinished, verdict
from console.unfinished import UnfinishedRun
from console.up import Asked, Ended
from console.watching import Fetched
from sgfusion.errors import DataError, RunFileError
from sgfusion.plan import ZoneState
from sgfusion.reports import RoundRecord, RunStatus, ZoneRecords, ZoneStatus
from sgfusion.runfile import RunFile, load_run_file
from simulator.outcome import Outcome
from simulator.resolve import resolved, with_places
from simulator.run import train
from simulator.world import load_world
from simulator.zone_data import load_data
from tests.cluster.harness import run_of
from tests.console.commands import sgfusion
from tests.console.fetched import fetched_of
from tests.pages import DIRECT
from tests.simulator.tiny_suite import write_suite

Capture = pytest.CaptureFixture[str]
ZONES = ("north", "south", "west")


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)


@pytest.fixture
def run(tmp_path: Path) -> RunFile:
    overrides = ("histogram.epsilon=off", "simulation.exact=true")
    return resolved(load_run_file(write_suite(tmp_path).with_name("tiny.toml"), overrides))


def go(
    run: RunFile, folder: Path, monkeypatch: pytest.MonkeyPatch, fetched: Fetched | None, page: str | None = "off"
) -> str:
    """`up` with a cluster that has come to `fetched`; None: none may be started."""

    def trained(*_: object) -> Fetched:
        assert fetched is not None
        return fetched

    monkeypatch.setattr(up, "_trained", trained)
    screen = Console(record=True, width=100, file=io.StringIO())
    up.up(run, Asked(folder, hosts=1, page=page), screen)
    return screen.export_text()


def test_the_results_folder_is_that_of_simulate(
    run: RunFile, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(run, tmp_path / "up", monkeypatch, fetched_of(run))
    (tmp_path / "resolved.toml").write_text(run.to_toml())
    assert sgfusion(capsys, "simulate", tmp_path / "resolved.toml", "--out", tmp_path / "simulated").code == 0
    for name in ("run.toml", "rounds.jsonl", "dendrogram.json", *(f"models/{zone}.safetensors" for zone in ZONES)):
        assert (tmp_path / "up" / name).read_bytes() == (tmp_path / "simulated" / name).read_bytes(), name
    ours, theirs = (json.loads((tmp_path / side / "summary.json").read_text()) for side in ("up", "simulated"))
    assert shlex.split(ours.pop("again")) == ["sgfusion", "up", "run.toml"]
    del theirs["again"]
    for entry in (*ours["zones"].values(), ours["pooled"]):
        assert entry.pop("alone") > 0
    assert all(entry.pop("alone_round") <= run.rounds for entry in ours["zones"].values())
    assert ours == theirs


def test_alone_is_sgeofl_and_the_second_up_trains_nothing(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = go(run, tmp_path / "up", monkeypatch, fetched_of(run))
    assert f"zones alone: {len(ZONES)} jobs ..." in said
    assert "SGeoFL" not in said  # a name of the comparison's, which nobody asked for here
    summary = json.loads((tmp_path / "up" / "summary.json").read_text())
    world = load_world(run)
    for zone in ZONES:
        best = train(run, "sgeofl", zone).outcome.best.test[zone]
        assert summary["zones"][zone]["alone"] == world.task.metric.value(best.total, best.count)
        assert summary["zones"][zone]["alone_round"] == train(run, "sgeofl", zone).outcome.chosen
    monkeypatch.setattr(concluding, "train_all", None)
    again = go(run, tmp_path / "up", monkeypatch, None)
    assert "This run is finished" in again
    assert said[said.index("SGFusion on a cluster") :] == again[again.index("SGFusion on a cluster") :]


def interrupted(monkeypatch: pytest.MonkeyPatch, *by: signal.Signals) -> list[str]:
    """A signal after each of the first zones that are trained alone; those that have been."""
    finished: list[str] = []
    keep = UnfinishedRun.keep

    def kept(self: UnfinishedRun, zone: str | None, result: str) -> None:
        keep(self, zone, result)
        finished.append(str(zone))
        if len(finished) <= len(by):
            signal.raise_signal(by[len(finished) - 1])

    monkeypatch.setattr(UnfinishedRun, "keep", kept)
    return finished


def test_ctrl_c_leaves_the_comparison_out_and_the_same_command_goes_on_with_it(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "up"
    finished = interrupted(monkeypatch, signal.SIGINT)
    with interruptible():
        said = go(run, folder, monkeypatch, fetched_of(run))
    assert "To compare with: zones train alone in the simulator (Ctrl-C: leave it out" in said
    assert "left out: what zones come to alone. The same command goes on with it" in said
    assert "gain over" in said[said.index("SGFusion on a cluster") :], "the table is there"
    assert "alone" not in json.loads((folder / "summary.json").read_text())["pooled"]
    assert finished == ["north"]
    again = go(run, folder, monkeypatch, None)
    assert "This run is finished" in again
    assert finished == list(ZONES), "what was trained is kept"
    assert json.loads((folder / "summary.json").read_text())["pooled"]["alone"] > 0


def test_sigterm_is_for_the_whole_command(
    run: RunFile, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = fetched_of(run)
    monkeypatch.setattr(up, "_trained", lambda *_: fetched)
    interrupted(monkeypatch, signal.SIGTERM, signal.SIGINT)
    (tmp_path / "resolved.toml").write_text(run.to_toml())
    words = ("up", tmp_path / "resolved.toml", "--out", tmp_path / "up", "--page", "off")
    ended, left_out = sgfusion(capsys, *words), sgfusion(capsys, *words)
    assert ended.code == 130
    assert "stopped. Finished rounds are kept" in ended.out
    assert "gain over" not in ended.out
    assert left_out.code == 0
    assert "This run is finished" in left_out.out, "its results were written before"
    assert "left out: what zones come to alone" in left_out.out
    assert "gain over" in left_out.out


def test_follow_takes_both_signals_as_up_does(run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = fetched_of(run)

    class Watched:
        """A cluster that has come to its end."""

        def __init__(self, *_: object, **_more: object) -> None: ...

        async def to_the_end(self) -> Fetched:
            return fetched

    def followed() -> str:
        screen = Console(record=True, width=100, file=io.StringIO())
        with interruptible():
            assert follow.follow(run, Reached("", None), tmp_path / "out", alone=True, screen=screen)
        return screen.export_text()

    monkeypatch.setattr(follow, "Watch", Watched)
    finished = interrupted(monkeypatch, signal.SIGINT, signal.SIGTERM)
    said = followed()
    assert "left out: what zones come to alone" in said
    assert "gain over" in said[said.index("SGFusion on a cluster") :], "the table is there"
    with pytest.raises(Terminated):
        followed()
    assert "left out" not in followed()
    assert finished == list(ZONES), "what was trained is kept"


def test_while_zones_train_alone_the_page_shows_the_finished_run(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    places: list[str] = []
    train_alone = concluding.train_alone

    def looked_at(run: RunFile, folder: Path, screen: Console, page: str | None) -> dict[str, Outcome] | None:
        assert page is not None
        places.append(page)
        with DIRECT.open(f"{page}api/run", timeout=60) as answer:
            seen.append(json.load(answer))
        return train_alone(run, folder, screen, page)

    monkeypatch.setattr(up, "train_alone", looked_at)
    go(run, tmp_path / "up", monkeypatch, fetched_of(run), page="127.0.0.1:0")
    assert (seen[0]["run"]["live"], seen[0]["status"]["finished"]) == (False, True)
    with pytest.raises(OSError, match="refused"):
        DIRECT.open(places[0], timeout=60)


def test_a_page_whose_place_is_taken_is_told_and_holds_up_nothing(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        said = go(run, tmp_path / "up", monkeypatch, fetched_of(run), page=place)
    assert f"no page while zones train alone: the page cannot listen on {place}" in said
    assert "gain over" in said
    assert json.loads((tmp_path / "up" / "summary.json").read_text())["pooled"]["alone"] > 0


def test_a_page_whose_usual_place_was_taken_meanwhile_is_somewhere_else(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setattr(LocalCluster, "page_place", place)  # where the cloud, which has ended, served it
        said = go(run, tmp_path / "up", monkeypatch, fetched_of(run), page=None)
    assert "no page" not in said
    (told,) = (line for line in said.splitlines() if line.startswith("page: "))
    assert told.startswith("page: http://127.0.0.1:")
    assert told.endswith(f" from now on, for another program has taken {place}")


def test_a_cloud_takes_what_the_zones_came_to_alone_from_up_and_from_simulate(
    run: RunFile, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "up"
    go(run, folder, monkeypatch, fetched_of(run))
    summary = json.loads((folder / "summary.json").read_text())
    alone = {zone: summary["zones"][zone]["alone"] for zone in ZONES}
    lasting = concluding.known_alone(run, folder / "cluster" / "alone", load_data(run).task.metric)
    file, simulated = write_suite(tmp_path).with_name("tiny.toml"), tmp_path / "simulated"
    settings = ("--set", "histogram.epsilon=off", "--set", "simulation.exact=true")
    assert sgfusion(capsys, "simulate", file, "--method", "sgeofl", "--out", simulated, *settings).code == 0
    assert lasting is not None
    for found in (folder, lasting, simulated):
        assert beside.known_alone(found, run) == pytest.approx(alone)
    with pytest.raises(DataError, match=r"is of another run: seed is \d+ there and 77 here"):
        beside.known_alone(simulated, run.model_copy(update={"seed": 77}))


def test_another_map_is_no_other_run_and_devices_need_not_release_again(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noised = run.model_copy(update={"histogram": run.histogram.model_copy(update={"epsilon": 5.0})})
    folder = tmp_path / "up"
    go(noised, folder, monkeypatch, fetched_of(noised))
    released = json.loads((folder / "cluster" / "devices" / "released.json").read_text())
    assert "places" not in released["zones"]  # as in folders of before there were any
    placed = with_places(noised, {"north": (((50.0, 20.0),),)})
    with monkeypatch.context() as nothing_trains:
        nothing_trains.setattr(concluding, "train_all", None)
        assert "This run is finished" in go(placed, folder, nothing_trains, None)
    again = placed.model_copy(update={"rounds": placed.rounds + 1})  # trained anew, with the histograms there are
    go(again, folder, monkeypatch, fetched_of(again))
    other = placed.model_copy(update={"histogram": placed.histogram.model_copy(update={"epsilon": 4.0})})
    with pytest.raises(RunFileError, match=r"the run has changed \(its histogram\): they release once"):
        go(other, folder, monkeypatch, None)


def test_results_that_somebody_changed_are_not_taken_for_the_runs(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "up"
    go(run, folder, monkeypatch, fetched_of(run))
    mark = json.loads((folder / "cluster" / "finished.json").read_text())["fingerprint"]
    assert Ended(folder, mark).holds()
    assert not Ended(folder, "another").holds()
    (folder / "summary.json").write_text("{}")
    assert not Ended(folder, mark).holds()


def noted(
    run: RunFile, folder: Path, monkeypatch: pytest.MonkeyPatch, fetched: Fetched | None = None, *, kept: bool = True
) -> list[str]:
    """What `up` says of the results that are there; afterwards there is a state, as of a cluster, if it is `kept`."""
    said = go(run, folder, monkeypatch, fetched or fetched_of(run))
    if kept:
        (Ended(folder, up._mark(run, "sgfusion")).state / "cloud").mkdir(parents=True, exist_ok=True)
    return [line for line in said.splitlines() if "has the results of" in line]


def test_whose_results_are_replaced_is_said_before_it_trains_and_whether_they_come_back(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "up"
    slower = run.model_copy(update={"optimiser": run.optimiser.model_copy(update={"rate": 0.001})})
    rate = f"optimiser.rate = {run.optimiser.rate}"
    assert noted(run, folder, monkeypatch) == []
    assert noted(run, folder, monkeypatch) == [], "it is finished"
    replaced = "they are replaced when this one has trained"
    back = "; the command that made them, typed again, brings them back"
    assert noted(slower, folder, monkeypatch) == [
        f"note: {folder} has the results of another run ({rate}): {replaced}{back}"
    ]
    summary = json.loads((folder / "summary.json").read_text())
    summary["zones"]["late"] = summary["zones"]["north"]
    (folder / "summary.json").write_text(json.dumps(summary))
    assert noted(slower, folder, monkeypatch) == [], "they are its own, though somebody changed them"
    (folder / "summary.json").write_text(json.dumps(summary))
    assert noted(run, folder, monkeypatch, kept=False) == [
        f"note: {folder} has the results of another run (optimiser.rate = 0.001): {replaced};"
        " the command that made them brings them back, but not late, which joined that run"
    ]
    for path in folder.glob("cluster/*/cloud"):
        path.rmdir()
    longer = slower.model_copy(update={"rounds": run.rounds + 1, "seed": 77, "name": "other"})
    assert noted(longer, folder, monkeypatch) == [
        f"note: {folder} has the results of another run (name = {run.name!r}, {rate}, rounds = {run.rounds}, 1 more):"
        f" {replaced}, for good. To keep them, press Ctrl-C and give another --out"
    ]
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {"method": "ifca", "again": "sgfusion simulate run.toml --method ifca"}
    (folder / "summary.json").write_text(json.dumps(summary))
    assert noted(longer, folder, monkeypatch) == [
        f"note: {folder} has the results of a simulation by ifca: they are replaced when this run has trained."
        " To keep them, press Ctrl-C and give another --out"
    ]
    (folder / "run.toml").write_text("name =")
    assert f"note: {folder} has results that cannot be read: they are replaced when this run has trained\n" in go(
        run, folder, monkeypatch, fetched_of(run)
    )


def test_nothing_of_training_alone_hangs_on_the_tree_or_the_histograms(run: RunFile) -> None:
    other = run.model_copy(update={"hrg": run.hrg.model_copy(update={"sharpness": 9.0}), "name": "other"})
    assert alone_run(run) == alone_run(other)
    assert load_data(alone_run(run)).names == load_data(run).names


def test_what_went_wrong_is_noted(run: RunFile) -> None:
    found = fetched_of(run)
    north, south, _ = found.records
    report = south.rounds[0].report
    record = RoundRecord(report, {"u1": "no answer"}, 0, 0, 0.0)
    partly = ZoneRecords("south", (record, record), south.evaluations, 3, 2)
    zones = (ZoneStatus(0, "north", "", ZoneState.DONE, run.rounds), ZoneStatus(1, "south", "", ZoneState.LEFT, 1))
    status = RunStatus(run.name, run.rounds, 1, "", zones, finished=True)
    assert list(fault_notes(status, (north, partly), ZONES)) == [
        "zones without results, for they never came or left early: west",
        f"south is left after round 1 of {run.rounds}",
        "south: rounds without some of its devices: u1 (2)",
    ]
    assert list(fault_notes(found.status, found.records, ZONES)) == []


def summary(*, test: float, alone: float | None) -> dict[str, Any]:
    entry = {"before": 4.0, "test": test, "validation": 1.0, "round": 5, "drawn": 1.5, "diverged": None}
    pooled = {"before": 4.0, "test": test}
    if alone is not None:
        entry, pooled = {**entry, "alone": alone}, {**pooled, "alone": alone}
    metric = {"name": "RMSE", "unit": "bpm", "root": True, "lower_is_better": True}
    return {
        "method": "sgfusion", "title": "SGFusion", "metric": metric, "zones": {"north": entry}, "pooled": pooled,
        "drawn": 1.5, "notes": ["n"], "synthetic": True, "device_gradients": 10, "bytes_sent": 2000,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("test", "said"),
    [(1.5, "SGFusion beats training alone"), (2.5, "SGFusion does not beat training alone"), (2.0, "is level with")],
)
def test_the_verdict_is_plain(test: float, said: str) -> None:
    assert said in verdict(summary(test=test, alone=2.0))


def told(found: Mapping[str, Any], *changes: str) -> str:
    """What to try, of a run with these settings."""
    return "\n".join(remedies(found, run_of(*changes)))


def questions() -> str:
    """The answer of docs/faq.md to whom sharing does not help."""
    page = Path(__file__).parents[2] / "docs" / "faq.md"
    return page.read_text("utf-8").partition("**Sharing does not help")[2].partition("\n\n**")[0]


def test_where_sharing_makes_it_worse_it_is_said_what_to_try_beside_what_the_run_has() -> None:
    worse = summary(test=2.5, alone=2.0)
    assert told(worse, "hrg.sharpness=2", "histogram.epsilon=0.5").splitlines()[:4] == [
        "To try, in the run file or by --set:",
        '- sampler.kind = "top-k" with a sampler.k: the nearest zones every round (now "hrg")',
        "- a larger hrg.sharpness (now 2): the unlike are drawn less often",
        "- a larger histogram.epsilon (now 0.5), which is less private: where devices have few samples, noise hides"
        " which zones are alike",
    ]
    assert "histogram.epsilon" not in told(worse, 'histogram.epsilon="off"')
    asked = {**worse, "notes": ["one device alone is in zone Lyons (is it 'Lyon'?)"]}
    assert told(asked, "rounds=5").splitlines()[1:3] == [
        "- mend the names that the notes below ask about: others draw a misspelt zone, and learn from it, as any",
        "- more rounds (now 5): 1 of 1 zone kept that of the last one",
    ]
    assert "more rounds" not in told(asked, "rounds=6")
    placed = {**worse, "notes": ["zones.places has 'Lyons', which is no zone of this run: is it 'Lyon', which …?"]}
    assert "mend the names" not in told(placed), "nobody draws a place"
    unjudged = {name: {**entry, "validation": None} for name, entry in worse["zones"].items()}
    assert "more rounds" not in told({**worse, "zones": unjudged}, "rounds=5"), "it could keep no other"
    page = Path(__file__).parents[2] / "docs" / "results.md"
    section = page.read_text("utf-8").partition("\n## What to make of it\n")[2].partition("\n## ")[0]
    assert "(docs/results.md of the repository, What to make of it)" in told(worse)  # people are in other folders
    assert '`sampler.kind = "top-k"`' in section
    assert "sharp `hrg.sharpness`" in section
    for text in (told(worse), section, questions()):  # zones with alike labels that need different models
        assert 'sampler.kind = "none"' in text
    for found in (
        summary(test=2.0, alone=2.0),
        summary(test=1.5, alone=2.0),
        summary(test=2.5, alone=None),
        {**worse, "method": "d-zgd"},
    ):
        assert told(found) == ""
    by_labels = told({**worse, "method": "top-k-sgfusion"})
    assert "top-k" not in by_labels  # it is what it does
    assert "zones count as alike by how often each label occurs" in by_labels


def learning(test: float, alone: int | None, shared: int = 3) -> dict[str, Any]:
    """Three zones; `alone` of them, and `shared` with SGFusion, keep the last of five rounds."""
    found = summary(test=test, alone=2.0)
    (entry,) = found["zones"].values()
    zones = {
        name: {
            **entry,
            "round": 5 if i < shared else 4,
            "alone_round": None if alone is None else 5 if i < alone else 4,
        }
        for i, name in enumerate(("east", "north", "west"))
    }
    return {**found, "zones": zones}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            learning(1.5, alone=3, shared=0),
            "note: the best round of 3 of 3 zones alone was the last one, 5: they had not stopped learning, so part of"
            " this gain may only be speed, and more rounds tell how much remains",
        ),
        (
            learning(1.5, alone=2),
            "note: the best round of 2 of 3 zones alone and of 3 of 3 zones with SGFusion was the last one, 5: they had"
            " not stopped learning, so part of this gain may only be speed, and more rounds tell how much remains",
        ),
        (
            learning(1.5, alone=1, shared=2),
            "note: the best round of 2 of 3 zones with SGFusion was the last one, 5: they had not stopped learning, so"
            " with more rounds this may come out differently",
        ),
        (
            learning(2.5, alone=3),
            "note: the best round of 3 of 3 zones alone and of 3 of 3 zones with SGFusion was the last one, 5: they had"
            " not stopped learning, so with more rounds this may come out differently",
        ),
        (learning(2.5, alone=1), ""),  # what to try says it already
        (learning(1.5, alone=1, shared=1), ""),
        (learning(1.5, alone=None, shared=1), ""),  # a summary of before it said which round
    ],
)
def test_a_gain_over_zones_that_had_not_stopped_learning_alone_may_be_speed(
    found: Mapping[str, Any], said: str, tmp_path: Path
) -> None:
    run = run_of("rounds=5")
    assert unfinished(found, run) == said
    (tmp_path / "run.toml").write_text(run.to_toml(), "utf-8")
    below = list(conclusion(found, tmp_path))
    assert [line for line in below if "note: the best round" in line] == ([said] if said else [])
    if said:
        assert below[1] == said, "beside what it is about"
    assert unfinished(found, run_of("rounds=6")) == "", "no zone kept that of the last one"
    unjudged = {zone: {**entry, "validation": None} for zone, entry in found["zones"].items()}
    assert unfinished({**found, "zones": unjudged}, run) == "", "it could keep no other"
    calm = unfinished(found, run_of("rounds=5", "optimiser.schedule=cosine"))
    why = "that is usual with a rate that falls until then, but"
    assert calm == said.replace("they had not stopped learning, so", why)
    assert "may only be speed" in questions()


def test_where_most_zones_are_worse_off_it_says_what_to_try_though_pooled_they_gain() -> None:
    found = summary(test=1.5, alone=2.0)
    zones: dict[str, object] = {}
    for name, test in (("east", 1.0), ("north", 2.5), ("west", 2.5)):
        zones[name] = {"test": test, "alone": 2.0, "round": 5, "validation": test}
        so_far = {**found, "zones": zones}
        assert verdict(so_far).startswith(
            "SGFusion beats training alone: pooled RMSE (bpm) 1.500 against 2.000 (+25.0%); better in 1"
        )
        assert bool(told(so_far)) == (name == "west")


def test_the_table_has_before_alone_and_with_side_by_side(tmp_path: Path) -> None:
    screen = Console(record=True, width=80, file=io.StringIO())
    screen.print(alone_table(summary(test=1.5, alone=2.0)))
    screen.print(alone_table(summary(test=1.5, alone=None)))
    rows = [line for line in screen.export_text().splitlines() if "north" in line]
    cells = [[cell.strip() for cell in row.strip("│ ").split("│")] for row in rows]
    assert cells == [
        ["north", "4.000", "2.000", "1.500", "+25.0%", "5", "1.5"],
        ["north", "4.000", "1.500", "+62.5%", "5", "1.5"],
    ]
    heads = [column.header for column in alone_table(summary(test=1.5, alone=2.0)).columns]
    assert heads == ["zone", "before", "alone", "with\nSGFusion", "gain over\nalone", "round\nkept", "drawn"]
    assert verdict(summary(test=1.5, alone=None)) == ""
    (tmp_path / "run.toml").write_text(run_of().to_toml(), "utf-8")
    below = list(conclusion(summary(test=1.5, alone=2.0), tmp_path))
    assert "note: n" in below
    assert below[-2:] == [
        f"Next: sgfusion export {tmp_path} --zone north",
        f"or: sgfusion predict {tmp_path} --zone north",
    ]


def test_what_to_try_follows_the_verdict_and_what_to_type_next_is_of_a_zone_that_can_be_judged(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(run_of().to_toml(), "utf-8")
    found = summary(test=2.5, alone=2.0)
    (entry,) = found["zones"].values()
    few = {**entry, "test": None, "alone": None, "before": None}
    below = list(conclusion({**found, "zones": {"few": few, "north": entry}}, tmp_path))
    assert below[0].startswith("SGFusion does not beat training alone")
    assert below[1] == "To try, in the run file or by --set:"
    assert below[-2:] == [
        f"Next: sgfusion export {tmp_path} --zone north",
        f"or: sgfusion predict {tmp_path} --zone north",
    ]
