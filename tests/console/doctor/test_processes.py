"""Who of a local cluster runs: exact findings from facts; facts from real processes."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.doctor.findings import Finding, broken, look, ok
from console.doctor.processes import AGAIN, Group, Process, look_at_processes, process_findings
from console.processes import FILE, Known, began, condition, forget, how_it_ended, tell, told

UP = Process("sgfusion up", 9)
CLOUD = Process("cloud", 12)
ASH = Process("edge-ash", 13, log=Path("logs/edge-ash.log"))


def found(*processes: Process, keeper: Process = UP, elsewhere: str = "") -> list[Finding]:
    return process_findings([Group(keeper, processes, elsewhere)])


def test_all_run() -> None:
    assert found(CLOUD, ASH) == [ok("processes", "2 of 2 of sgfusion up (process 9) run")]
    assert process_findings([]) == []


def test_one_that_is_gone_while_somebody_is_there_to_start_it_again() -> None:
    assert found(CLOUD, replace(ASH, state="gone", said="no room\non disk")) == [
        broken(
            "process edge-ash",
            "process 13 is gone; it said: no room on disk",
            "sgfusion up (process 9) starts it again in a few seconds: look again. If it stays away: logs/edge-ash.log",
        ),
    ]


def test_one_that_is_gone_while_nobody_starts_it_again() -> None:
    """`up` was stopped by Ctrl-Z, say."""
    frozen = replace(UP, state="frozen")
    assert found(CLOUD, replace(ASH, state="gone"), keeper=frozen) == [
        look(
            "processes",
            "sgfusion up (process 9) is frozen: what ends is not started again",
            "type fg in its terminal, or kill -CONT 9",
        ),
        broken(
            "process edge-ash",
            "process 13 is gone",
            "wake sgfusion up, which would start it again: kill -CONT 9. What it said: logs/edge-ash.log",
        ),
    ]


def test_one_that_is_frozen() -> None:
    frozen = broken("process edge-ash", "process 13 is frozen: a signal has stopped it", "kill -CONT 13")
    assert found(CLOUD, replace(ASH, state="frozen")) == [frozen]


def test_one_that_was_started_again_and_again() -> None:
    again = replace(ASH, restarts=7, ago=75.2, ended="with 1", said="error: no room")
    (_, told) = found(CLOUD, again)
    assert told == look(
        "process edge-ash",
        "started again 7 times, the last time 75 s ago, after one that ended with 1; it said: error: no room",
        "its log says why: logs/edge-ash.log",
    )
    (_, once) = found(CLOUD, replace(ASH, restarts=1, ago=7300.0, ended="by SIGKILL", said="device u1 attends"))
    assert once.text == "started again once, the last time 2 h ago, after one that ended by SIGKILL"
    assert "somebody killed it, or the system did for want of memory" in once.remedy  # its log cannot say
    (_, long) = found(CLOUD, replace(again, said="x" * 5000))
    assert len(long.text) < 500


def test_up_was_killed_and_nothing_is_left() -> None:
    gone = [replace(each, state="gone") for each in (CLOUD, ASH)]
    killed = "sgfusion up (process 9) was killed, and none of its 2 processes is left"
    assert found(*gone, keeper=replace(UP, state="gone")) == [broken("processes", killed, AGAIN)]


def test_up_was_killed_and_something_is_left() -> None:
    """Who is frozen cannot notice that its parent is gone."""
    (left,) = found(replace(CLOUD, state="frozen"), replace(ASH, state="gone"), keeper=replace(UP, state="gone"))
    assert left.verdict == "broken"
    assert left.text == "sgfusion up (process 9) was killed, and 1 of its 2 processes are left: cloud (12)"
    assert left.remedy.endswith(f"kill -9 12. Then {AGAIN}")


def test_what_runs_on_another_host_is_not_judged_from_here() -> None:
    (there,) = found(replace(CLOUD, state="gone"), elsewhere="oak")
    assert (there.verdict, there.text) == ("look", "sgfusion up (process 9) was started on oak")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])  # noqa: S607
    yield process
    process.kill()
    process.wait()


def known(process: subprocess.Popen[bytes], name: str = "edge-ash") -> Known:
    return Known(name, process.pid, began(process.pid), time.time())


def a_cluster(folder: Path, *processes: Known) -> Path:
    state = folder / "cluster" / "mark"
    tell(state, "sgfusion up", list(processes))
    return state


def states(folder: Path) -> dict[str, str]:
    return {process.name: process.state for group in look_at_processes(folder) for process in group.processes}


def test_a_process_that_runs_is_frozen_and_is_gone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    state = a_cluster(tmp_path, known(sleeper))
    (group,) = look_at_processes(tmp_path)
    assert (group.keeper.name, group.keeper.pid, group.keeper.state) == ("sgfusion up", os.getpid(), "runs")
    assert states(tmp_path) == {"edge-ash": "runs"}
    sleeper.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
    assert states(tmp_path) == {"edge-ash": "frozen"}
    (state / "logs").mkdir()
    (state / "logs" / "edge-ash.log").write_text("goes on\nno room on disk\nno room on disk\n")
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # dead, and its parent has not asked yet
    assert states(tmp_path) == {"edge-ash": "gone"}
    sleeper.wait()
    ((gone,),) = [group.processes for group in look_at_processes(tmp_path)]
    assert (gone.state, gone.said) == ("gone", "goes on\nno room on disk")
    assert gone.log == state / "logs" / "edge-ash.log"


def test_an_id_that_is_anothers_by_now_is_not_taken_for_ours(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """This very process has the id of a service that began at another time."""
    assert condition(known(sleeper)) != ""
    a_cluster(tmp_path, replace(known(sleeper), began=began(sleeper.pid) - 1))
    assert states(tmp_path) == {"edge-ash": "gone"}


def test_the_command_that_started_them_is_gone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    state = a_cluster(tmp_path, known(sleeper))
    said = json.loads((state / FILE).read_text())
    said["keeper"]["began"] -= 1
    (state / FILE).write_text(json.dumps(said))
    (left,) = process_findings(look_at_processes(tmp_path))
    assert (
        f"(process {os.getpid()}) was killed, and 1 of its 1 processes are left: edge-ash ({sleeper.pid})" in left.text
    )


def test_the_last_run_of_a_folder_and_zones_that_joined_it(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    before = tmp_path / "cluster" / "before"
    tell(before, "sgfusion up", [known(sleeper, "of another run")])
    os.utime(before / FILE, (1, 1))
    state = a_cluster(tmp_path, known(sleeper))
    tell(state / "joined" / "gum", "sgfusion join", [known(sleeper, "edge-gum")])
    assert states(tmp_path) == {"edge-ash": "runs", "edge-gum": "runs"}
    assert [group.keeper.name for group in look_at_processes(tmp_path)] == ["sgfusion up", "sgfusion join"]
    forget(state)
    forget(before)
    assert look_at_processes(tmp_path) == []
    assert told(state) is None


def test_how_a_process_ended() -> None:
    assert (how_it_ended(1), how_it_ended(-9)) == ("with exit code 1", "by SIGKILL")
    assert how_it_ended(-35) == "by signal 35"  # one that has no name


@pytest.mark.parametrize("text", ["half of", "[]", "{}", '{"keeper": {}, "host": "h", "processes": []}'])
def test_a_list_that_cannot_be_understood_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster" / "run").mkdir(parents=True)
    (tmp_path / "cluster" / "run" / "processes.json").write_text(text)
    assert look_at_processes(tmp_path) == []
