"""Whether what the zone's round waits for takes unusually long: then the cloud is told at once, whenever others are
waited for, and when it is over.

A peer that hangs is seen here long before its lease runs out. `Waits` decides, without a clock; `Alarm` is its clock.
"""

import asyncio
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from sgfusion.waiting import Waiting

Kind = Literal["round", "evaluation"]
Who = Callable[[], tuple[Sequence[int], Sequence[str]]]
"""The zones and devices that have not answered."""

LEAST = 3.0
"""Seconds that are not unusual, however short rounds are."""
TIMES = 4.0
"""As long as a usual one takes: that is unusual."""
EVALUATIONS = 2.0
"""As long as a usual evaluation takes is not: who is asked may be at its own, which takes about as long as ours."""
FIRST = 0.5
"""Of a deadline: so long a first one may take, of which nobody knows how long is usual."""
AGAIN = 1.0
"""Seconds between two looks at whether others are waited for than was told."""
NAMED = 10
"""Devices that the cloud is told by name; people are told of fewer."""
STOOD_STILL = 1.0
"""Seconds by which a look is so late that this process must have stood still; answers came meanwhile, perhaps."""
_KEPT = 9
"""Of which the middle one is usual: one that had to wait does not make waiting usual, and five of them do."""


@dataclass(eq=False)
class _Question:
    kind: tuple[Kind, bool]
    round: int
    began: float
    due: float
    who: Who
    told: Waiting | None = None
    """As the cloud was last to hear of it; None if it was not."""

    def waiting(self, now: float) -> Waiting:
        zones, devices = self.who()
        seconds = max(0.0, now - self.began)
        return Waiting(self.round, seconds, tuple(zones), tuple(devices[:NAMED]), max(0, len(devices) - NAMED))


class Waits:
    """The question under way, if there is one, and how long such a one usually takes."""

    def __init__(self) -> None:
        self.deadline = 60.0
        """Seconds, the shorter one of those that the run gives devices and peers."""
        self._lasted: dict[tuple[Kind, bool], deque[float]] = {}  # and whether peers are asked: they take their time
        self._question: _Question | None = None

    @property
    def due(self) -> float | None:
        """When to `look`; None if nothing is asked."""
        return None if self._question is None else self._question.due

    def begin(self, kind: Kind, round: int, now: float, who: Who) -> None:
        """Devices and peers are asked."""
        zones, _ = who()
        which = (kind, bool(zones))
        self._question = _Question(which, round, now, now + self._patience(which), who)

    def end(self, now: float) -> bool:
        """All is answered or given up; whether the cloud has to hear that the wait is over."""
        question, self._question = self._question, None
        if question is None:
            return False
        self._lasted.setdefault(question.kind, deque(maxlen=_KEPT)).append(now - question.began)
        return question.told is not None

    def look(self, now: float) -> bool:
        """Whether the wait has just become unusual, or others are waited for than was told: the cloud has to hear."""
        question = self._question
        if question is None or now < question.due:
            return False
        if question.told is None and now > question.due + STOOD_STILL:
            question.due = now + question.due - question.began
            return False
        before, question.told = question.told, question.waiting(now)
        question.due = now + AGAIN
        return before is None or replace(before, seconds=question.told.seconds) != question.told

    def waiting(self, now: float) -> Waiting | None:
        """What is waited for, if the wait is unusual."""
        question = self._question
        return None if question is None or question.told is None else question.waiting(now)

    def _patience(self, kind: tuple[Kind, bool]) -> float:
        lasted = self._lasted.get(kind)
        usual = FIRST * self.deadline if lasted is None else TIMES * statistics.median_low(lasted)
        evaluations = self._lasted.get(("evaluation", False))
        return max(LEAST, usual, EVALUATIONS * statistics.median_low(evaluations) if evaluations else 0.0)


class Alarm:
    """Looks when it is time, and calls `tell` when there is something to tell. One timer for many rounds: who never
    waits long pays next to nothing.
    """

    def __init__(self, waits: Waits, tell: Callable[[], None]) -> None:
        self._waits, self._tell = waits, tell
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def set(self, kind: Kind, round: int, who: Who) -> Iterator[None]:
        """While devices and peers are asked."""
        self._waits.begin(kind, round, time.monotonic(), who)
        self._look_later()
        try:
            yield
        finally:
            if self._waits.end(time.monotonic()):
                self._tell()

    def off(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        due = self._waits.due
        if due is None:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0.0, due - time.monotonic())
        if self._timer is not None:
            if self._timer.when() <= when + 0.1:  # it looks again then
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waits.look(time.monotonic()):
            self._tell()
        self._look_later()
