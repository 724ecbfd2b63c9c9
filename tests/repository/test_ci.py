"""`.ci/run` as it stands, in a folder where all that takes long is a script that tells that it was called.

`deploy/engine` is the real one and starts a process by the name of dockerd; that one is always to be ended.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
DOCKERD = """
echo $$ >"$HOME/engine"
if [[ $FAILS == dockerd ]]; then echo "no bridge here"; exit 1; fi
if [[ $FAILS == "make check" ]]; then until grep -qx "make check" "$HOME/failed"; do sleep 0.05; done; fi # slow to come
trap 'rm "$HOME/answers"; echo "engine ended" >>"$HOME/heard"; exit' TERM
touch "$HOME/answers"
echo "level=info msg=ready"
while :; do sleep 0.05; done
"""
DOCKER = 'if [[ $1 == info ]]; then [[ -e $HOME/answers ]]; else tells docker "$@"; fi'
TELLS = """
tells() {
  local step="$*"
  echo "$step" >>"$HOME/heard"
  if [[ $1 == make ]]; then env >"$HOME/environment of make $2"; fi
  if [[ $step == "$WAITS" ]]; then touch "$HOME/waits"; while :; do sleep 0.05; done; fi
  if [[ $step == "$FAILS"* ]]; then
    echo "$step: it fails here"
    echo "$FAILS" >>"$HOME/failed"
    exit 7
  fi
}
"""
TOOLS = [".ci/compose2", ".ci/kubectl", ".ci/packages"]
"""In the background, after the engine."""
FIRST = ["make install", "make check"]
"""Meanwhile."""
STEPS = ["docker-compose version", "docker compose version", "make images", "make demo", "make test"]
"""After both."""
LAST = "make test WORKERS=4"
HEEDED = (shutil.which("env") or "env", "--default-signal=HUP")
"""Also below a `nohup make test`: what a parent ignores no shell can trap."""


@dataclass
class Machine:
    """A copy of the script in a folder, which is also the home and has what is temporary."""

    folder: Path
    path: str = field(init=False)
    started: list[subprocess.Popen[str]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        for name in (".ci", "deploy", "bin"):
            (self.folder / name).mkdir()
        shutil.copy2(ROOT / ".ci" / "run", self.folder / ".ci")
        shutil.copy2(ROOT / "deploy" / "engine", self.folder / "deploy")
        (self.folder / "failed").touch()
        for tool in TOOLS:
            self._script(tool, f'tells {tool} "$@"')
        for command in ("make", "docker-compose"):
            self._script(f"bin/{command}", f'tells {command} "$@"')
        for command, does in {"docker": DOCKER, "dockerd": DOCKERD, "id": "echo 0"}.items():
            self._script(f"bin/{command}", does)
        for command in ("iptables", "debootstrap"):
            self._script(f"bin/{command}", "exit 1")  # they are here, and nobody calls them
        self.path = f"{self.folder / 'bin'}:{os.environ['PATH']}"

    def _script(self, name: str, does: str) -> None:
        (self.folder / name).write_text(f"#!{shutil.which('bash')}\n{TELLS}{does}\n")
        (self.folder / name).chmod(0o755)

    def start(self, fails: str = "nothing", waits: str = "") -> subprocess.Popen[str]:
        home = str(self.folder)
        own = {"PATH": self.path, "HOME": home, "TMPDIR": home, "FAILS": fails, "WAITS": waits}
        with (self.folder / "said").open("wb") as said:
            process = subprocess.Popen(
                [*HEEDED, self.folder / ".ci" / "run"],
                env=own,
                cwd="/",  # it finds its tree itself
                stdout=said,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Whatever is left of what was started: steps that wait, and the engine, which has a session of its own."""
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for left in self.left():
            with suppress(psutil.NoSuchProcess):
                left.kill()

    def left(self) -> list[psutil.Process]:
        """Processes with this home that have not ended."""
        home = str(self.folder)
        return [each for each in psutil.process_iter(["environ"]) if (each.info["environ"] or {}).get("HOME") == home]

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    @property
    def heard(self) -> list[str]:
        """The steps, in the order of their begin."""
        return (self.folder / "heard").read_text().splitlines()

    def environment(self, step: str) -> dict[str, str]:
        lines = (self.folder / f"environment of {step}").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def left_nothing(self) -> bool:
        """Neither an engine nor a temporary folder."""
        return not (self.folder / "answers").exists() and not list(self.folder.glob("tmp.*"))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    ours = Machine(tmp_path)
    try:
        yield ours
    finally:
        ours.end()


def begins(heard: list[str], *steps: str) -> list[str]:
    """Which of these steps were heard, in the order in which they were."""
    return [step for each in heard for step in steps if each.startswith(step)]


def test_all_steps_in_their_order_and_an_engine_that_ends_with_them(machine: Machine) -> None:
    assert machine.start().wait(PATIENCE) == 0, machine.said
    heard = machine.heard
    assert begins(heard, *FIRST, *STEPS) == [*FIRST, *STEPS]
    assert begins(heard, *TOOLS, *STEPS) == [*TOOLS, *STEPS]
    assert len(heard) == len([*FIRST, *TOOLS, *STEPS, "engine ended"])
    assert heard[-2:] == [LAST, "engine ended"]
    assert machine.left_nothing()
    assert "last lines" not in machine.said


def test_what_was_installed_is_used_and_no_test_is_skipped_for_want_of_a_program(machine: Machine) -> None:
    assert machine.start().wait(PATIENCE) == 0, machine.said
    environment = machine.environment("make test")
    place = environment["DOCKER_CONFIG"].removesuffix("/docker")
    assert Path(place).parent == machine.folder
    assert environment["PATH"].startswith(f"{place}/bin:")
    assert {f".ci/compose2 {place}/docker", f".ci/kubectl {place}/bin"} <= set(machine.heard)
    known = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"\bSGFUSION_REQUIRE_[A-Z]+\b", path.read_text("utf-8"))
    }
    assert {"SGFUSION_REQUIRE_DOCKER", "SGFUSION_REQUIRE_SSH"} <= known
    assert {name: environment.get(name) for name in known} == dict.fromkeys(known, "1")


@pytest.mark.parametrize("step", [*FIRST, *TOOLS, *STEPS])
def test_a_step_that_fails_ends_it_and_the_engine_that_it_started(step: str, machine: Machine) -> None:
    assert machine.start(fails=step).wait(PATIENCE) != 0
    heard = machine.heard
    assert "it fails here" in machine.said  # of a step in the background too
    order = [*(TOOLS if step in TOOLS else FIRST), *STEPS]
    assert begins(heard, *order) == order[: order.index(step) + 1]
    assert heard[-1] == "engine ended"
    assert machine.left_nothing()
    assert "The engine's last lines:\nlevel=info msg=ready\n" in machine.said


def test_an_engine_that_does_not_come_up_fails_and_says_why(machine: Machine) -> None:
    assert machine.start(fails="dockerd").wait(PATIENCE) == 1
    assert "The engine did not come up within 60 s" in machine.said
    assert "The engine's last lines:\nno bridge here\n" in machine.said
    assert begins(machine.heard, *TOOLS, *STEPS) == []
    assert machine.left_nothing()


def test_an_engine_that_was_there_before_stays(machine: Machine) -> None:
    (machine.folder / "answers").touch()
    assert machine.start().wait(PATIENCE) == 0, machine.said
    assert "A Docker engine answers already." in machine.said
    assert machine.heard[-1] == LAST
    (machine.folder / "answers").unlink()
    assert machine.left_nothing()


def waiting(machine: Machine) -> subprocess.Popen[str]:
    """At its last step, which does not end by itself."""
    process = machine.start(waits=LAST)
    until = time.monotonic() + PATIENCE
    while not (machine.folder / "waits").exists():
        assert process.poll() is None, machine.said
        assert time.monotonic() < until, machine.said
        time.sleep(0.02)  # between two looks
    return process


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_it_ends_the_engine_too(by: signal.Signals, machine: Machine) -> None:
    process = waiting(machine)
    process.send_signal(by)
    assert process.wait(PATIENCE) != 0
    assert machine.heard[-1] == "engine ended"
    assert machine.left_nothing()


def test_a_test_that_gives_up_leaves_nothing_running(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    try:
        waiting(machine)
        assert machine.left()
    finally:
        machine.end()
    until = time.monotonic() + PATIENCE
    while left := machine.left():  # who is told to end takes a moment
        assert time.monotonic() < until, left
        time.sleep(0.02)  # between two looks
