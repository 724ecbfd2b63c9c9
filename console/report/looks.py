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
    ((0, (6, 1.5, 1.2, 1.5)), ("random", "shuffled", "all")),
)
"""The stroke tells kinds of methods apart: ours, those with a model a zone, those without, and the controls."""

AGAIN: Stroke = (0, (8, 1, 1, 1, 1, 1))
"""Of a method's entries beyond as many as there are colours for, which come round again: k = 1 to 7 of top-k."""

COLOURS = {
    "sgfusion": 0, "chi-sgfusion": 2, "top-k-sgfusion": 4,
    "d-zgd": 1, "delta-z": 3, "sgeofl": 5,
    "fedavg": 3, "ifca": 5, "fedsem": 0, "feddelta": 2,
    "random": 6, "all": 1, "shuffled": 3,
}  # fmt: skip
"""A method's colour of the palette, in every report: no two of a family share one."""


@dataclass(frozen=True)
class Look:
    """A line's colour, stroke and width."""

    colour: str
    stroke: Stroke
    width: float


def looks(entries: Sequence[Entry], reference: Entry) -> dict[str, Look]:
    """By the entry's name. Colours are the methods', so that reports can be laid side by side.

    Of several entries of a method, one has its colour: the reference, or else the first. The others take those that no
    method of the family has. The reference is drawn the boldest; then its random control.
    """
    control = control_of(entries, reference)
    taken: set[tuple[Stroke, int]] = set()
    found = {}
    for entry in [reference, *(entry for entry in entries if entry.name != reference.name)]:
        stroke, colour = _free(entry.method, taken)
        taken.add((stroke, colour))
        width = 2.4 if entry.name == reference.name else 1.7 if entry is control else 1.1
        found[entry.name] = Look(PALETTE[colour], stroke, width)
    return found


def method_colour(method: str) -> str:
    """The colour of what is drawn of a method as a whole."""
    return PALETTE[COLOURS.get(method, 0)]


def _free(method: str, taken: set[tuple[Stroke, int]]) -> tuple[Stroke, int]:
    """The method's own look, else the first that is free."""
    stroke, family = next((of for of in FAMILIES if method in of[1]), FAMILIES[1])
    own = COLOURS.get(method, 0)
    others = {COLOURS[name] for name in family if name != method}
    places = [(own + 2 * i) % len(PALETTE) for i in range(len(PALETTE))]
    candidates = [(stroke, place) for place in places if place not in others] + [(AGAIN, place) for place in places]
    return next((look for look in candidates if look not in taken), (AGAIN, own))
