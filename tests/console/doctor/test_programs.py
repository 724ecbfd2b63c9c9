"""What is asked of other programs: each within its time, and none of them is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from console.doctor.examine import WITHIN, Check
from console.doctor.findings import Finding
from console.doctor.patient import Asked, Patient
from console.doctor.programs import Programs
from tests.cluster.harness import RUN
from tests.console.commands import PATIENCE, ROOT, sgfusion

Capture = pytest.CaptureFixture[str]
HANGS = "echo $$ > {0}.new && mv {0}.new {0} && exec sleep 300"
MODULE = """
import os, time
from pathlib import Path

Path("new").write_text(str(os.getpid()))
Path("new").rename("pid")
time.sleep(300)
"""
ASK = """
from pathlib import Path
from console.doctor.programs import Programs
from console.doctor import run_files
run_files.WITHIN = 300.0
run_files.look_at_run(Path("run.toml"), Programs())
"""


def until(reached: Callable[[], bool]) -> None:
    """Wait for it."""
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)  # between two looks


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_one_that_answers_and_one_that_does_not() -> None:
    with Programs() as programs:
        done = programs.ask(["sh", "-c", "echo yes; echo no >&2; exit 3"], PATIENCE)
        assert done is not None
        assert (done.stdout, done.stderr, done.returncode) == ("yes\n", "no\n", 3)
        assert programs.ask(["sleep", "300"], 0.1) is None


def test_none_that_runs_at_the_end_is_left_and_none_begins_after_it(tmp_path: Path) -> None:
    pid, answers = tmp_path / "pid", []
    with Programs() as programs:
        asks = Thread(target=lambda: answers.append(programs.ask(["sh", "-c", HANGS.format(pid)], 300)))
        asks.start()
        until(pid.exists)
    assert not is_there(int(pid.read_text()))
    asks.join(PATIENCE)
    assert not asks.is_alive()
    assert programs.ask(["touch", str(tmp_path / "late")], 1) is None
    assert not (tmp_path / "late").exists()


def test_doctor_leaves_none(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    (tmp_path / "docker").write_text(f"#!/bin/sh\n{HANGS.format(pid)}\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("console.doctor.engine.WITHIN", 300.0)

    def early(checks: dict[str, Check], *_: object) -> list[Finding]:
        """Waits no longer than until docker was asked."""
        Thread(target=checks["engine"], daemon=True).start()
        until(pid.exists)
        return []

    monkeypatch.setattr("console.doctor.examine.examine", early)
    assert sgfusion(capsys, "doctor").code == 0
    assert not is_there(int(pid.read_text()))


def test_the_one_that_reads_a_runs_data_ends_when_who_asked_was_killed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(RUN.replace('name = "linear"', 'name = "hangs:make_task"'), "utf-8")
    (tmp_path / "hangs.py").write_text(MODULE, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    asks = subprocess.Popen([sys.executable, "-c", ASK], cwd=tmp_path, env=environment)
    try:
        until(lambda: (tmp_path / "pid").exists() or asks.poll() is not None)
        probe = int((tmp_path / "pid").read_text())
    finally:
        asks.send_signal(signal.SIGKILL)
        asks.wait()
    until(lambda: not is_there(probe))


def test_checks_have_all_their_time_whatever_it_took_to_look_into_folders(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, slept, given = time.monotonic, [0.0], []

    def slow(_: Asked) -> tuple[Patient, list[Finding]]:
        slept[0] = 2.5
        return Patient(), []

    def examined(_: object, __: object, *, within: float = WITHIN) -> list[Finding]:
        given.append(within)
        return []

    monkeypatch.setattr(time, "monotonic", lambda: real() + slept[0])
    monkeypatch.setattr("console.doctor.patient.patient_in_time", slow)
    monkeypatch.setattr("console.doctor.examine.examine", examined)
    assert sgfusion(capsys, "doctor").code == 0
    assert given == [WITHIN]
