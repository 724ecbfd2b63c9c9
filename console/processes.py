"""Which processes a local cluster has: `processes.json` in its state, for who looks from outside (`sgfusion doctor`).

Written anew whenever one is started, and removed when all were stopped in order: if it is there and they are not,
somebody has killed them. A process is known by its id and by when it began, for ids are given out again.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from sgfusion.durable import replace_file

FILE = "processes.json"
STOPPED = "T"
FROZEN = frozenset({STOPPED, "t"})
"""What Linux calls a process that a signal or a debugger has stopped; one that has ended, and that nobody has asked
about yet, is a Z or an X."""
ENDED = frozenset("ZX")
LOOK_EVERY = 1.0
"""Seconds between two looks at whether processes stand still: there may be hundreds of them."""


@dataclass(frozen=True)
class Known:
    """A process that somebody has started."""

    name: str
    pid: int
    began: int
    """In ticks since the machine started, by the system's own table; 0 if it has none, or was too late for it."""
    since: float = 0.0
    """When it was started, in seconds since 1970."""
    restarts: int = 0
    """How often it was started again, it or those before it."""
    ended: str = ""
    """How the one before it ended."""
    said: str = ""
    """What that one said last."""
    zones: tuple[str, ...] = ()
    """Whose edge it is, or whose devices it has."""


@dataclass(frozen=True)
class Crew:
    """The processes of one command, and itself, which starts again what ends."""

    keeper: Known
    host: str
    processes: tuple[Known, ...]


def tell(state: Path, command: str, processes: list[Known]) -> None:
    """Say in the state folder who runs; this process looks after them."""
    keeper = Known(command, os.getpid(), began(os.getpid()), time.time())
    crew = Crew(keeper, socket.gethostname(), tuple(processes))
    replace_file(state / FILE, json.dumps(asdict(crew), indent=1).encode())


def told(state: Path) -> Crew | None:
    """What was said there; None if nobody runs there, all were stopped in order, or it is not to be understood."""
    try:
        document = json.loads((state / FILE).read_bytes())
        processes = tuple(Known(**{**each, "zones": tuple(each.get("zones", ()))}) for each in document["processes"])
        return Crew(Known(**document["keeper"]), document["host"], processes)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget(state: Path) -> None:
    """All were stopped."""
    (state / FILE).unlink(missing_ok=True)


def began(pid: int) -> int:
    """When the process of that id began; 0 if there is none."""
    found = _entry(pid)
    return 0 if found is None else found[1]


def condition(process: Known) -> str:
    """`R`, `S` or what else Linux calls it; empty if it is gone, also if its id is another's by now."""
    found = _entry(process.pid)
    return "" if found is None or found[1] != process.began or found[0] in ENDED else found[0]


def frozen_words(process: Known) -> str:
    """What is said of one that a signal has stopped."""
    return f"{process.name} is frozen (stopped by a signal); kill -CONT {process.pid} lets it go on"


def frozen_edges(processes: Iterable[Known]) -> frozenset[str]:
    """The zones whose edge a signal has stopped."""
    edges = (each for each in processes if each.name.startswith("edge-"))
    return frozenset(each.name.removeprefix("edge-") for each in edges if condition(each) == STOPPED)


class Standstill:
    """Who of some processes was stopped by a signal, told once, and once more when it goes on."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._looked = -LOOK_EVERY

    def news(self, processes: Callable[[], Iterable[Known]], now: float) -> list[str]:
        """What was not told yet. One that has ended is dropped: that is another's to tell."""
        if now - self._looked < LOOK_EVERY:
            return []
        self._looked, before, said = now, self._since, []
        self._since = {}
        for process in processes():
            found = condition(process)
            if found == STOPPED:
                self._since[process.pid] = before.get(process.pid, now)
                said += [] if process.pid in before else [frozen_words(process)]
            elif found and process.pid in before:
                said.append(f"{process.name} goes on: it was frozen for {now - before[process.pid]:.0f} s")
        return said


class Restarts:
    """Who of some commands' processes was started again since we look."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, int, str], int] = {}

    def news(self, crews: Iterable[Crew]) -> list[str]:
        """What was not told yet; how often it was before we looked is history. Each command has a `devices-0`."""
        said = []
        for crew in crews:
            for process in crew.processes:
                key = (crew.keeper.pid, crew.keeper.began, process.name)
                if process.restarts > self._before.get(key, process.restarts):
                    alone = len(process.zones) == 1 and not process.name.startswith("edge-")
                    whose = f" of zone {process.zones[0]}" if alone else ""
                    how = f" {process.ended}" if process.ended else ""
                    said.append(f"{process.name}{whose} has ended{how}: started again")
                self._before[key] = process.restarts
        return said


def how_it_ended(code: int) -> str:
    """By what `Popen.returncode` says."""
    if code >= 0:
        return f"with exit code {code}"
    known = -code in set(signal.Signals)
    return f"by {signal.Signals(-code).name}" if known else f"by signal {-code}"


def last_lines(log: Path, lines: int = 5) -> str:
    """The end of a process's log, each line once: one that is started again says the same again."""
    try:
        said = log.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join(list(dict.fromkeys(said))[-lines:])


def _entry(pid: int) -> tuple[str, int] | None:
    """State and start of a process, by /proc/PID/stat; the command in it, in parentheses, may hold any character."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[19])
