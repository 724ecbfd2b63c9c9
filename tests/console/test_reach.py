"""A local cluster whose cloud is away: what an operator is told hangs on its processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.processes import STOPPED, Known, began, condition, forget, tell
from console.reach import enter, reach, running
from sgfusion.errors import DataError, InputError, UnavailableError
from sgfusion.wire.service import ADDRESS
from tests.console.commands import sgfusion

PATIENCE = 30.0


@pytest.fixture
def cloud() -> Iterator[Known]:
    """A process that stands for one."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield Known("cloud", process.pid, began(process.pid))
        process.kill()


@pytest.fixture
def state(tmp_path: Path, cloud: Known) -> Path:
    """That of a cluster whose keeper is this process."""
    state = tmp_path / "cluster" / "0123"
    (state / "cloud").mkdir(parents=True)
    enter(state, None)
    tell(state, "sgfusion up", [cloud])
    return state


def test_one_that_is_being_started_again_is_not_said_to_be_none(tmp_path: Path, state: Path) -> None:
    with pytest.raises(UnavailableError, match="is away, and sgfusion up starts it again: try again in seconds"):
        reach(tmp_path, None, None, insecure=True)
    forget(state)
    with pytest.raises(DataError, match="no cluster runs in"):
        reach(tmp_path, None, None, insecure=True)


def test_a_keeper_that_was_killed_starts_nobody(tmp_path: Path, state: Path) -> None:
    path = state / "processes.json"
    path.write_text(path.read_text().replace(f'"began": {began(os.getpid())}', '"began": 1'))
    with pytest.raises(DataError, match="no cluster runs in"):
        reach(tmp_path, None, None, insecure=True)


def test_one_that_does_not_answer_is_looked_at(tmp_path: Path, state: Path, cloud: Known) -> None:
    (state / "cloud" / ADDRESS).write_text("127.0.0.1:1\n")
    found = reach(tmp_path, None, None, insecure=True)
    with pytest.raises(UnavailableError, match=rf"sgfusion doctor {tmp_path} looks at its processes"):
        found.ask(lambda client: client.status())
    os.kill(cloud.pid, signal.SIGSTOP)
    until = time.monotonic() + PATIENCE
    while condition(cloud) != STOPPED:
        assert time.monotonic() < until
        time.sleep(0.01)  # between two looks
    with pytest.raises(UnavailableError, match=f"its process is frozen .*; kill -CONT {cloud.pid} lets it go on"):
        found.ask(lambda client: client.status())


def test_the_one_cluster_that_runs_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has a results folder of a run that is over, or was killed, is passed over."""
    monkeypatch.chdir(tmp_path)
    for name in ("demo", "long", "over"):
        Path("results", name, "cluster", "0123").mkdir(parents=True)
    for command in (["status"], ["watch"], ["join", "--zone", "elm"]):
        refused = sgfusion(capsys, *command)
        assert refused.code == 1
        assert "no cluster runs in results/ here: give its results folder" in refused.error
    tell(Path("results", "long", "cluster", "0123"), "sgfusion up", [])
    assert running() == Path("results", "long")
    for command in (["status"], ["watch"], ["join", "--zone", "elm"]):
        assert "the cloud in results/long is away" in " ".join(sgfusion(capsys, *command).error.split())
    tell(Path("results", "demo", "cluster", "0123"), "sgfusion up", [])
    with pytest.raises(InputError, match=r"several clusters run here: give one of results/demo, results/long$"):
        running()
