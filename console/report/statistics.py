"""Zones won, method against method, and whether that could be chance (method 9).

All take costs, lower being better, one for each zone. Zones that share gradients are not independent of each other, so
a p-value is a guide and no proof; the report says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sgfusion.errors import MissingDependencyError, brought_by

FEWEST = 6
"""Zones that differ, below which no outcome at all has p < 0.05: of 5, the least two-sided p is 2 / 2⁵ = 0.0625."""


@dataclass(frozen=True)
class Won:
    """Zones won, lost and tied."""

    won: int
    lost: int
    tied: int

    def __add__(self, other: "Won") -> "Won":
        return Won(self.won + other.won, self.lost + other.lost, self.tied + other.tied)

    def __str__(self) -> str:
        """In the paper's form, `8:5`; ties are told apart."""
        return f"{self.won}:{self.lost}" + (f" ({self.tied} tied)" if self.tied else "")


@dataclass(frozen=True)
class PairedTest:
    """Two-sided p-values over paired zones; None where too few zones differ."""

    differing: int
    wilcoxon: float | None
    sign: float | None


def zones_won(ours: Sequence[float], theirs: Sequence[float]) -> Won:
    """How often our cost is the lower one."""
    pairs = list(zip(ours, theirs, strict=True))
    won, lost = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    return Won(won, lost, len(pairs) - won - lost)


def paired_test(ours: Sequence[float], theirs: Sequence[float]) -> PairedTest:
    """Wilcoxon's signed ranks and the sign test; zones that tie say nothing and are left out of both."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True) if a != b]
    won = sum(difference < 0 for difference in differences)
    if len(differences) < FEWEST:
        return PairedTest(len(differences), None, None)
    return PairedTest(len(differences), signed_rank_p(differences), sign_p(won, len(differences) - won))


def sign_p(won: int, lost: int) -> float:
    """The two-sided p of so uneven a split under a fair coin, exact."""
    trials = won + lost
    tail = sum(math.comb(trials, i) for i in range(min(won, lost) + 1))
    return min(1.0, 2 * tail / (1 << trials))


def signed_rank_p(differences: Sequence[float]) -> float:
    """The two-sided p of Wilcoxon's signed rank test on differences that are not 0; exact for small numbers."""
    try:
        from scipy.stats import wilcoxon  # noqa: PLC0415 (only reports need it)
    except ImportError as error:
        raise MissingDependencyError(f"paired tests need scipy: {brought_by('experiments')}") from error
    return float(wilcoxon(differences).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction over all that were tested: the i-th smallest of m times m - i + 1, never falling, at most 1."""
    tested = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, i) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        corrected[i] = highest
    return corrected
