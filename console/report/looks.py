"""How each entry looks in every figure: the same colour and stroke throughout."""

from collections.abc import Sequence
from dataclasses import dataclass

from console.figures import PALETTE
from console.report.control import control_of
from console.report.suite_results import Entry

Stroke = str | tuple[int, tuple[float, ...]]

FAMILIES: tuple[tuple[Stroke, tuple[str, ...]], ...] = (
    ("-", ("sgfusion", "chi-sgfusion", "top-k-sgfusion")),
    ((0, (5, 1.6)), ("d-zgd", "delta-z", "sgeofl")),
    ((0, (1.2, 1.2)), ("fedavg", "ifca", "fedsem", "feddelta")),
    ((0, (6, 1.5, 1.2, 1.5)), ("random", "all")),
)
"""The stroke tells kinds of methods apart: ours, those with a model a zone, those without, and the controls."""

AGAIN: Stroke = (0, (8, 1, 1, 1, 1, 1))
"""Of a family's entries beyond as many as there are colours, which come round again: k = 1 to 7 beside SGFusion."""

_FIRST = (0, 1, 3, 6)  # each family starts at another colour, so that its first, commonest member has one of its own


@dataclass(frozen=True)
class Look:
    """A line's colour, stroke and width."""

    colour: str
    stroke: Stroke
    width: float


def looks(entries: Sequence[Entry], reference: Entry) -> dict[str, Look]:
    """By the entry's name. The reference has the first colour, and is drawn the boldest; then its random control."""
    control = control_of(entries, reference)
    used = [0] * len(FAMILIES)
    found = {}
    for entry in [reference, *(entry for entry in entries if entry.name != reference.name)]:
        family = next((i for i, (_, methods) in enumerate(FAMILIES) if entry.method in methods), 1)
        if entry.name == reference.name:
            family = 0
        colour = PALETTE[(_FIRST[family] + 2 * used[family]) % len(PALETTE)]
        stroke = FAMILIES[family][0] if used[family] < len(PALETTE) else AGAIN
        used[family] += 1
        width = 2.4 if entry.name == reference.name else 1.7 if entry is control else 1.1
        found[entry.name] = Look(colour, stroke, width)
    return found
