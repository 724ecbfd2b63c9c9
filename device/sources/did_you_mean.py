"""What a name was meant to be, of the names there are."""

from collections.abc import Sequence
from difflib import get_close_matches


def did_you_mean(name: str, there: Sequence[str]) -> str:
    """The end of a sentence: a question if a name is close, else a full stop.

    One in other case comes first: `Y` has no letter of `y`, so it is not close to it.
    """
    same = [other for other in there if other.lower() == name.lower()]
    close = same or get_close_matches(name, there, n=1)
    return f", did you mean {close[0]!r}?" if close else "."
