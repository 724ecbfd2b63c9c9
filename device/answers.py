"""The last answers of a host's devices: a question that comes again, after a broken stream, is answered from here."""

from collections import OrderedDict

from sgfusion.wire.attending import Answer, Direction

REMEMBERED = 4
"""Answers that are kept of a device: an edge that was away asks again for its last questions."""
BYTES = 64 << 20
"""What the answers of all devices of the process may take; the last one is kept whatever its size."""


class Answers:
    """By whose they are and what was asked; the oldest go first. Invariant: at most `bytes`, or one answer."""

    def __init__(self, *, each: int = REMEMBERED, bytes: int = BYTES) -> None:
        self._each, self._limit = each, bytes
        self._known: OrderedDict[tuple[str, str], Answer] = OrderedDict()
        self._bytes = 0
        self._of: dict[str, int] = {}

    def get(self, owner: str, ask: str) -> Answer | None:
        """The answer that the owner gave before, if it is still known."""
        answer = self._known.get((owner, ask))
        if answer is not None:
            self._known.move_to_end((owner, ask))
        return answer

    def keep(self, owner: str, ask: str, answer: Answer) -> None:
        """Remember it; others may be forgotten for it."""
        self._forget((owner, ask))
        self._known[owner, ask] = answer
        self._bytes += _size(answer)
        self._of[owner] = self._of.get(owner, 0) + 1
        if self._of[owner] > self._each:
            self._forget(next(key for key in self._known if key[0] == owner))
        while self._bytes > self._limit and len(self._known) > 1:
            self._forget(next(iter(self._known)))

    def _forget(self, key: tuple[str, str]) -> None:
        answer = self._known.pop(key, None)
        if answer is not None:
            self._bytes -= _size(answer)
            self._of[key[0]] -= 1


def _size(answer: Answer) -> int:
    return answer.vector.nbytes if isinstance(answer, Direction) else 0
