"""A local cluster whose cloud is away: what an operator is told hangs on its processes."""

import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from console import processes
from console.processes import STOPPED, Known, began, condition, forget, tell
from console.reach import Reached, ended_early, enter, frozen_in, reach, running
from console.watch import InFolder, Onlooker, once_there
from sgfusion.errors import DataError, InputError, UnavailableError
from sgfusion.plan import ZoneState
from sgfusion.reports import RunStatus, ZoneStatus
from sgfusion.wire.service import ADDRESS, PAGE
from simulator.held_folder import LOCK, held
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


def freeze(process: Known) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    until = time.monotonic() + PATIENCE
    while condition(process) != STOPPED:
        assert time.monotonic() < until
        time.sleep(0.01)  # between two looks


def test_one_that_is_being_started_again_is_not_said_to_be_none(tmp_path: Path, state: Path) -> None:
    with pytest.raises(UnavailableError, match="is away, and sgfusion up starts it again: try again in seconds"):
        reach(tmp_path, None, None, insecure=True)
    forget(state)
    with pytest.raises(DataError, match="no cluster runs in"):
        reach(tmp_path, None, None, insecure=True)


def test_a_run_that_ended_early_is_not_to_be_started_as_if_it_were_none(tmp_path: Path, state: Path) -> None:
    begun, ended = state / "run.toml", tmp_path / "cluster" / "finished.json"
    begun.write_text("")
    assert not ended_early(tmp_path), "it runs"
    forget(state)
    (tmp_path / "summary.json").write_text("{}")  # of a run before it
    with pytest.raises(
        DataError, match=r"no cluster runs in .*: its run was stopped, and sgfusion up goes on with it$"
    ):
        reach(tmp_path, None, None, insecure=True)
    at_work = r": its run has sgfusion up at work, before or after it trains together: try again in a moment$"
    with held(tmp_path), pytest.raises(UnavailableError, match=at_work):
        reach(tmp_path, None, None, insecure=True)
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).symlink_to(LOCK)  # as one that is another user's: it cannot be opened
    with pytest.raises(DataError, match=r": its run has not finished, and whether sgfusion up is still at work is not"):
        reach(tmp_path, None, None, insecure=True)
    (tmp_path / LOCK).unlink()
    ended.write_text("{}")
    os.utime(ended, (begun.stat().st_mtime,) * 2)  # as a disk or a copy may have it
    assert not ended_early(tmp_path), "it has finished"
    with pytest.raises(DataError, match="it has the results of a run that is over"):
        reach(tmp_path, None, None, insecure=True)


def test_who_still_loads_is_not_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`up` has nothing to write until it has loaded; `simulate` and `follow` hold a folder too."""
    monkeypatch.chdir(tmp_path)
    folder = Path("results", "demo")
    loads = "a sgfusion command is at work, and if that is sgfusion up it still loads: try again in a moment"
    with held(folder):
        for command in (["status"], ["join", "--zone", "elm"]):
            assert f"results/demo {loads}" in " ".join(sgfusion(capsys, *command).error.split())
            assert f"There {loads}" in " ".join(sgfusion(capsys, *command, folder).error.split())
        assert f"There {loads}" in sgfusion(capsys, "doctor", folder, "--json").out
        (folder / "cluster").mkdir()
        (folder / "cluster" / "finished.json").write_text("{}")  # and zones are trained alone, or the table is printed
        assert "(results/demo has finished)" in " ".join(sgfusion(capsys, "status").error.split())
    with pytest.raises(DataError, match=r"no cluster runs in .*: start one there with sgfusion up"):
        reach(folder, None, None, insecure=False)


def test_who_begins_to_watch_while_it_loads_waits_for_it_and_no_longer_than_a_deadline() -> None:
    out, tries = io.StringIO(), list[int]()
    screen = Console(file=out, width=200)

    def look() -> Path:
        tries.append(1)
        if len(tries) < 3:
            raise UnavailableError("it still loads: try again in a moment")
        return Path("results")

    assert once_there(look, screen) == Path("results")
    assert out.getvalue() == "it still loads: waits for it, 120 s at most\n"
    tries.clear()
    with pytest.raises(UnavailableError, match="it still loads: try again in a moment"):
        once_there(look, screen, within=-1.0)


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
    freeze(cloud)
    with pytest.raises(UnavailableError, match=f"its process is frozen .*; kill -CONT {cloud.pid} lets it go on"):
        found.ask(lambda client: client.status())


def test_status_looks_at_the_processes_of_a_cluster_here_and_of_zones_that_joined(
    tmp_path: Path, state: Path, cloud: Known, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "cloud" / ADDRESS).write_text("127.0.0.1:1\n")
    calm = RunStatus("tiny", 8, 1, "", (ZoneStatus(0, "elm", "", ZoneState.TRAINING),), finished=False)
    monkeypatch.setattr(Reached, "ask", lambda *_: calm)
    assert "frozen" not in sgfusion(capsys, "status", tmp_path).out
    tell(state, "sgfusion up", [replace(cloud, name="edge-elm")])
    freeze(cloud)
    words = f"is frozen (stopped by a signal); kill -CONT {cloud.pid} lets it go on"
    assert f"edge-elm {words}" in sgfusion(capsys, "status", tmp_path).out.splitlines()
    calm = replace(calm, zones=(replace(calm.zones[0], state=ZoneState.LOST),))
    assert "elm: lost: nothing is heard of its edge, which is frozen." in sgfusion(capsys, "status", tmp_path).out
    assert InFolder(tmp_path).frozen() == {"elm"}
    tell(state, "sgfusion up", [])
    joined = state / "joined" / "valley"
    joined.mkdir(parents=True)
    tell(joined, "sgfusion join", [replace(cloud, name="edge-valley")])
    assert f"edge-valley {words}" in sgfusion(capsys, "status", tmp_path).out.splitlines()
    path = joined / "processes.json"
    path.write_text(path.read_text().replace(socket.gethostname(), "elsewhere"))
    assert frozen_in(tmp_path) == [], "ids of another host are nobody's here"
    assert frozen_in(None) == []


def test_watch_tells_once_who_stands_still_and_once_that_it_goes_on(
    tmp_path: Path, state: Path, cloud: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LOOK_EVERY", 0.0)
    tell(state, "sgfusion up", [cloud])
    watched = InFolder(tmp_path)
    assert watched.revive() == []
    freeze(cloud)
    assert watched.revive() == [f"cloud is frozen (stopped by a signal); kill -CONT {cloud.pid} lets it go on"]
    assert watched.revive() == []
    os.kill(cloud.pid, signal.SIGCONT)
    until = time.monotonic() + PATIENCE
    while not (said := watched.revive()):
        assert time.monotonic() < until
        time.sleep(0.01)  # between two looks
    assert [line.partition(" for ")[0] for line in said] == ["cloud goes on: it was frozen"]
    freeze(cloud)
    assert len(watched.revive()) == 1, "told anew"
    os.kill(cloud.pid, signal.SIGKILL)
    while condition(cloud):
        assert time.monotonic() < until
        time.sleep(0.01)  # between two looks
    assert watched.revive() == [], "that it has ended is another's to tell"


def test_watch_tells_who_was_started_again_since_it_looks(
    tmp_path: Path, state: Path, cloud: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LOOK_EVERY", 0.0)
    ash = Known("edge-ash", cloud.pid, cloud.began, restarts=2, ended="with 1")
    tell(state, "sgfusion up", [cloud, ash])
    watched = InFolder(tmp_path)
    assert watched.revive() == [], "what was before is history"
    tell(state, "sgfusion up", [cloud, replace(ash, restarts=3, ended="by SIGKILL")])
    assert watched.revive() == ["edge-ash has ended by SIGKILL: started again"]
    assert watched.revive() == []


def test_each_command_has_a_devices_0_of_its_own(
    tmp_path: Path, state: Path, cloud: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LOOK_EVERY", 0.0)
    ours = replace(cloud, name="devices-0", restarts=3, zones=("ash", "elm"))
    theirs = replace(cloud, name="devices-0", restarts=0, zones=("valley",))
    joined = state / "joined" / "valley"
    joined.mkdir(parents=True)
    tell(state, "sgfusion up", [ours])
    tell(joined, "sgfusion join", [theirs])
    (joined / "processes.json").write_text(  # tests are one process, commands are two
        (joined / "processes.json")
        .read_text()
        .replace(f'"pid": {os.getpid()},', f'"pid": {cloud.pid},')
        .replace(f'"began": {began(os.getpid())},', f'"began": {cloud.began},')
    )
    watched = InFolder(tmp_path)
    assert watched.revive() == watched.revive() == []
    tell(state, "sgfusion up", [replace(ours, restarts=4, ended="by SIGKILL")])
    assert watched.revive() == ["devices-0 has ended by SIGKILL: started again"]
    assert watched.revive() == []


def test_who_watches_a_cluster_that_ended_early_is_not_told_that_it_does_not_serve_yet(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"^it does not serve: sgfusion up was stopped, and goes on if"):
        Onlooker(InFolder(tmp_path), Console(quiet=True))._address()


def test_what_trains_is_not_said_to_be_no_results(
    tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "cloud" / ADDRESS).write_text("127.0.0.1:1\n")
    assert f"{tmp_path} is being trained: it has no page" in sgfusion(capsys, "view", tmp_path).error
    (state / "cloud" / PAGE).write_text("http://127.0.0.1:7080/\n")
    assert "is being trained: its page is http://127.0.0.1:7080/" in sgfusion(capsys, "view", tmp_path).error


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
    Path("results", "over", "cluster", "finished.json").write_text("{}")
    said = " ".join(sgfusion(capsys, "status").error.split())
    assert "no cluster runs in results/ here (results/over has finished): give its results folder" in said
    begun = Path("results", "demo", "cluster", "0123", "run.toml")
    begun.write_text("")
    os.utime(begun, (time.time() + 60,) * 2)
    said = " ".join(sgfusion(capsys, "status").error.split())
    assert "here (results/demo was stopped, and sgfusion up goes on with it): give its" in said
    ended = Path("results", "demo", "cluster", "finished.json")
    ended.write_text("{}")
    for later, stopped in ((120, "has finished"), (0, "was stopped, and sgfusion up goes on with it")):
        os.utime(ended, (time.time() + later,) * 2)  # an earlier run in the same folder is not the last one
        assert f"here (results/demo {stopped}): give its" in " ".join(sgfusion(capsys, "status").error.split())
    with held(Path("results", "demo")):
        said = " ".join(sgfusion(capsys, "status").error.split())
    assert "no cluster runs in results/ here. In results/demo a sgfusion command is at work" in said
    beside = Path("results", "over", "cluster", "alone", "run.toml")
    beside.parent.mkdir()
    beside.write_text("")
    os.utime(beside, (time.time() + 180,) * 2)
    assert "results/over" not in sgfusion(capsys, "status").error, "who trains alone is no cluster"
    tell(Path("results", "long", "cluster", "0123"), "sgfusion up", [])
    assert running() == Path("results", "long")
    for command in (["status"], ["watch"], ["join", "--zone", "elm"]):
        assert "the cloud in results/long is away" in " ".join(sgfusion(capsys, *command).error.split())
    tell(Path("results", "demo", "cluster", "0123"), "sgfusion up", [])
    with pytest.raises(InputError, match=r"several clusters run here: give one of results/demo, results/long$"):
        running()
