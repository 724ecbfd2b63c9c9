"""A zone's plan: whom it draws, and where they are (methods 4, 5 and 8).

The cloud makes a plan for each zone, and sends it that one only; the edge draws by it. The simulator makes the same
`Draws` and draws by them, so the two cannot draw differently.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

DrawKind = Literal["each", "chosen", "fixed"]


class ZoneState(Enum):
    """Where a zone stands, as all tiers call it."""

    EXPECTED = "expected"
    """Named by the run file, never seen."""
    GATHERING = "gathering"
    """Enrolled; its devices are gathering, and its histogram is not here yet."""
    WAITING = "waiting"
    """Its histogram is here; there is no plan yet."""
    TRAINING = "training"
    DONE = "done"
    """All rounds are done; it still answers peers."""
    DIVERGED = "diverged"
    """Its weights or gradients are no longer finite: it has stopped, and still answers peers."""
    LOST = "lost"
    """Its lease has run out."""
    LEFT = "left"
    """It left, or was lost for so long that it counts as gone."""


@dataclass(frozen=True)
class Branch:
    """One ancestor of the zone's leaf: the subtree that the zone is not in."""

    distance: float
    """`d_r`."""
    probability: float
    """`p_r`."""
    zones: tuple[int, ...]
    """By number, ascending."""


@dataclass(frozen=True)
class Draws:
    """How a zone draws others: `each` zone of a branch by chance, exactly `count` `chosen`, or always the `fixed`."""

    kind: DrawKind
    branches: tuple[Branch, ...] = ()
    """From the leaf's parent to the root; none if `fixed`."""
    count: int = 0
    """Of `chosen`: `χ_z`."""
    zones: tuple[int, ...] = ()
    """Of `fixed`: ascending."""


@dataclass(frozen=True)
class Peer:
    """A zone of the run as others see it."""

    number: int
    zone: str
    address: str
    """host:port; empty if it has never enrolled."""
    state: ZoneState


@dataclass(frozen=True)
class ZonePlan:
    """What a zone needs to train beside its settings."""

    version: int
    """Rises with every new dendrogram; edges take a new one up between rounds. 0: none yet, the directory alone."""
    number: int
    """The zone's own."""
    reason: str
    draws: Draws
    directory: tuple[Peer, ...]
    """In the order of numbers. May change without a new version."""
