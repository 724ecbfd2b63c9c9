"""The `sgfusion` command: in this process for its answers, in one of its own where it is to be killed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from console.main import main

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    error: str


def sgfusion(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Answer:
    """Run it here: torch is imported once for all tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["sgfusion", *map(str, arguments)])
        patched.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as ended:
            main()
    said = capsys.readouterr()
    code = ended.value.code
    return Answer(code if isinstance(code, int) else 0, said.out, said.err)


PATIENCE = 200.0
"""Seconds that a process of its own may take, on a machine with much else to do."""
WITHOUT_REPORT = """
import console.report
console.report.write_report = lambda *_: "report"
"""
RUN_IT = """
from console.main import main
main()
"""


def start_sgfusion(*arguments: str | Path, first: str = WITHOUT_REPORT) -> subprocess.Popen[str]:
    """Start it in a process of its own, which does `first` first.

    By default it writes no report: that has tests of its own, and takes long.
    """
    command = [sys.executable, "-c", first + RUN_IT, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def kill_once(process: subprocess.Popen[str], reached: Callable[[], object]) -> None:
    """Kill the process with SIGKILL as soon as it has come as far as `reached` says; it must not end before."""
    try:
        until = time.monotonic() + PATIENCE
        while not reached():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.01)  # between two looks
    finally:
        process.kill()
        process.communicate()


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, by name. Where the folder itself is named, in a report's command, it says OUT."""
    named = str(folder).encode()
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content.replace(named, b"OUT") for name, content in found.items()}
