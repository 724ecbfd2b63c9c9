"""`sgfusion experiment`, from the command line to the report: whatever ends it, started again it goes on."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from console.experiment import _on_settings
from console.report.suite_results import read_results
from simulator.outcome import Outcome
from simulator.suite_folder import Settled
from simulator.work import attempt
from tests.console.commands import PATIENCE, files, kill_once, sgfusion, start_sgfusion
from tests.simulator.tiny_suite import RUN, SUITE, write_suite

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def short_report(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has tests of its own; here it is written where a test looks at it."""
    if "report" not in request.node.name:
        monkeypatch.setattr("console.report.write_report", lambda *_: "report")


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    return write_suite(tmp_path)


def test_a_suite_goes_from_its_file_to_its_report(suite_file: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    part = ("--seeds", "2,1", "--entries", "sgfusion, top-1", "--data", "far", "--set", "rounds=2")
    done = sgfusion(capsys, "experiment", suite_file, "--out", out, "--workers", "1", *part)
    assert done.code == 0, done.out + done.error
    assert str(out / "report.html") in done.out
    assert (out / "report.html").stat().st_size > 1000
    assert "training: 12 of 12 jobs" in done.out
    described = json.loads((out / "suite.json").read_text())
    program, *words = shlex.split(described.pop("command"))
    part = ("--set", "rounds=2", "--seeds", "2,1", "--entries", "sgfusion,top-1", "--data", "far")
    assert (program, *words) == ("sgfusion", "experiment", str(suite_file), *part, "--out", str(out))
    assert described == {
        "name": "few",
        "task": "linear",
        "metric": {"name": "RMSE", "unit": "", "root": True, "lower_is_better": True},
        "data": ["far"],
        "seeds": [1, 2],
        "entries": [
            {"name": "sgfusion", "method": "sgfusion", "set": {}, "title": "SGFusion"},
            {"name": "top-1", "method": "top-k-sgfusion", "set": {"sampler.k": 1}, "title": "top-1"},
        ],
        "reference": "sgfusion",
        "notes": {"far": []},
        "synthetic": ["far"],
    }
    assert {path.name for path in (out / "worlds" / "far").iterdir()} == {"1.json", "2.json"}


def test_run_again_nothing_is_done_and_with_other_settings_it_says_so_and_sets_the_outcomes_aside(
    suite_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    command = ("experiment", suite_file, "--out", tmp_path / "out", "--workers", "1", "--data", "far", "--seeds", "1")
    assert sgfusion(capsys, *command).code == 0
    before = files(tmp_path / "out")
    again = sgfusion(capsys, *command)
    assert "7 jobs, 7 finished earlier" in again.out
    assert files(tmp_path / "out") == before
    other = sgfusion(capsys, *command, "--set", "optimiser.rate=0.01")
    runs = "far/sgfusion/1, far/fedavg/1, far/top-1/1"
    aside = tmp_path / "out" / "set-aside"
    assert f"note: the settings, code or data of {runs} have changed: their jobs are done again;" in other.out
    assert f"; earlier outcomes are in {aside}\n" in other.out
    assert "finished earlier" not in other.out
    changed, west = files(tmp_path / "out"), "jobs/far/sgfusion/1/west.json"
    assert {name for name in changed if not name.startswith("set-aside/")} == before.keys()
    assert changed[west] != before[west]
    (run,) = read_results(tmp_path / "out").runs["far", "sgfusion"]  # what the report reads
    assert run.outcome_of("west") == Outcome.from_json(changed[west])
    back = sgfusion(capsys, *command)
    assert (
        f"note: outcomes of {runs} with these settings, code and data were in {aside}: they are taken back" in back.out
    )
    assert "7 jobs, 7 finished earlier" in back.out
    assert before.items() <= files(tmp_path / "out").items()


def test_many_runs_of_other_settings_are_one_note() -> None:
    keys = [("far", "sgfusion", seed) for seed in range(1, 6)]
    (note,) = _on_settings(Settled(keys, []), Path("out/set-aside"))
    named = "far/sgfusion/1, far/sgfusion/2, far/sgfusion/3 and 2 more"
    assert note.startswith(f"the settings, code or data of {named} have changed: their jobs are done again;")
    again, back = _on_settings(Settled(keys[:2], keys[1:2]), Path("out/set-aside"))
    assert again.startswith("the settings, code or data of far/sgfusion/1 have changed: its jobs are done again;")
    assert back.startswith("outcomes of far/sgfusion/2 with these settings, code and data were in out/set-aside:")


def test_a_job_that_fails_is_told_the_others_are_done_and_a_restart_does_it(
    suite_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlucky(function: str, text: str, advance: object) -> tuple[str | None, str]:
        if '"zone": "south"' in text:
            return None, "Traceback (most recent call last):\n  a line\nRuntimeError: no [luck]"
        return attempt(function, text, advance)  # type: ignore[arg-type]

    command = ("experiment", suite_file, "--out", tmp_path / "out", "--workers", "1", "--data", "far", "--seeds", "1")
    with monkeypatch.context() as patched:
        patched.setattr("simulator.work.attempt", unlucky)
        done = sgfusion(capsys, *command)
    assert done.code == 1
    assert done.out.count("failed: ") == 1
    assert "failed: far/sgfusion/1/south: RuntimeError: no [luck]" in done.out
    assert "2 failed\nfar/sgfusion/1/south, far/top-1/1/south: Traceback (most recent call last):" in done.out
    assert len(list((tmp_path / "out/jobs").rglob("*.json"))) == 5
    again = sgfusion(capsys, *command)
    assert again.code == 0
    assert "7 jobs, 5 finished earlier" in again.out


def test_data_that_cannot_be_loaded_costs_its_own_jobs(tmp_path: Path, capsys: Capture) -> None:
    suite_file = write_suite(tmp_path, SUITE.replace('"data.contrast" = 0.1', '"zones.min_devices" = 9'))
    command = ("experiment", suite_file, "--out", tmp_path / "out", "--workers", "1", "--seeds", "1")
    done = sgfusion(capsys, *command)
    assert done.code == 1
    said = "near/sgfusion/1: zone 'north' of zones.names has 2 devices and 120 samples"
    assert done.out.count(said) == 1  # and no name of a class before it
    assert done.out.index(said) < done.out.index("training: 7 of 7 jobs")
    assert done.out.count("the same command does what failed") == 1


WITHOUT_PLACES = """
from pydantic import Field
from device.sources import generated_zones
class Somewhere(generated_zones.GeneratedZones):
    notes = ()
    def neighbours(self):
        return {}
def opened(options, zones, seed):
    return Somewhere(options, zones, seed)
opened.options = generated_zones.Options
"""


def test_entries_that_need_neighbours_are_refused_before_any_training(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sgfusion_nowhere.py").write_text(WITHOUT_PLACES)
    monkeypatch.syspath_prepend(tmp_path)
    suite = SUITE.replace('"fedavg"', '"fedavg", "d-zgd", "delta-z", "chi-sgfusion"')
    suite += '[entries."chi-9"]\nmethod = "chi-sgfusion"\nset = { "sampler.chi" = 9 }\n'
    run = RUN.replace('"generated_zones"', '"sgfusion_nowhere:opened"')
    suite_file = write_suite(tmp_path, suite, run)
    command = ("experiment", suite_file, "--out", tmp_path / "out", "--workers", "1", "--data", "far")
    done = sgfusion(capsys, *command)
    assert done.code == 1
    needing = "; ".join(f"entry '{name}', data 'far'" for name in ("d-zgd", "delta-z", "chi-sgfusion"))
    assert f"error: {needing}: data.source = 'sgfusion_nowhere:opened' gives zones no neighbours, which" in done.error
    assert "Or leave them out: --entries sgfusion," in done.error
    assert "entry 'chi-9', data 'far': sampler.chi = 9: a zone of this run has 2 others to draw from" in done.error
    assert "training" not in done.out
    assert sgfusion(capsys, *command, "--seeds", "1", "--entries", "sgfusion").code == 0


def test_values_of_k_beyond_the_other_zones_are_noted_and_trained(tmp_path: Path, capsys: Capture) -> None:
    suite = SUITE + "".join(
        f'[entries.top-{k}]\nmethod = "top-k-sgfusion"\nset = {{ "sampler.k" = {k} }}\n' for k in range(2, 5)
    )
    command = ("--out", tmp_path / "out", "--workers", "1", "--data", "far", "--entries", "top-1,top-2,top-3,top-4")
    done = sgfusion(capsys, "experiment", write_suite(tmp_path, suite), *command)
    assert done.code == 0, done.out + done.error
    note = "sampler.k = 3, 4: a zone of this run has 2 others to draw from, and draws all of them every round"
    assert done.out.count(note) == 1
    assert done.out.index(f"note: far: {note}") < done.out.index("training: ")
    (kept,) = json.loads((tmp_path / "out/suite.json").read_text())["notes"]["far"]
    assert kept.startswith(note)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--seeds", "1,x"), "--seeds '1,x': give whole numbers"),
        (("--seeds", "3"), "--seeds = 3: unknown. There are: 1, 2"),
        (("--address", "10.0.0.1:1"), "--address '10.0.0.1:1' is that of a Ray cluster: give --backend ray too"),
        (
            ("--backend", "ray", "--address", "10.0.0.1:1", "--workers", "2"),
            "--workers 2: the cluster at --address '10.0.0.1:1' takes a job on each of its CPUs. Leave one out",
        ),
        (
            ("--backend", "ray", "--address", "127.0.0.1:1"),
            "--address '127.0.0.1:1': nothing answers there (Connection refused)",
        ),
        (("--set", "rouns=1"), "few.toml, entry 'sgfusion', data 'near': rouns = 1: unknown key, did you mean rounds?"),
    ],
)
def test_what_is_wrong_is_a_message(
    arguments: tuple[str, ...], says: str, suite_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    done = sgfusion(capsys, "experiment", suite_file, "--out", tmp_path / "out", *arguments)
    assert done.code == 1
    assert says in done.error
    assert not list((tmp_path / "out").rglob("*.json"))


def test_stopped_by_hand_it_says_how_to_go_on(
    suite_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> tuple[str | None, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("simulator.work.attempt", interrupt)
    done = sgfusion(capsys, "experiment", suite_file, "--out", tmp_path / "out", "--workers", "1")
    assert done.code == 130
    assert "run the same command again to go on" in done.out


# Killed, and by other means

HANGING = """
import time
from simulator.suite_folder import SuiteFolder
keep = SuiteFolder.keep_outcome
def keep_or_hang(folder, job, text):
    if len(list(folder.folder.glob("jobs/*/*/*/*.json"))) == 3:
        time.sleep(1000)
    keep(folder, job, text)
SuiteFolder.keep_outcome = keep_or_hang
"""


def test_killed_and_restarted_it_gives_the_same_files_and_report(
    suite_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process with two workers, killed outright with three jobs of fourteen finished, against one left in peace.

    It would never keep a fourth: the test need not be quicker than the suite. Figures are made but not rendered, which
    is what takes their time; that they have the same bytes every time has a test of its own.
    """
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda _self, file, **_: file.write(b"a figure"))
    command = ("experiment", suite_file, "--data", "far")
    out, peace = tmp_path / "killed", tmp_path / "peace"
    process = start_sgfusion(*command, "--workers", "2", "--out", out, first=HANGING)
    kill_once(process, lambda: len(list(out.glob("jobs/*/*/*/*.json"))) == 3)
    assert not (out / "report.md").exists()
    again = sgfusion(capsys, *command, "--workers", "1", "--out", out)
    assert again.code == 0, again.out + again.error
    assert "training: 14 jobs, 3 finished earlier" in again.out
    assert sgfusion(capsys, *command, "--workers", "1", "--out", peace).code == 0
    after_kill, undisturbed = files(out), files(peace)
    tables = {"main-far", "rounds-to-target-far", "zones-won-sgfusion", "paired-tests-sgfusion", "data"}
    assert {f"tables/{name}.{kind}" for name in tables for kind in ("csv", "md")} <= undisturbed.keys()
    assert {"report.html", "report.md", "tables/zones.csv"} <= undisturbed.keys()
    assert after_kill.keys() == undisturbed.keys()
    assert [name for name, content in after_kill.items() if content != undisturbed[name]] == []


def test_ray_gives_the_same_files(suite_file: Path, tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("ray")
    command = ("experiment", suite_file, "--data", "far", "--seeds", "1")
    # In a process of its own: Ray leaves threads and handlers behind.
    process = start_sgfusion(*command, "--out", tmp_path / "ray", "--backend", "ray", "--workers", "2")
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert sgfusion(capsys, *command, "--out", tmp_path / "here", "--workers", "1").code == 0
    assert files(tmp_path / "ray") == files(tmp_path / "here")


def test_without_ray_it_says_what_to_install(
    suite_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = sgfusion(capsys, "experiment", suite_file, "--out", tmp_path / "out", "--backend", "ray")
    assert done.code == 1
    assert (
        done.error == "error: --backend ray needs ray: in the repository type make install, or pip install '.[ray]'\n"
    )


def test_without_a_pool_nothing_is_removed(suite_file: Path, tmp_path: Path, capsys: Capture) -> None:
    command = ("experiment", suite_file, "--out", tmp_path / "out", "--data", "far", "--seeds", "1")
    assert sgfusion(capsys, *command, "--workers", "1").code == 0
    before = files(tmp_path / "out")
    other = ("--set", "optimiser.rate=0.01", "--address", "10.0.0.1:1")
    assert sgfusion(capsys, *command, *other).code == 1
    assert files(tmp_path / "out") == before


@pytest.mark.parametrize("package", ["matplotlib", "scipy"])
def test_what_the_report_lacks_is_said_before_any_training(
    package: str, suite_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    done = sgfusion(capsys, "experiment", suite_file, "--out", tmp_path / "out", "--workers", "1")
    assert done.code == 1
    assert (
        done.error
        == f"error: the report needs {package}: in the repository type make install, or pip install '.[experiments]'\n"
    )
    assert not (tmp_path / "out").exists()
