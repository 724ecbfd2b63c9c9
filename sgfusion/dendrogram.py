"""A dendrogram over zones, its loss, and the sharing probabilities it gives (methods 3 and 4)."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sgfusion.arrays import as_floats
from sgfusion.distance import checked_distances
from sgfusion.errors import DendrogramError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FORMAT = "sgfusion.dendrogram/1"


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """A binary tree with the zones as leaves, in the order of SciPy's linkage.

    Leaves are `0..Z-1`; row `i` of `merges` joins two nodes into node `Z+i`; the last one is the root. Invariants,
    checked at construction: every node but the root is a child exactly once, and no node comes before its children.

    Two dendrograms are equal when they are the same tree, in whatever order merges and children are written.
    """

    merges: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "merges", _checked_merges(self.merges))

    @classmethod
    def from_merges(cls, merges: npt.ArrayLike) -> "Dendrogram":
        """The dendrogram of `merges[Z-1, 2]`; no merges at all is the dendrogram of a single zone."""
        return cls(_checked_merges(merges))

    @property
    def zones(self) -> int:
        """The number of leaves, `|Z|`."""
        return len(self.merges) + 1

    @cached_property
    def sizes(self) -> Ints:
        """The number of leaves below each node, leaves and then internal nodes."""
        sizes = np.ones(2 * self.zones - 1, np.int64)
        for i, (left, right) in enumerate(self.merges.tolist()):
            sizes[self.zones + i] = sizes[left] + sizes[right]
        sizes.flags.writeable = False
        return sizes

    @cached_property
    def clades(self) -> frozenset[int]:
        """The sets of zones below internal nodes, as bit masks: what makes two dendrograms the same tree."""
        masks = [1 << zone for zone in range(self.zones)]
        for left, right in self.merges.tolist():
            masks.append(masks[left] | masks[right])
        return frozenset(masks[self.zones :])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dendrogram):
            return NotImplemented
        return self.zones == other.zones and self.clades == other.clades

    def __hash__(self) -> int:
        return hash((self.zones, self.clades))

    def __reduce__(self) -> tuple[type["Dendrogram"], tuple[Ints]]:
        return Dendrogram, (self.merges,)  # a pickled array comes back writable: build it anew

    def node_distances(self, distances: npt.ArrayLike) -> Floats:
        """`d_r` of each internal node: the mean distance between the zones left and right of it."""
        by_leaf = self._in_leaf_order(distances)
        return np.array([by_leaf[start:middle, middle:end].mean() for start, middle, end in self._spans()])

    def loss(self, distances: npt.ArrayLike) -> float:
        """`L(T) = Σ_r d_r`."""
        return float(self.node_distances(distances).sum())

    def sharing_probabilities(self, distances: npt.ArrayLike, sharpness: float = 1.0) -> Floats:
        """`p[z, z'] = p_r` at the lowest common ancestor `r` of `z` and `z'`, in zone `z`'s own `T_z`; diagonal 0.

        `p_r = exp(-κ d_r) / Σ_{s in S_z} exp(-κ d_s)` over the ancestors `S_z` of `z`, with `κ` the sharpness. The sum
        differs from zone to zone, so `p` is not symmetric.
        """
        if not (np.isfinite(sharpness) and sharpness >= 0):
            raise DendrogramError(f"sharpness = {sharpness}: κ is a finite number >= 0 (1 is the paper's)")
        node_distances = self.node_distances(distances)
        spans = list(self._spans())
        # exp(-κ (d_r - least d of z's ancestors)): the same ratio, and it cannot vanish for all of a zone's ancestors.
        least = np.full(self.zones, np.inf)
        for apart, (start, _, end) in zip(node_distances, spans, strict=True):
            np.minimum(least[start:end], apart, out=least[start:end])
        with np.errstate(over="ignore"):  # far beyond what exp tells from 0
            weights = [
                _exp(-sharpness * (apart - least[start:end]))
                for apart, (start, _, end) in zip(node_distances, spans, strict=True)
            ]
        total = np.zeros(self.zones)
        for weight, (start, _, end) in zip(weights, spans, strict=True):
            total[start:end] += weight
        by_leaf = np.zeros((self.zones, self.zones))
        for weight, (start, middle, end) in zip(weights, spans, strict=True):
            share = weight / total[start:end]
            by_leaf[start:middle, middle:end] = share[: middle - start, None]
            by_leaf[middle:end, start:middle] = share[middle - start :, None]
        place = np.argsort(self.leaf_order)
        return by_leaf[np.ix_(place, place)]

    def to_linkage(self, distances: npt.ArrayLike) -> Floats:
        """SciPy's linkage matrix with `d_r` as heights, for `scipy.cluster.hierarchy.dendrogram` to draw.

        A child may stand higher than its parent: `L(T)` asks for a small sum of heights, not for rising ones.
        """
        columns = (*self.merges.T, self.node_distances(distances), self.sizes[self.zones :])
        return np.column_stack(columns).astype(np.float64)

    def to_json(self) -> str:
        """The tree as JSON; `from_json` gives it back."""
        return json.dumps({"format": FORMAT, "merges": self.merges.tolist()})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Dendrogram":
        """The tree of `to_json`, validated; other keys of the object are left to who wrote them."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DendrogramError(f"not JSON: {error}") from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            found = document.get("format") if isinstance(document, dict) else type(document).__name__
            raise DendrogramError(f"format {found!r}: a dendrogram's JSON is an object with format {FORMAT!r}")
        if "merges" not in document:
            raise DendrogramError("no 'merges' in the dendrogram's JSON: it is a list of pairs of nodes")
        return cls.from_merges(document["merges"])

    @cached_property
    def leaf_order(self) -> Ints:
        """The leaves from left to right: every node's leaves stand side by side in it."""
        order = np.empty(self.zones, np.int64)
        for node, start in enumerate(self._starts[: self.zones].tolist()):
            order[start] = node
        order.flags.writeable = False
        return order

    @cached_property
    def _starts(self) -> Ints:
        """Where each node's leaves start in `leaf_order`."""
        starts = np.zeros(2 * self.zones - 1, np.int64)
        for i in reversed(range(self.zones - 1)):
            left, right = self.merges[i]
            starts[left] = starts[self.zones + i]
            starts[right] = starts[left] + self.sizes[left]
        return starts

    def ancestors(self, leaf: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The leaf's ancestors from its parent to the root, each with the leaves of the subtree that it is not in.

        A node is `Z+i`; leaves ascend.
        """
        if not 0 <= leaf < self.zones:
            raise DendrogramError(f"leaf {leaf}: a dendrogram of {self.zones} zones has the leaves 0..{self.zones - 1}")
        below = leaf
        for i, (left, right) in enumerate(self.merges.tolist()):
            if below in (left, right):
                sibling = right if below == left else left
                start = int(self._starts[sibling])
                others = self.leaf_order[start : start + int(self.sizes[sibling])]
                below = self.zones + i
                yield below, tuple(sorted(others.tolist()))

    def _spans(self) -> Iterator[tuple[int, int, int]]:
        """For each internal node the slice of `leaf_order` of its left child and, next to it, of its right child."""
        for i, (left, _) in enumerate(self.merges.tolist()):
            start = int(self._starts[self.zones + i])
            yield start, start + int(self.sizes[left]), start + int(self.sizes[self.zones + i])

    def _in_leaf_order(self, distances: npt.ArrayLike) -> Floats:
        array = checked_distances(distances)
        if len(array) != self.zones:
            raise DendrogramError(f"distances between {len(array)} zones do not fit a dendrogram of {self.zones} zones")
        return array[np.ix_(self.leaf_order, self.leaf_order)]


def _exp(exponents: Floats) -> Floats:
    """math.exp, not np.exp: that one has other last bits on processors with other vector instructions."""
    return np.array([math.exp(exponent) for exponent in exponents.tolist()])


def _checked_merges(merges: npt.ArrayLike) -> Ints:
    """The merges as a read-only array of its own, refused unless they are a tree over the zones."""
    array = as_floats(merges, "merges", DendrogramError)  # SciPy's linkage matrix holds its nodes as floats, too
    if array.shape == (0,):
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise DendrogramError(f"merges of shape {array.shape}: give Z-1 pairs of nodes for Z zones")
    zones = len(array) + 1
    merged_by: dict[float, int] = {}
    for i, pair in enumerate(array.tolist()):
        row = f"merges[{i}] = [{pair[0]:.17g}, {pair[1]:.17g}]"
        for node in pair:
            if not (0 <= node < zones + i and node == int(node)):
                raise DendrogramError(
                    f"{row} joins node {node:.17g}: at this row nodes are the whole numbers"
                    f" 0..{zones + i - 1} ({zones} zones and the {i} nodes made before)"
                )
            if node in merged_by:
                raise DendrogramError(f"{row} joins node {node:.17g} again: merges[{merged_by[node]}] has joined it")
            merged_by[node] = i
    checked = array.astype(np.int64)
    checked.flags.writeable = False
    return checked
