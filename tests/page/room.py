"""What this machine leaves to a test: cores that nobody else takes, timers and a disk that are prompt."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

EVERY = 0.5
"""Seconds between two looks at who takes cores."""
PROMPT = 0.25
"""Seconds, at most, by which a pulse is late on a machine that has time."""
# Another process, which nothing of the page's holds up: it wakes up and brings a byte to the disk, as any cloud has to.
_PULSE = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
while True:
    began = time.monotonic()
    time.sleep(0.05)
    os.pwrite(file, b"x", 0)
    os.fsync(file)
    print(began, time.monotonic(), flush=True)
"""


@dataclass
class Room:
    """Spans of monotonic time, one after the other, with the cores that were left; and pulses that were late."""

    cores: list[tuple[float, float, float]] = field(default_factory=list)
    late: list[tuple[float, float]] = field(default_factory=list)
    felt: float = 0.0
    """Until when pulses were heard."""

    def within(self, begin: float, end: float, *, cores: float) -> bool:
        """Whether so many cores were left all the time, and every pulse prompt. What nobody looked at had no room."""
        if not self.cores or begin < self.cores[0][0] or end > min(self.cores[-1][1], self.felt):
            return False
        short = any(left < cores for since, until, left in self.cores if since < end and until > begin)
        return not short and not any(since < end and until > begin for since, until in self.late)

    def share(self, cores: float) -> float:
        """Of the time, in which so many cores were left."""
        whole = sum(until - since for since, until, _ in self.cores)
        return sum(until - since for since, until, left in self.cores if left >= cores) / whole if whole else 0.0


@asynccontextmanager
async def watched(folder: Path) -> AsyncIterator[Room]:
    """The room from now on, until the `async with` ends; pulses go into a file of the folder."""
    room = Room()
    pulse = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PULSE, str(folder / "pulse"), stdout=asyncio.subprocess.PIPE
    )
    tasks = [asyncio.create_task(_look(room)), asyncio.create_task(_feel(room, pulse))]
    try:
        yield room
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(ProcessLookupError):
            pulse.kill()
        await pulse.wait()
    for failed in ended:
        if isinstance(failed, Exception):  # and no cancellation: who sees nothing must not pass for who has no room
            raise failed


async def _look(room: Room) -> None:
    then, before = time.monotonic(), taken() - ours()
    while True:
        await asyncio.sleep(EVERY)
        now, others = time.monotonic(), taken() - ours()
        room.cores.append((then, now, len(os.sched_getaffinity(0)) - (others - before) / (now - then)))
        then, before = now, others


async def _feel(room: Room, pulse: asyncio.subprocess.Process) -> None:
    assert pulse.stdout is not None
    async for line in pulse.stdout:
        began, ended = map(float, line.split())
        if ended - began >= PROMPT:
            room.late.append((began, ended))
        room.felt = ended
    raise RuntimeError("the pulse has stopped")


def taken() -> float:
    """Seconds of cores since the machine's start that were not idle; those that another machine had on its host too."""
    times = psutil.cpu_times()
    return float(sum(getattr(times, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal")))


def ours() -> float:
    """Of these, what this process and all that it has started took."""
    found = 0.0
    for process in (me := psutil.Process(), *me.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            found += times.user + times.system
    return found
