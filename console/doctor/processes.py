"""The processes of `sgfusion up` and of zones that joined: who runs, is frozen, is gone, or ends again and again."""

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from console.doctor.findings import Finding, broken, look, ok
from console.processes import FILE, FROZEN, Known, condition, last_lines, told

Condition = Literal["runs", "frozen", "gone"]
AGAIN = "type it again, with the same words: it goes on where it was"
KILLED = "by SIGKILL"
SHOWN = 300
"""Characters of what a process said last."""
STARTING = 30.0
"""Seconds in which one that was started again may not serve yet for that very reason."""


@dataclass(frozen=True)
class Process:
    """One of them as it is now."""

    name: str
    pid: int
    state: Condition = "runs"
    restarts: int = 0
    ago: float = 0.0
    """Seconds since it was last started."""
    ended: str = ""
    """How the one before it ended."""
    said: str = ""
    """What it said last if it is gone; else what the one before it did."""
    log: Path = Path()
    zones: tuple[str, ...] = ()

    @property
    def serves(self) -> frozenset[str]:
        """What is in trouble when it is, as findings call it; without its edge a zone has no devices either."""
        if self.name == "cloud":
            return frozenset({"cloud"})
        edge = {f"edge {zone}" for zone in self.zones if self.name.startswith("edge-")}
        return frozenset(edge | {f"devices of {zone}" for zone in self.zones})


@dataclass(frozen=True)
class Group:
    """What one command has started. `elsewhere` is the host on which it was, if that is not this one."""

    keeper: Process
    processes: tuple[Process, ...]
    elsewhere: str = ""


def look_at_processes(folder: Path) -> list[Group]:
    """Those of the run that was last started in that results folder, and of the zones that joined it."""
    known: list[tuple[float, Path]] = []
    for path in folder.glob(f"cluster/*/{FILE}"):
        with suppress(FileNotFoundError):  # a cluster that stops removes it
            known.append((path.stat().st_mtime, path.parent))
    if not known or not Path("/proc/self/stat").exists():  # a system without it tells nothing of processes
        return []
    run = max(known)[1]
    return [group for place in (run, *sorted(run.glob("joined/*"))) for group in _look(place)]


def _look(place: Path) -> Iterator[Group]:
    crew = told(place)
    if crew is None:
        return
    elsewhere = "" if crew.host == socket.gethostname() else crew.host
    processes = tuple(_seen(each, place / "logs" / f"{each.name}.log") for each in crew.processes)
    yield Group(_seen(crew.keeper, Path()), processes, elsewhere)


def _seen(known: Known, log: Path) -> Process:
    found = condition(known)
    state: Condition = "gone" if not found else "frozen" if found in FROZEN else "runs"
    said = known.said if state != "gone" else last_lines(log)
    return Process(
        known.name, known.pid, state, known.restarts, time.time() - known.since, known.ended, said, log, known.zones
    )


def process_findings(groups: Iterable[Group]) -> list[Finding]:
    """Of each command first who looks after its processes: whether one that is gone comes back depends on that."""
    return [finding for group in groups for finding in _of_group(group)]


def _of_group(group: Group) -> Iterator[Finding]:
    keeper, count = group.keeper, len(group.processes)
    whose = f"{keeper.name} (process {keeper.pid})"
    if group.elsewhere:
        yield look(
            "processes", f"{whose} was started on {group.elsewhere}", "look there: processes are not seen from here"
        )
        return
    there = [process for process in group.processes if process.state != "gone"]
    if keeper.state == "gone":
        gone = frozenset[str]().union(*(process.serves for process in group.processes if process.state != "runs"))
        yield replace(_left_alone(whose, there, count), explains=gone)
        return
    if count and all(process.state == "runs" for process in group.processes):  # else the others are told one by one
        yield ok("processes", f"{count} of {count} of {whose} run")
    if keeper.state == "frozen":
        yield look(
            "processes",
            f"{whose} is frozen: what ends is not started again",
            f"type fg in its terminal, or kill -CONT {keeper.pid}",
        )
    for process in group.processes:
        yield from _of_process(process, keeper)


def _left_alone(whose: str, there: list[Process], count: int) -> Finding:
    if not there:
        return broken("processes", f"{whose} was killed, and none of its {count} processes is left", AGAIN)
    named = ", ".join(f"{process.name} ({process.pid})" for process in there)
    pids = " ".join(str(process.pid) for process in there)
    return broken(
        "processes",
        f"{whose} was killed, and {len(there)} of its {count} processes are left: {named}",
        f"they end by themselves in a second or two; those that do not: kill -9 {pids}. Then {AGAIN}",
    )


def _of_process(process: Process, keeper: Process) -> Iterator[Finding]:
    check = f"process {process.name}"
    killed = process.ended == KILLED and process.state != "gone"
    said = f"; it said: {_short(process.said)}" if process.said and not killed else ""
    if process.state == "gone":
        comes = (
            f"{keeper.name} (process {keeper.pid}) starts it again in a few seconds: look again. If it stays away:"
            if keeper.state == "runs"
            else f"wake {keeper.name}, which would start it again: kill -CONT {keeper.pid}. What it said:"
        )
        gone = broken(check, f"process {process.pid} is gone{said}", f"{comes} {process.log}")
        yield replace(gone, explains=process.serves)
    elif process.state == "frozen":
        frozen = f"process {process.pid} is frozen: a signal has stopped it"
        yield replace(broken(check, frozen, f"kill -CONT {process.pid}"), explains=process.serves)
    if process.restarts:
        times = "once" if process.restarts == 1 else f"{process.restarts} times"
        ended = f", after one that ended {process.ended}" if process.ended else ""
        words = f"started again {times}, the last time {_ago(process.ago)} ago{ended}"
        why = "somebody killed it, or the system did for want of memory: dmesg says which" if killed else ""
        again = look(check, f"{words}{said}", why or f"its log says why: {process.log}")
        starting = process.state == "runs" and process.ago < STARTING
        yield replace(again, explains=process.serves if starting else frozenset())


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"…{line[1 - SHOWN :]}"


def _ago(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 120 else f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"
