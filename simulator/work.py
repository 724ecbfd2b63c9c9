"""Work for a pool, whichever it is: a function's name and a text, and what becomes of it.

Text in, text out: a piece of work is the same in this process, in another and on another machine.
"""

import importlib
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sgfusion.errors import SGFusionError

Advance = Callable[[int, int], None]
"""Called by work with how much of it is done, and of how much."""
PACE = 0.2
"""Seconds between two words on how far a piece of work is."""


@dataclass(frozen=True)
class Work:
    """A call of `function` (as `module:name`, taking the text and an `Advance`, returning a text)."""

    name: str
    """What people see of it."""
    function: str
    text: str
    group: str
    """Work of one group shares what its function keeps in memory: better done by one worker."""
    cost: float
    """Relative to other work."""


class Watcher(Protocol):
    """Hears what becomes of work, in the process that started the pool."""

    def started(self, work: Work) -> None:
        """A worker has begun it."""

    def advanced(self, work: Work, done: int, of: int) -> None:
        """It has come so far."""

    def finished(self, work: Work, result: str) -> None:
        """It is done."""

    def failed(self, work: Work, reason: str) -> None:
        """It ended without a result; other work goes on."""


class Pool(Protocol):
    """Does work; what its workers keep in memory stays from one `run` to the next."""

    def run(self, works: Iterable[Work], watcher: Watcher) -> None:
        """Do it all; returns when each piece is finished or has failed."""

    def close(self) -> None:
        """End the workers, at once."""


class ThisProcess:
    """One piece after the other, here."""

    def run(self, works: Iterable[Work], watcher: Watcher) -> None:
        """Do it all, group by group and the long ones first."""
        queue, group = Queue(works), ""
        while (work := queue.take(group, set())) is not None:
            group = work.group
            watcher.started(work)
            result, reason = attempt(work.function, work.text, paced(partial(watcher.advanced, work)))
            if result is None:
                watcher.failed(work, reason)
            else:
                watcher.finished(work, result)

    def close(self) -> None:
        """Nothing to end."""


class Queue:
    """Work that waits, handed out so that workers keep their groups and end together."""

    def __init__(self, works: Iterable[Work]) -> None:
        self._waiting: dict[str, deque[Work]] = {}
        for work in sorted(works, key=lambda w: -w.cost):
            self._waiting.setdefault(work.group, deque()).append(work)

    def take(self, group: str, others: set[str]) -> Work | None:
        """The costliest of the worker's own group; else of the group with the most left, of none of `others` first."""
        if group not in self._waiting:
            if not self._waiting:
                return None
            left = {name: sum(work.cost for work in works) for name, works in self._waiting.items()}
            group = max(left, key=lambda name: (name not in others, left[name]))
        work = self._waiting[group].popleft()
        if not self._waiting[group]:
            del self._waiting[group]
        return work


def paced(advance: Advance) -> Advance:
    """Pass on what is said, at most every `PACE` seconds: rounds may take microseconds."""
    last = time.monotonic()

    def pass_on(done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PACE:
            last = time.monotonic()
            advance(done, of)

    return pass_on


def attempt(function: str, text: str, advance: Advance) -> tuple[str | None, str]:
    """The function's result, or None and why there is none."""
    module, _, name = function.partition(":")
    try:
        result: str = getattr(importlib.import_module(module), name)(text, advance)
    except SGFusionError as error:
        return None, str(error)
    except Exception:  # noqa: BLE001 (whatever a user's own task raises ends this piece of work and no other)
        return None, traceback.format_exc().strip()
    return result, ""
