"""Which of many like events are worth a line in a log: the first, and from then on one a minute with their number."""

from collections import OrderedDict
from collections.abc import Hashable

EVERY = 60.0
"""Seconds between two lines of one kind."""
MOST = 512
"""Kinds that are kept apart; the one that was told longest ago is forgotten, and told as new."""


class Repeats:
    """Counts events by kind. Time is passed in: any clock that does not go back."""

    def __init__(self, *, every: float = EVERY, most: int = MOST) -> None:
        self._every, self._most = every, most
        self._told: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()  # when a line was written; how many since

    def told(self, kind: Hashable, now: float) -> int | None:
        """How many were kept back since the last line of this kind, if it is time for one; else None."""
        when, since = self._told.get(kind, (None, 0))
        if when is not None and now - when < self._every:
            self._told[kind] = when, since + 1
            return None
        self._told[kind] = now, 0
        self._told.move_to_end(kind)
        if len(self._told) > self._most:
            self._told.popitem(last=False)
        return since
