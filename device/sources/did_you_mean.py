"""What a name was meant to be, of the names there are."""

from collections.abc import Sequence
from difflib import get_close_matches

ALIKE = 0.6
"""How alike a name must be to the one that was meant, from 0 to 1."""


def closest(name: str, there: Sequence[str], alike: float = ALIKE) -> str | None:
    """The name that was meant, if one is close.

    One in other case comes first: `Y` has no letter of `y`, so it is not close to it.
    """
    same = [other for other in there if other.casefold() == name.casefold()]
    close = same or get_close_matches(name, there, n=1, cutoff=alike)
    return close[0] if close else None


def did_you_mean(name: str, there: Sequence[str]) -> str:
    """The end of a sentence: a question if a name is close, else a full stop."""
    close = closest(name, there)
    return f", did you mean {close!r}?" if close else "."
