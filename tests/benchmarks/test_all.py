"""`make bench`: its short form is typed, and has the parts of the long one, which measures for half an hour."""

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.__main__ import FULL, NOT_TO_BE_QUOTED, main, quick
from tests.pages import ROOT, make

BENCHMARKS = {
    path.stem
    for path in (ROOT / "benchmarks").glob("*.py")
    if path.stem != "__main__" and "__main__" in path.read_text()
}


def written() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (ROOT / "results" / "benchmarks").glob("*")}


@pytest.mark.timeout(600)  # a minute on a calm machine
def test_quick_measures_a_little_of_everything_and_keeps_nothing() -> None:
    before = written()
    done = make("bench", "QUICK=1", COLUMNS="200")  # a slow machine has wide numbers: no line is to break
    assert done.returncode == 0, done.stdout
    assert re.findall(r"^benchmarks\.(\w+)$", done.stdout, re.MULTILINE) == list(FULL)
    for measured in ("fit s", "one worker", "ours / plain gRPC", "cluster / bare", "devices-0", "page, viewers"):
        assert measured in done.stdout
    assert done.stdout.endswith(f"{NOT_TO_BE_QUOTED}\n")
    assert written() == before


def test_without_it_the_same_parts_measure_all_that_they_do_by_default(tmp_path: Path) -> None:
    assert list(quick(str(tmp_path))) == list(FULL)
    assert set(FULL) == BENCHMARKS
    assert set(FULL.values()) == {()}
    for said, runs in (((), "-m benchmarks"), (("QUICK=1",), "-m benchmarks --quick")):
        shown = make("--dry-run", "bench", *said).stdout
        assert shown.strip().endswith(runs)


@pytest.mark.parametrize("short", [True, False])
def test_one_that_fails_is_the_last(
    short: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command[2:])
        return subprocess.CompletedProcess(command, 3 if command[2] == "benchmarks.round" else 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert main(["--quick"] if short else []) == 3
    assert [each[0] for each in asked] == ["benchmarks.hrg", "benchmarks.simulator", "benchmarks.round"]
    assert all((len(each) > 1) is short for each in asked)
    said = capfd.readouterr()
    assert "benchmarks.round failed with exit code 3" in said.err
    assert NOT_TO_BE_QUOTED not in said.out
