"""From the dendrogram to what one zone is told of it, and from that to its sampler (methods 4, 5, 8 and 9).

The cloud calls `draws_for` and the edge `sampler_of`; the simulator calls both, one after the other. A zone's draw is
the same bit for bit as that of the samplers over the whole matrix.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sgfusion.dendrogram import Dendrogram
from sgfusion.errors import SamplerError
from sgfusion.plan import Branch, Draws
from sgfusion.runfile import SamplerChoice
from sgfusion.sampling import ChiSampler, HrgSampler, NeighbourSampler, Sampler, nearest

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProbabilisticDendrogram:
    """A dendrogram with its sharing probabilities, whose leaves are zones of a run by number.

    A zone that never came has a number and no leaf. Invariant: `numbers` ascend, one for each leaf.
    """

    dendrogram: Dendrogram
    distances: Floats
    """Between the leaves."""
    numbers: tuple[int, ...]
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        numbers = tuple(int(number) for number in self.numbers)
        if len(numbers) != self.dendrogram.zones or list(numbers) != sorted(set(numbers)) or numbers[0] < 0:
            raise SamplerError(
                f"numbers = {list(numbers)} for {self.dendrogram.zones} leaves: give each leaf its zone's"
                " number, ascending"
            )
        object.__setattr__(self, "numbers", numbers)

    @cached_property
    def probabilities(self) -> Floats:
        """`p(z, z')` between the leaves (method 4)."""
        return self.dendrogram.sharing_probabilities(self.distances, self.sharpness)

    @cached_property
    def node_distances(self) -> Floats:
        """`d_r` of each internal node."""
        return self.dendrogram.node_distances(self.distances)

    def leaf(self, zone: int) -> int:
        """The leaf of the zone of that number."""
        if zone not in self.numbers:
            raise SamplerError(f"zone {zone} is no leaf of the dendrogram: it is over {list(self.numbers)}")
        return self.numbers.index(zone)

    def branches(self, zone: int) -> tuple[Branch, ...]:
        """The zone's own `T_z`: its ancestors from its leaf's parent to the root (method 5)."""
        leaf = self.leaf(zone)
        return tuple(
            Branch(
                float(self.node_distances[node - self.dendrogram.zones]),
                float(self.probabilities[leaf, leaves[0]]),  # at a lowest common ancestor all are the same
                tuple(self.numbers[other] for other in leaves),
            )
            for node, leaves in self.dendrogram.ancestors(leaf)
        )

    def even(self, zone: int) -> tuple[Branch, ...]:
        """All other zones as one branch, with the chance that lets as many be drawn in expectation as `branches` do."""
        leaf, others = self.leaf(zone), self.others(zone)
        if not others:
            return ()
        mean = np.minimum(1.0, self.probabilities.sum(axis=1, keepdims=True)[leaf, 0] / len(others))
        return (Branch(float(np.delete(self.distances[leaf], leaf).mean()), float(mean), others),)

    def others(self, zone: int) -> tuple[int, ...]:
        """All zones but this one."""
        return tuple(other for other in self.numbers if other != zone)


def draws_for(
    zone: int, *, sampler: SamplerChoice, tree: ProbabilisticDendrogram, neighbours: Iterable[int] | None
) -> Draws:
    """What zone `zone` is told, by number. `neighbours` are its own; None if the run knows no geography.

    Neighbours that are no leaves are left out: nobody can ask them. So are more zones than there are others.
    """
    others = tree.others(zone)
    leaf = tree.leaf(zone)
    if sampler.kind == "hrg":
        return Draws("each", branches=tree.branches(zone))
    if sampler.kind == "random":
        return Draws("each", branches=tree.even(zone))
    if sampler.kind == "chi":
        count = len(_among(others, neighbours, sampler)) if sampler.chi is None else min(sampler.chi, len(others))
        branches = tree.branches(zone)
        possible = sum(len(branch.zones) for branch in branches if branch.probability > 0)
        if count > possible:
            raise SamplerError(
                f"χ = {count} for zone {zone}, and only {possible} of {len(others)} others have a chance above 0:"
                " lower hrg.sharpness or sampler.chi"
            )
        return Draws("chosen", branches=branches, count=count)
    if sampler.kind == "top-k":
        like = nearest(tree.distances, leaf, min(sampler.k or 0, len(others)))
        return Draws("fixed", zones=tuple(tree.numbers[other] for other in like))
    fixed = {"none": (), "all": others}.get(sampler.kind)
    return Draws("fixed", zones=_among(others, neighbours, sampler) if fixed is None else fixed)


def sampler_of(draws: Draws, *, zone: int, seed: int, zones: int) -> Sampler:
    """The sampler of zone `zone` that was told `draws`, in a run whose zones are numbered 0 to `zones - 1`.

    It draws for that zone alone.
    """
    if not 0 <= zone < zones:
        raise SamplerError(f"zone {zone}: zones are numbered from 0 to {zones - 1}")
    met = {zone}
    for other in (*draws.zones, *(other for branch in draws.branches for other in branch.zones)):
        if other in met or not 0 <= other < zones:
            raise SamplerError(f"zone {zone} is to draw zone {other}: give other zones, 0 to {zones - 1}, each once")
        met.add(other)
    if draws.kind == "fixed":
        return _OfOneZone(zone, NeighbourSampler([draws.zones if z == zone else () for z in range(zones)]))
    probabilities = np.zeros((zones, zones))
    for branch in draws.branches:
        probabilities[zone, list(branch.zones)] = branch.probability
    if draws.kind == "each":
        return _OfOneZone(zone, HrgSampler(probabilities, seed))
    counts = [draws.count if z == zone else 0 for z in range(zones)]
    return _OfOneZone(zone, ChiSampler(probabilities, counts, seed))


class _OfOneZone:
    """A sampler over all zones of which one row is known."""

    def __init__(self, zone: int, sampler: Sampler) -> None:
        self._zone, self._sampler = zone, sampler

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """As the sampler over the whole matrix."""
        if zone != self._zone:
            raise SamplerError(f"zone {zone}: these draws are zone {self._zone}'s, and say nothing of another's")
        return self._sampler.draw(zone, round)


def _among(others: Sequence[int], neighbours: Iterable[int] | None, sampler: SamplerChoice) -> tuple[int, ...]:
    if neighbours is None:
        raise SamplerError(
            f"sampler.kind = {sampler.kind!r} needs the zones' neighbours, and nobody knows them: give zones.adjacent"
        )
    near = set(neighbours)
    return tuple(other for other in others if other in near)
