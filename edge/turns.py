"""Whose question is next: the zone's own and each peer's in turn, so that many askers do not starve one (Faults)."""

from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Turns(Generic[Item]):
    """A queue for each asker; askers take turns, and an asker's own questions keep their order."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Item]] = {}  # in the order of turns; none is empty

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, asker: str, item: Item) -> None:
        """The asker has one more."""
        self._queues.setdefault(asker, deque()).append(item)

    def next(self) -> Item | None:
        """The next one; its asker goes to the end of the line."""
        if not self._queues:
            return None
        asker = next(iter(self._queues))
        queue = self._queues.pop(asker)
        item = queue.popleft()
        if queue:
            self._queues[asker] = queue
        return item

    def remove(self, item: Item) -> None:
        """Nobody wants it any more."""
        for asker, queue in list(self._queues.items()):
            if item in queue:
                queue.remove(item)
                if not queue:
                    del self._queues[asker]
