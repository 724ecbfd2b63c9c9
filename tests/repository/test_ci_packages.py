"""`.ci/packages` with an apt-get that only tells: no package may start a service, whoever else installs."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.pages import ROOT

PATIENCE = 60.0
APT = """#!{bash}
[[ $1 == install ]] || exit 0
asked() {{
  local code=free
  if [[ -x $POLICY ]]; then code=0; "$POLICY" || code=$?; fi
  echo "$NAME $1 $code"
}}
asked begins >>"$HOME/heard"
until [[ -e $HOME/go-$NAME ]]; do sleep 0.02; done
asked ends >>"$HOME/heard"
"""
"""Whether a service may start, as packages ask: 101 is no."""


@dataclass
class Machine:
    """A copy of the script whose services are asked for in a folder of ours."""

    folder: Path
    started: list[subprocess.Popen[bytes]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        text = (ROOT / ".ci" / "packages").read_text()
        assert text.count("policy=/usr/sbin/policy-rc.d") == 1
        for name in ("bin", "sbin"):
            (self.folder / name).mkdir()
        (self.folder / "packages").write_text(text.replace("policy=/usr/sbin/", f"policy={self.folder}/sbin/"))
        (self.folder / "bin" / "apt-get").write_text(APT.format(bash=shutil.which("bash")))
        (self.folder / "bin" / "apt-get").chmod(0o755)
        self.policy = self.folder / "sbin" / "policy-rc.d"

    def start(self, name: str) -> subprocess.Popen[bytes]:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "HOME": str(self.folder), "NAME": name, "POLICY": str(self.policy)}
        process = subprocess.Popen(
            ["bash", self.folder / "packages", "a-command-of-no-package=package"],  # noqa: S607
            env=own,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def go(self, name: str) -> None:
        """Let its apt-get end."""
        (self.folder / f"go-{name}").touch()

    @property
    def heard(self) -> list[str]:
        path = self.folder / "heard"
        return path.read_text().splitlines() if path.exists() else []

    def end(self) -> None:
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    ours = Machine(tmp_path)
    try:
        yield ours
    finally:
        ours.end()


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)  # between two looks


def test_no_service_starts_and_the_next_one_may(machine: Machine) -> None:
    machine.go("one")
    assert machine.start("one").wait(PATIENCE) == 0
    assert machine.heard == ["one begins 101", "one ends 101"]
    assert not machine.policy.exists()


def test_what_one_that_was_killed_has_left_goes_with_the_next(machine: Machine) -> None:
    machine.start("one")
    until(lambda: machine.heard)
    machine.end()
    assert machine.policy.exists()
    machine.go("two")
    assert machine.start("two").wait(PATIENCE) == 0
    assert machine.heard[1:] == ["two begins 101", "two ends 101"]
    assert not machine.policy.exists()


def test_somebody_elses_rule_stays(machine: Machine) -> None:
    machine.policy.write_text("#!/bin/sh\nexit 104\n")
    machine.policy.chmod(0o755)
    machine.go("one")
    assert machine.start("one").wait(PATIENCE) == 0
    assert machine.heard == ["one begins 104", "one ends 104"]
    assert machine.policy.read_text() == "#!/bin/sh\nexit 104\n"


def test_a_rule_that_somebody_puts_there_meanwhile_stays(machine: Machine) -> None:
    process = machine.start("one")
    until(lambda: machine.heard)
    machine.policy.write_text("#!/bin/sh\nexit 104\n")
    machine.go("one")
    assert process.wait(PATIENCE) == 0
    assert machine.policy.exists()


def waits_for_the_other(process: subprocess.Popen[bytes]) -> bool:
    return any(child.name() == "flock" for child in psutil.Process(process.pid).children())


def test_of_two_at_once_neither_takes_it_away_from_the_other(machine: Machine) -> None:
    first = machine.start("one")
    until(lambda: machine.heard)
    second = machine.start("two")
    until(lambda: "two begins 101" in machine.heard or waits_for_the_other(second))
    machine.go("one")
    assert first.wait(PATIENCE) == 0
    machine.go("two")
    assert second.wait(PATIENCE) == 0
    assert machine.heard == ["one begins 101", "one ends 101", "two begins 101", "two ends 101"]
    assert not machine.policy.exists()
