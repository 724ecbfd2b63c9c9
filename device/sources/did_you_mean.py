"""What a name was meant to be, of the names there are."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

ALIKE = 0.6
"""How alike a name must be to the one that was meant, from 0 to 1."""
TELLING = 3
"""Letters of a name that is not within others by chance."""


def closest(name: str, there: Sequence[str], alike: float = ALIKE) -> str | None:
    """The name that was meant, if one is close; case does not count, and one that differs by case alone comes first."""
    folded = [other.casefold() for other in there]
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=alike)
    return there[folded.index(close[0])] if close else None


def did_you_mean(name: str, there: Sequence[str]) -> str:
    """The end of a sentence: a question if a name is close, else a full stop.

    One with the same words, or some of them, comes before one with alike letters: kWh_used is kwh, not house_id.
    """
    close = closest(name, [other for other in there if _within(name, other)], alike=0) or closest(name, there)
    return f", did you mean {close!r}?" if close else "."


def _within(name: str, other: str) -> bool:
    """Whether all words of one are among the other's."""
    fewer, more = sorted((_words(name), _words(other)), key=len)
    return fewer <= more and len("".join(fewer)) >= TELLING


def _words(name: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", name.casefold()))
