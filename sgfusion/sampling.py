"""Which zones a zone asks for gradients in a round (methods 5 and 8).

A draw is a pure function of (seed, zone, round): a restarted edge repeats its draw, and the simulator makes the same
one. Only additions, multiplications and comparisons of IEEE doubles stand between probabilities and zones, so every
platform draws alike.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sgfusion.arrays import as_floats
from sgfusion.distance import checked_distances
from sgfusion.errors import SamplerError
from sgfusion.streams import checked_word, raw_stream, uniforms

Floats = npt.NDArray[np.float64]


class Sampler(Protocol):
    """Draws zones for a zone in a round."""

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """The zones to ask, ascending; never `zone` itself; may be none."""


class HrgSampler:
    """SGFusion: each zone `z'` independently with probability `p(z, z')` (method 5).

    Climbing from leaf `z` to the root and taking every zone of the other subtree at ancestor `r` with probability `p_r`
    is the same thing: each `z'` is met once, at the lowest common ancestor.
    """

    def __init__(self, probabilities: npt.ArrayLike, seed: int) -> None:
        self._probabilities = checked_probabilities(probabilities)
        self._seed = checked_word("seed", seed)

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """The zones drawn; the number varies, and none is legal."""
        zones = len(self._probabilities)
        _check_place(zone, round, zones)
        # Word z' of the stream belongs to zone z': a zone's luck does not depend on how many others there are.
        luck = uniforms(raw_stream(self._seed, "hrg draw", zone, round), zones)
        return _as_draw(np.flatnonzero(luck < self._probabilities[zone]))


class ChiSampler:
    """χ-SGFusion: exactly `χ_z` zones, without replacement, with weights `p(z, z')` (method 8).

    `counts` gives `χ_z` for each zone; the method's default is its number of geographic neighbours.
    """

    def __init__(
        self, probabilities: npt.ArrayLike, counts: Sequence[int] | npt.NDArray[np.integer], seed: int
    ) -> None:
        self._probabilities = checked_probabilities(probabilities)
        if len(counts) != len(self._probabilities):
            raise SamplerError(f"{len(counts)} counts for {len(self._probabilities)} zones: give χ_z for each zone")
        for zone, (count, row) in enumerate(zip(counts, self._probabilities, strict=True)):
            possible = int((row > 0).sum())
            if count != int(count) or not 0 <= count <= possible:
                raise SamplerError(f"counts[{zone}] = {count}: zone {zone} has {possible} zones that it can draw")
        self._counts = [int(count) for count in counts]
        self._seed = checked_word("seed", seed)

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """The `χ_z` zones drawn, one after the other in proportion to the weights of those not yet drawn."""
        _check_place(zone, round, len(self._counts))
        weights = self._probabilities[zone].copy()
        drawn = []
        for luck in uniforms(raw_stream(self._seed, "chi draw", zone, round), self._counts[zone]):
            heights = np.cumsum(weights)  # adds one by one: the same sum everywhere, unlike np.sum
            choice = int(np.searchsorted(heights, luck * heights[-1], side="right"))
            choice = min(
                choice, int(np.flatnonzero(weights)[-1])
            )  # among subnormals the product may round up to the top
            drawn.append(choice)
            weights[choice] = 0.0
        return _as_draw(sorted(drawn))


class TopKSampler:
    """top-k-SGFusion: the `k` zones nearest in label distribution, lower numbers first among equals (method 8)."""

    def __init__(self, distances: npt.ArrayLike, k: int) -> None:
        matrix = checked_distances(distances)
        self._nearest = [_nearest(row, zone, k) for zone, row in enumerate(matrix)]

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """The same zones in every round."""
        _check_place(zone, round, len(self._nearest))
        return self._nearest[zone]


class NeighbourSampler:
    """D-ZGD: the geographic neighbours, every round (method 9)."""

    def __init__(self, neighbours: Sequence[Iterable[int]]) -> None:
        self._neighbours = [_as_draw(sorted(set(of_zone))) for of_zone in neighbours]
        for zone, draw in enumerate(self._neighbours):
            for other in draw:
                if other == zone or not 0 <= other < len(self._neighbours):
                    raise SamplerError(
                        f"neighbours[{zone}] names zone {other}: give other zones, 0..{len(self._neighbours) - 1}"
                    )

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """The same zones in every round."""
        _check_place(zone, round, len(self._neighbours))
        return self._neighbours[zone]


class NoSampler:
    """SGeoFL: no sharing at all (method 9)."""

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """Nobody."""
        _check_place(zone, round)
        return ()


def nearest(distances: npt.ArrayLike, zone: int, k: int) -> tuple[int, ...]:
    """The `k` zones nearest to `zone`, ascending; lower numbers first among equals."""
    return _nearest(checked_distances(distances)[zone], zone, k)


def checked_probabilities(probabilities: npt.ArrayLike) -> Floats:
    """The matrix `p[z, z']`, refused unless square, within [0, 1] and zero on the diagonal."""
    array = as_floats(probabilities, "probabilities", SamplerError).copy()
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise SamplerError(f"probabilities of shape {array.shape}: give a square matrix, row z for zone z")
    for what, wrong in (
        ("is not a probability", ~((array >= 0) & (array <= 1))),
        ("is on the diagonal: a zone does not draw itself", np.diag(np.diag(array) != 0)),
    ):
        if wrong.any():
            z, other = np.argwhere(wrong)[0]
            raise SamplerError(f"probabilities[{z}, {other}] = {array[z, other]} {what}")
    return array


def _check_place(zone: int, round: int, zones: int | None = None) -> None:
    if zone < 0 or (zones is not None and zone >= zones):
        raise SamplerError(f"zone {zone}: zones are numbered from 0" + ("" if zones is None else f" to {zones - 1}"))
    if round < 0:
        raise SamplerError(f"round {round}: rounds are numbered from 0")


def _nearest(row: Floats, zone: int, k: int) -> tuple[int, ...]:
    if not 0 <= k < len(row):
        raise SamplerError(f"k = {k}: a zone among {len(row)} has {len(row) - 1} others to draw from")
    apart = row.copy()
    apart[zone] = np.inf
    return _as_draw(np.sort(np.argsort(apart, kind="stable")[:k]))


def _as_draw(zones: Iterable[int] | npt.NDArray[np.integer]) -> tuple[int, ...]:
    return tuple(int(zone) for zone in zones)
