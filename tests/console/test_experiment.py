"""`sgfusion experiment`, from the command line to the report: whatever ends it, started again it goes on."""

import json
import sys
from pathlib import Path

import pytest

from simulator.work import attempt
from tests.console.commands import PATIENCE, files, kill_once, sgfusion, start_sgfusion
from tests.simulator.tiny_suite import SUITE, write_suite

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
    command = described.pop("command")
    assert command == f"sgfusion experiment {suite_file} --set rounds=2 --seeds 2,1 --entries sgfusion,top-1 --data far"
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


def test_run_again_nothing_is_done_and_with_other_settings_it_says_so(
    suite_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    command = ("experiment", suite_file, "--out", tmp_path / "out", "--workers", "1", "--data", "far", "--seeds", "1")
    assert sgfusion(capsys, *command).code == 0
    before = files(tmp_path / "out")
    again = sgfusion(capsys, *command)
    assert "7 jobs, 7 finished earlier" in again.out
    assert files(tmp_path / "out") == before
    other = sgfusion(capsys, *command, "--set", "optimiser.rate=0.01")
    assert "note: the settings of far/sgfusion/1 have changed: its jobs are done again" in other.out
    assert "finished earlier" not in other.out
    changed = files(tmp_path / "out")
    assert changed.keys() == before.keys()
    assert changed["jobs/far/sgfusion/1/west.json"] != before["jobs/far/sgfusion/1/west.json"]


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
    assert "near/sgfusion/1: DataError: zone 'north' of zones.names has 2 devices and 120 samples" in done.out
    assert "training: 7 of 7 jobs" in done.out


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
    assert done.error == "error: --backend ray needs ray: pip install 'sgfusion[ray]'\n"


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
    assert done.error == f"error: the report needs {package}: pip install 'sgfusion[experiments]'\n"
    assert not (tmp_path / "out").exists()
