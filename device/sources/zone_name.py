"""What a zone is called here, and which one was meant by a name that is none."""

import re
from collections.abc import Sequence

from device.sources.did_you_mean import closest

NEARLY = 0.8
"""How alike two zones' names are if one may be the other misspelt. Places share words: New-Town is not Old-Town."""


def zone_name(raw: str) -> str:
    """One as zones have it, which may be empty."""
    return re.sub(r"[^\w.]+", "-", raw).strip("-.")


def meant_zone(name: str, there: Sequence[str]) -> str | None:
    """The zone that was meant by a name as the data has it, in other case or misspelt: `Old Town` is `Old-Town`.

    Numbers are not misspelt: zone-1 is not zone-2. Nor is a whole word: north-east is not north-west.
    """
    cleaned = zone_name(name)
    alike = [each for each in there if _digits(each) == _digits(cleaned) and _word_by_word(cleaned, each)]
    return closest(cleaned, alike, NEARLY)


def or_meant(name: str, there: Sequence[str]) -> str:
    """The end of a sentence that lists the zones there are: which of them was meant, if one was."""
    meant = meant_zone(name, there)
    return f"; did you mean {meant!r}?" if meant else ""


def zones_or_meant(name: str, there: Sequence[str]) -> str:
    """The zones there are, and which of them was meant."""
    return ", ".join(there) + or_meant(name, there)


def _word_by_word(name: str, other: str) -> bool:
    """Whether each word of one is nearly that of the other, if they have as many."""
    words, others = name.split("-"), other.split("-")
    return len(words) != len(others) or all(
        closest(word, [meant], NEARLY) is not None for word, meant in zip(words, others, strict=True)
    )


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))
