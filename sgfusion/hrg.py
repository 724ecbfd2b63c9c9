"""Fitting the hierarchical random graph: the dendrogram over zones of least loss, by Markov chain (method 3).

The chain at a fixed temperature has the stationary law `∝ exp(-L(T) / temperature)`; `sample_chain` is that chain and
nothing else. `fit_dendrogram` searches with it:

`anneal`  the default. Starts from the average-linkage tree and heats and cools it several times, each time from the
          best tree so far; a cooling ends with a descent that lasts until the best tree is unchanged for `patience·|Z|`
          moves. Temperatures are relative to the data, so the unit of distances does not matter.
`paper`   temperature 1 from a random tree, until the best tree is unchanged for `patience·|Z|` moves. Kept to compare
          with: distances between histograms are so small that it accepts nearly every move and finds little.

Zones are first put into an order that follows from their distances alone: where no two zones have the same distances,
their numbers play no part in the outcome.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sgfusion.dendrogram import Dendrogram
from sgfusion.distance import checked_distances
from sgfusion.errors import ScheduleError
from sgfusion.hrg_chain import Chain, Engine, Floats, Ints, order_by_distances, renumber, zero_means_equal

Schedule = Literal["anneal", "paper"]
Progress = Callable[[int, int, float], None]
"""Called now and then with the moves made, the moves planned, and the best loss so far."""

RESTARTS = 8
PATIENCE = 200
SWEEPS = 5000  # moves a zone in one cooling
LARGE = 1000  # zones from which on a cooling gets no more moves: an accepted one costs O(|Z|)
STEPS = 100  # temperatures in one cooling, falling geometrically
# Temperatures are in units of a typical node distance of the average-linkage tree; measured with benchmarks/hrg.py.
HOT = 1.0  # where the hottest cooling starts
HEATS = 4  # coolings start at HOT, HOT/2, HOT/4 and HOT/8
FEW = 64  # zones up to which a cooling may start that hot
COOL = 1e-3  # where a cooling ends
COLD = 1e-9  # the descent: no rise is accepted any more


@dataclass(frozen=True)
class Fit:
    """The outcome of a search for the dendrogram of least loss."""

    dendrogram: Dendrogram
    loss: float
    """`L(T)` of `dendrogram`."""
    moves: int
    """Moves proposed in all."""
    acceptance: float
    """The share of them that was accepted."""
    converged: bool
    """True: the best tree was unchanged for `patience·|Z|` moves. False: the cap on moves ended the search."""


def fit_dendrogram(
    distances: npt.ArrayLike,
    *,
    seed: int,
    schedule: Schedule = "anneal",
    restarts: int | None = None,
    patience: int = PATIENCE,
    max_moves: int | None = None,
    engine: Engine = "numba",
    progress: Progress | None = None,
) -> Fit:
    """The best dendrogram found for `distances[Z, Z]`; a pure function of its arguments.

    `restarts` is how often `anneal` heats and cools. `engine="python"` needs no numba, gives the same bits, and is a
    hundred times slower.
    """
    matrix, unit = _in_unit(checked_distances(distances))
    if schedule not in ("anneal", "paper"):
        raise ScheduleError(f"schedule = {schedule!r}: choose 'anneal' or 'paper'")
    if schedule == "paper" and restarts is not None:
        raise ScheduleError(f"restarts = {restarts} belongs to schedule 'anneal': the paper's is a single chain")
    restarts = RESTARTS if restarts is None else restarts
    for name, value in (("restarts", restarts), ("patience", patience), ("max_moves", max_moves)):
        if value is not None and (value != int(value) or value < 1):
            raise ScheduleError(f"{name} = {value}: give a whole number >= 1")
    order = order_by_distances(matrix)
    chain = Chain(matrix[np.ix_(order, order)], seed, engine)
    search = _Search(chain, unit, patience * len(matrix), max_moves, progress)
    if len(matrix) < 3 or not matrix.any():
        merges = chain.average_linkage()  # there is but one tree, or all trees have loss 0: nothing to search
    elif schedule == "anneal":
        merges = search.anneal(_start(chain, order), restarts)
    else:
        merges = search.paper()
    dendrogram = Dendrogram(renumber(merges, order))
    acceptance = chain.accepted / search.moves if search.moves else 0.0
    return Fit(dendrogram, unit * dendrogram.loss(matrix), search.moves, acceptance, search.converged)


def sample_chain(
    distances: npt.ArrayLike, *, seed: int, temperature: float, moves: int, thin: int = 1, engine: Engine = "numba"
) -> Iterator[Dendrogram]:
    """The chain itself, from a random tree: every `thin`-th of `moves` dendrograms.

    The path depends on the seed alone: another `thin` shows other trees of the same path.
    """
    matrix, unit = _in_unit(checked_distances(distances))
    if not temperature > 0:
        raise ScheduleError(f"temperature = {temperature}: give a number > 0, inf for the uniform law")
    if moves < 0 or thin < 1:
        raise ScheduleError(f"moves = {moves}, thin = {thin}: give moves >= 0 and thin >= 1")
    chain = Chain(matrix, seed, engine)
    chain.plant(chain.random_merges())

    def trees() -> Iterator[Dendrogram]:
        for _ in range(moves // thin):
            if chain.zones > 2:
                chain.walk(thin, max(temperature / unit, TINY))
            yield Dendrogram(chain.merges(chain.tree))

    return trees()


class _Search:
    """Walks of a chain, counted: invariant `moves <= max_moves`."""

    def __init__(
        self, chain: Chain, unit: float, patience: int, max_moves: int | None, progress: Progress | None
    ) -> None:
        self.moves = 0
        self.converged = True
        self._skips_equal = zero_means_equal(chain.distances)
        self._chain = chain
        self._unit = unit
        self._patience = patience
        self._max_moves = max_moves
        self._progress = progress
        self._planned = 0
        self._idle = 0  # moves since the best tree last improved

    def anneal(self, merges: Ints, restarts: int) -> Ints:
        """Heat and cool the best tree `restarts` times, from the tree of `merges` on."""
        chain = self._chain
        sweep = SWEEPS * min(chain.zones, LARGE)
        # A descent lasts one patience where it finds nothing; three are room to find better trees.
        self._plan(restarts * (sweep + 3 * self._patience))
        chain.plant(merges)
        node_distances = Dendrogram(merges).node_distances(chain.distances)
        node_distances = node_distances[node_distances > 0]
        median = float(np.median(node_distances))
        heats = _heats(chain.zones, median, float(node_distances.max()))
        for restart in range(restarts):
            heat = heats[restart % len(heats)]
            for step in range(STEPS):
                self._walk(sweep // STEPS, heat * (COOL * median / heat) ** (step / (STEPS - 1)))
            self._until_unchanged(COLD * median)
            chain.plant(chain.merges(chain.best_tree))
        return chain.merges(chain.best_tree)

    def paper(self) -> Ints:
        """Temperature 1, from a random tree."""
        self._plan(100 * self._patience)
        self._chain.plant(self._chain.random_merges())
        self._until_unchanged(max(1.0 / self._unit, TINY))
        return self._chain.merges(self._chain.best_tree)

    def _plan(self, moves: int) -> None:
        self._planned = moves if self._max_moves is None else self._max_moves

    def _until_unchanged(self, temperature: float) -> None:
        self._idle = 0
        while self._idle < self._patience and self.moves < self._planned:
            self._walk(min(self._patience - self._idle, max(self._patience // 10, 1)), temperature)
        self.converged = self._idle >= self._patience

    def _walk(self, moves: int, temperature: float) -> None:
        moves = min(moves, self._planned - self.moves)
        improved_at = self._chain.walk(moves, temperature, skips_equal=self._skips_equal)
        self._idle = self._idle + moves if improved_at < 0 else moves - improved_at - 1
        self.moves += moves
        if self._progress is not None:
            self._progress(self.moves, self._planned, self._unit * self._chain.best_loss)


TINY = float(np.finfo(np.float64).tiny)  # a temperature in the distances' unit must not vanish


def _start(chain: Chain, order: Ints) -> Ints:
    """The better of two average-linkage trees: they differ where distances tie, and then in loss too."""
    level, in_order = chain.average_linkage(), chain.linkage_in_order(order)
    losses = [Dendrogram(merges).loss(chain.distances) for merges in (level, in_order)]
    return in_order if losses[1] < losses[0] * (1 - 1e-12) else level


def _in_unit(distances: Floats) -> tuple[Floats, float]:
    """The distances in a unit that brings the largest near 1, and the unit.

    It is a power of two, so no normal number is rounded; huge distances then do not overflow, nor tiny ones vanish.
    """
    unit = 2.0 ** min(math.frexp(distances.max())[1], 1023)
    return distances / unit, unit


def _heats(zones: int, median: float, largest: float) -> list[float]:
    """The temperatures that coolings start at, in turn; `median` and `largest` are of the start's node distances.

    The median is the data's own unit: one zone far from all others must not make it too hot for the rest. Few zones
    can bear the largest as well, and need it where distances are of several orders of magnitude. With many zones too
    much heat loses the good start, which cannot be found again in the moves there are: so the more, the less.
    """
    scales = (largest, median) if zones <= FEW else (median,)
    hottest = HOT * min(1.0, FEW / zones)
    return [scale * hottest / 2**halved for halved in range(HEATS) for scale in scales]
