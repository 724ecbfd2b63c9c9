"""One question to all devices of a zone: who owes an answer, and when there are enough (architecture, Faults).

Decide, then act: no clock, no network. Answers come in any order and are folded in the order of device ids, so that a
zone's sum does not depend on who answered first. No more than `window` answers wait to be folded: of a large model
that is what bounds the memory.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Question(Generic[Value]):
    """The devices that were asked. Invariant: each one owes, has answered or is left out; folded ones come first."""

    def __init__(
        self, devices: Sequence[str], *, quorum: float, window: int, fold: Callable[[str, Value], None]
    ) -> None:
        self._order = sorted(devices)
        self._window = max(1, window)
        self._fold: Callable[[str, Value], None] = fold
        self._waiting: dict[str, Value] = {}
        self._folded = 0  # of the order: those are behind us, answered or left out
        self._reached = 0  # of the order: those have been due
        self._owing = set(self._order)
        self.needed = needed(quorum, len(self._order))
        self.answered = 0
        self.left_out: dict[str, str] = {}

    @property
    def owing(self) -> frozenset[str]:
        """Those that have neither answered nor been left out."""
        return frozenset(self._owing)

    def due(self) -> tuple[str, ...]:
        """Those whose turn it is to be asked and who owe: the first of the order, as many as may wait to be folded."""
        return tuple(d for d in self._order[self._folded : self._folded + self._window] if d in self._owing)

    def newly_due(self) -> tuple[str, ...]:
        """Those of `due` who were not when this was last called. An answer makes few of them so: not all are gone
        through for each of many answers.
        """
        start, self._reached = self._reached, max(self._reached, self._folded + self._window)
        return tuple(d for d in self._order[start : self._reached] if d in self._owing)

    def receive(self, device: str, value: Value) -> None:
        """An answer; one that nobody waits for any more is dropped."""
        if device in self._owing:
            self._owing.remove(device)
            self._waiting[device] = value
            self.answered += 1
            self._advance()

    def leave_out(self, device: str, reason: str) -> None:
        """Go on without the device."""
        if device in self._owing:
            self._owing.remove(device)
            self.left_out[device] = reason
            self._advance()

    def enough(self, *, late: bool, unreliable: Collection[str]) -> bool:
        """Everyone has answered; or the quorum has, and it is late, or only those still owe who let us wait before."""
        if not self._owing:
            return self.answered >= self.needed
        return self.answered >= self.needed and (late or self._owing <= set(unreliable))

    @property
    def hopeless(self) -> bool:
        """Nobody owes an answer, and still there is no quorum."""
        return not self._owing and self.answered < self.needed

    def close(self) -> None:
        """Nothing is folded from here on, and nothing kept."""
        self._fold = _drop
        self._waiting.clear()

    def _advance(self) -> None:
        while self._folded < len(self._order) and (device := self._order[self._folded]) not in self._owing:
            if device in self._waiting:
                self._fold(device, self._waiting.pop(device))
            self._folded += 1


def needed(quorum: float, devices: int) -> int:
    """How many of so many devices the share `quorum` is: at least one. 0.1 of 10 is 1, whatever the binary digits."""
    return max(1, math.ceil(quorum * devices - 1e-9))


def _drop(_device: str, _value: object) -> None:
    """What comes when nobody waits any more."""
