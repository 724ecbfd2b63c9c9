"""Trees and distances for the tests of methods 3 and 4, written from the definitions and not from the code under test.

A nested tree is a zone's number or a pair of nested trees; merges are as in `Dendrogram`.
"""

import itertools
from functools import cache

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2

from sgfusion import hrg_moves
from sgfusion.dendrogram import Dendrogram
from sgfusion.distance import zone_distances

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Nested = int | tuple["Nested", "Nested"]
KINDS = ("uniform", "histograms", "clusters", "ties", "far")


def nested_trees(zones: tuple[int, ...]) -> list[Nested]:
    """Every rooted binary tree over the zones, once: the first zone's side of the root, then the other."""
    if len(zones) == 1:
        return [zones[0]]
    first, *others = zones
    trees: list[Nested] = []
    for count in range(len(others)):
        for company in itertools.combinations(others, count):
            rest = tuple(zone for zone in others if zone not in company)
            trees.extend(itertools.product(nested_trees((first, *company)), nested_trees(rest)))
    return trees


def to_merges(tree: Nested) -> Ints:
    merges: list[list[int]] = []
    zones = len(leaves(tree))

    def number(node: Nested) -> int:
        if isinstance(node, int):
            return node
        merges.append([number(node[0]), number(node[1])])
        return zones + len(merges) - 1

    number(tree)
    return np.array(merges, np.int64).reshape(-1, 2)


def leaves(tree: Nested) -> list[int]:
    return [tree] if isinstance(tree, int) else leaves(tree[0]) + leaves(tree[1])


@cache
def all_merges(zones: int) -> Ints:
    """The merges of every tree, `[trees, zones - 1, 2]`: 1, 3, 15, 105, 945, 10395 trees for 2 to 7 zones."""
    return np.stack([to_merges(tree) for tree in nested_trees(tuple(range(zones)))])


@cache
def all_dendrograms(zones: int) -> tuple[Dendrogram, ...]:
    return tuple(Dendrogram(merges) for merges in all_merges(zones))


@cache
def index_of(zones: int) -> dict[Dendrogram, int]:
    return {tree: i for i, tree in enumerate(all_dendrograms(zones))}


@cache
def _all_masks(zones: int) -> Ints:
    merges = all_merges(zones)
    masks = np.zeros((len(merges), 2 * zones - 1), np.int64)
    masks[:, :zones] = 1 << np.arange(zones)
    for i in range(zones - 1):
        masks[:, zones + i] = np.take_along_axis(masks, merges[:, i], axis=1).sum(axis=1)
    return masks


def all_losses(distances: Floats) -> Floats:
    """`L(T)` of every tree of `all_merges`, from one table of the mean distance between any two sets of zones."""
    zones = len(distances)
    inside = (np.arange(1 << zones)[:, None] >> np.arange(zones) & 1).astype(np.float64)
    sizes = np.maximum(inside.sum(axis=1), 1)
    between = (inside @ distances @ inside.T) / np.outer(sizes, sizes)
    merges, masks = all_merges(zones), _all_masks(zones)
    pairs = [np.take_along_axis(masks, merges[:, i], axis=1) for i in range(zones - 1)]
    losses: Floats = sum((between[pair[:, 0], pair[:, 1]] for pair in pairs), np.zeros(len(merges)))
    return losses


@cache
def proposals(zones: int) -> Floats:
    """The probability of each proposal from each tree: a non-root internal node uniformly, α or β by a fair coin."""
    index = index_of(zones)
    chances = np.zeros((len(index), len(index)))
    for i, tree in enumerate(nested_trees(tuple(range(zones)))):
        for proposed in _rearranged(tree):
            chances[i, index[Dendrogram(to_merges(proposed))]] += 1 / (2 * (zones - 2))
    return chances


def _rearranged(w: Nested) -> list[Nested]:
    """α and β at every internal node below `w`."""
    if isinstance(w, int):
        return []
    trees: list[Nested] = []
    for r, c in (w, w[::-1]):
        if isinstance(r, tuple):
            a, b = r
            trees += [((a, c), b), ((b, c), a)]
            trees += [(changed, c) for changed in _rearranged(r)]
    return trees


def metropolis(chances: Floats, losses: Floats, temperature: float) -> Floats:
    """The chain's transition matrix: proposals, each accepted with `min(1, exp(-(L' - L) / temperature))`."""
    rises = losses[None, :] - losses[:, None]
    matrix = chances * np.exp(-np.maximum(rises, 0) / temperature)
    matrix[np.diag_indices_from(matrix)] += 1 - matrix.sum(axis=1)
    return matrix


def gibbs(losses: Floats, temperature: float) -> Floats:
    """The law `∝ exp(-L(T) / temperature)`."""
    weights: Floats = np.exp(-(losses - losses.min()) / temperature)
    law: Floats = weights / weights.sum()
    return law


def law_is_rejected(counts: Floats, law: Floats, alarm: float = 1e-6) -> bool:
    """Pearson's chi-square of independent draws, rare outcomes taken together; `alarm` is its chance to be wrong."""
    rarest = np.argsort(law)
    expected, seen = law[rarest] * counts.sum(), counts[rarest]
    rare = int(np.searchsorted(np.cumsum(expected), 10)) + 1
    expected, seen = (np.append(each[:rare].sum(), each[rare:]) for each in (expected, seen))
    return bool(((seen - expected) ** 2 / expected).sum() > chi2.isf(alarm, len(expected) - 1))


def zones_below(merges: Ints) -> list[list[int]]:
    """The zones below each node."""
    below = [[zone] for zone in range(len(merges) + 1)]
    for left, right in merges.tolist():
        below.append(below[left] + below[right])
    return below


def naive_node_distances(merges: Ints, distances: Floats) -> list[float]:
    """`d_r`, straight from its definition."""
    below = zones_below(merges)
    return [
        sum(float(distances[z, other]) for z in below[left] for other in below[right])
        / (len(below[left]) * len(below[right]))
        for left, right in merges.tolist()
    ]


def random_merges(rng: np.random.Generator, zones: int) -> Ints:
    alive, merges = list(range(zones)), []
    for i in range(zones - 1):
        merges.append([alive.pop(rng.integers(len(alive))) for _ in range(2)])
        alive.append(zones + i)
    return np.array(merges, np.int64).reshape(-1, 2)


def symmetric(values: Floats) -> Floats:
    """The distances whose upper triangle is that of `values`."""
    upper = np.triu(values, 1)
    return upper + upper.T


def random_distances(rng: np.random.Generator, zones: int, kind: str = "uniform") -> Floats:
    """Distances of one of KINDS; `ties` takes three values only, `far` has one zone a thousand times as far off."""
    if kind == "histograms":
        return zone_distances(rng.dirichlet(np.ones(8), zones))
    if kind == "clusters":
        centres = rng.dirichlet(np.ones(8), 3)[rng.integers(3, size=zones)]
        return zone_distances(centres + 0.02 * rng.random((zones, 8)))
    distances = symmetric(rng.choice([0.1, 0.2, 0.3], (zones, zones)) if kind == "ties" else rng.random((zones, zones)))
    if kind == "far":
        distances[-1, :-1] += 1000
        distances[:-1, -1] += 1000
    return distances


@st.composite
def merges_of(draw: st.DrawFn, zones: int) -> Ints:
    alive, merges = list(range(zones)), []
    for i in range(zones - 1):
        merges.append([alive.pop(draw(st.integers(0, len(alive) - 1))) for _ in range(2)])
        alive.append(zones + i)
    return np.array(merges, np.int64).reshape(-1, 2)


def distances_of(zones: int, largest: float = 1e6) -> st.SearchStrategy[Floats]:
    return arrays(np.float64, (zones, zones), elements=st.floats(0.0, largest)).map(lambda a: symmetric(np.abs(a)))


@st.composite
def trees_and_distances(draw: st.DrawFn, largest: float = 1e6) -> tuple[Ints, Floats]:
    zones = draw(st.integers(1, 9))
    return draw(merges_of(zones)), draw(distances_of(zones, largest))


class Planted:
    """The arrays of `hrg_moves`, planted with a tree, to make single moves by hand with either engine's functions."""

    def __init__(self, merges: Ints, distances: Floats) -> None:
        zones = len(distances)
        self.zones = zones
        self.tree, self.best_tree = np.zeros((2, 2 * zones - 1, 4), np.int64)
        self.near = np.zeros((2 * zones - 1, 3))
        self.stack = np.zeros(zones + 1, np.int64)
        self.reach = np.empty((2 * zones - 1, zones))
        self.reach[:zones] = distances
        hrg_moves.plant(merges, self.tree, self.reach, self.near, self.stack)

    def walk(
        self, bits: npt.ArrayLike, uniforms: npt.ArrayLike, temperature: float = 1.0, best: float = np.inf
    ) -> tuple[int, float, int]:
        arrays_of_state = (self.tree, self.reach, self.near, self.stack, self.best_tree)
        return hrg_moves.walk(
            np.asarray(bits, np.uint64), np.asarray(uniforms, np.float64), temperature, best, *arrays_of_state, False
        )

    def nested(self, node: int | None = None) -> Nested:
        """The tree as it stands, read from the root down."""
        node = 2 * self.zones - 2 if node is None else node
        if node < self.zones:
            return node
        left, right = self.tree[node, :2].tolist()
        return self.nested(left), self.nested(right)

    def dendrogram(self) -> Dendrogram:
        return Dendrogram(to_merges(self.nested()))


def move_bits(zones: int, node: int, coin: int) -> int:
    """The least bits that choose the internal node of this number (0 is the first) and this side of the coin."""
    return (-(-node * 2**31 // (zones - 2)) << 33) | coin
