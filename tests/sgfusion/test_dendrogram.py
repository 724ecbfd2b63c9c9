import dataclasses
import math
import pickle
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import dendrogram as draw_dendrogram
from scipy.cluster.hierarchy import is_valid_linkage, linkage
from scipy.spatial.distance import squareform

from sgfusion.dendrogram import Dendrogram
from sgfusion.errors import DendrogramError, DistanceError
from tests.trees import (
    KINDS,
    Floats,
    Ints,
    merges_of,
    naive_node_distances,
    random_distances,
    random_merges,
    symmetric,
    trees_and_distances,
    zones_below,
)

THREE = symmetric(np.array([[0, 1, 2], [0, 0, 4], [0, 0, 0.0]]))
FOUR = symmetric(np.array([[0, 1, 3, 4], [0, 0, 5, 8], [0, 0, 0, 2], [0, 0, 0, 0.0]]))
LEVEL = [[0, 1], [2, 3], [4, 5]]
LADDER = [[0, 1], [4, 2], [5, 3]]


# Tiny exact numbers


@pytest.mark.parametrize(
    ("merges", "distances", "expected"),
    [
        ([[0, 1], [3, 2]], THREE, [1, 3]),
        ([[0, 2], [1, 3]], THREE, [2, 2.5]),
        ([[2, 1], [3, 0]], THREE, [4, 1.5]),
        (LEVEL, FOUR, [1, 2, 5]),
        (LADDER, FOUR, [1, 4, 14 / 3]),
        ([[3, 0], [2, 4], [1, 5]], FOUR, [4, 2.5, 14 / 3]),
        ([[0, 1]], [[0, 7], [7, 0]], [7]),
        ([], [[0]], []),
    ],
)
def test_node_distances_and_loss(merges: list[list[int]], distances: npt.ArrayLike, expected: list[float]) -> None:
    tree = Dendrogram.from_merges(merges)
    assert tree.zones == len(expected) + 1
    assert tree.node_distances(distances).tolist() == expected
    assert tree.loss(distances) == pytest.approx(sum(expected), rel=1e-15)


def test_sharing_probabilities_of_three_zones() -> None:
    near, far = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))
    shares = Dendrogram.from_merges([[0, 1], [3, 2]]).sharing_probabilities(THREE)
    np.testing.assert_allclose(shares, [[0.0, near, far], [near, 0.0, far], [1.0, 1.0, 0.0]], rtol=1e-15)


def test_sharing_probabilities_of_four_zones_with_sharpness_ln_2() -> None:
    # exp(-κ d) = 2^-d: the ancestors of 0 and 1 weigh 1/2 and 1/32, those of 2 and 3 weigh 1/4 and 1/32.
    shares = Dendrogram.from_merges(LEVEL).sharing_probabilities(FOUR, sharpness=math.log(2))
    expected = [
        [0, 16 / 17, 1 / 17, 1 / 17],
        [16 / 17, 0, 1 / 17, 1 / 17],
        [1 / 9, 1 / 9, 0, 8 / 9],
        [1 / 9, 1 / 9, 8 / 9, 0],
    ]
    np.testing.assert_allclose(shares, expected, rtol=1e-14)


def test_small_trees_share_all_or_nothing() -> None:
    assert Dendrogram.from_merges([]).sharing_probabilities([[0]]).tolist() == [[0]]
    assert Dendrogram.from_merges([[0, 1]]).sharing_probabilities([[0, 9], [9, 0]]).tolist() == [[0, 1], [1, 0]]


def test_sizes_and_order_of_leaves() -> None:
    tree = Dendrogram.from_merges([[3, 0], [2, 4], [1, 5]])
    assert tree.sizes.tolist() == [1, 1, 1, 1, 2, 3, 4]
    assert tree.leaf_order.tolist() == [1, 2, 3, 0]


# Against brute force


@given(trees_and_distances())
def test_loss_is_that_of_the_definition(case: tuple[Ints, Floats]) -> None:
    merges, distances = case
    tree = Dendrogram(merges)
    expected = naive_node_distances(merges, distances)
    np.testing.assert_allclose(tree.node_distances(distances), expected, rtol=1e-12)
    assert tree.loss(distances) == pytest.approx(sum(expected), rel=1e-12)


def climb(merges: Ints, distances: Floats, sharpness: float) -> Floats:
    """Method 4 from leaf to root, one zone at a time."""
    below, apart = zones_below(merges), naive_node_distances(merges, distances)
    zones = len(merges) + 1
    shares = np.zeros((zones, zones))
    for zone in range(zones):
        ancestors = [i for i in range(zones - 1) if zone in below[zones + i]]
        total = sum(math.exp(-sharpness * apart[i]) for i in ancestors)
        met = {zone}
        for i in ancestors:  # children come before parents
            others = set(below[zones + i]) - met
            shares[zone, list(others)] = math.exp(-sharpness * apart[i]) / total
            met |= others
    return shares


@given(trees_and_distances(largest=20), st.floats(0, 10))
def test_sharing_probabilities_are_those_of_a_climb(case: tuple[Ints, Floats], sharpness: float) -> None:
    merges, distances = case
    shares = Dendrogram(merges).sharing_probabilities(distances, sharpness)
    np.testing.assert_allclose(shares, climb(merges, distances, sharpness), rtol=1e-10)


@given(trees_and_distances(largest=1e150), st.sampled_from([0.0, 1.0, 1e5, 1e150]))
def test_no_sharpness_or_unit_breaks_the_probabilities(case: tuple[Ints, Floats], sharpness: float) -> None:
    merges, distances = case
    tree = Dendrogram(merges)
    shares = tree.sharing_probabilities(distances, sharpness)
    assert np.all((shares >= 0) & (shares <= 1))
    for zone in range(tree.zones):  # one zone of each side passed on the way up stands for its ancestor
        of_ancestors = [shares[zone, side[0]] for side in sides(merges, zone)]
        assert sum(of_ancestors) == pytest.approx(min(len(of_ancestors), 1), rel=1e-12)


def sides(merges: Ints, zone: int) -> list[list[int]]:
    """The subtrees that a climb from the zone does not come from, one at each ancestor."""
    below = zones_below(merges)
    return [
        below[right] if zone in below[left] else below[left]
        for left, right in merges.tolist()
        if zone in below[left] + below[right]
    ]


# SciPy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zones", [2, 3, 10, 40])
def test_linkages_are_valid_and_drawn_with_every_leaf(kind: str, zones: int) -> None:
    rng = np.random.default_rng(zones)
    for _ in range(5):
        tree, distances = Dendrogram(random_merges(rng, zones)), random_distances(rng, zones, kind)
        table = tree.to_linkage(distances)
        assert is_valid_linkage(table, throw=True)
        assert table[:, 2].tolist() == tree.node_distances(distances).tolist()
        assert sorted(draw_dendrogram(table, no_plot=True)["leaves"]) == list(range(zones))


@pytest.mark.parametrize("zones", [2, 5, 30])
def test_heights_of_average_linkage_are_its_node_distances(zones: int) -> None:
    distances = random_distances(np.random.default_rng(zones), zones)
    table = linkage(squareform(distances), "average")
    tree = Dendrogram.from_merges(table[:, :2])  # floats, as SciPy has them
    np.testing.assert_allclose(tree.node_distances(distances), table[:, 2], rtol=1e-12)
    np.testing.assert_allclose(tree.to_linkage(distances), table, rtol=1e-12)


def test_one_zone_has_an_empty_linkage() -> None:
    assert Dendrogram.from_merges([]).to_linkage([[0]]).shape == (0, 4)


# What it refuses


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([[0, 3]], r"merges\[0\] = \[0, 3\] joins node 3: at this row nodes are the whole numbers 0\.\.1"),
        ([[0, -1]], r"merges\[0\] = \[0, -1\] joins node -1: "),
        ([[0, 4], [1, 2]], r"merges\[0\] = \[0, 4\] joins node 4: .*0\.\.2 \(3 zones and the 0 nodes made before\)"),
        ([[0, 1], [4, 2]], r"merges\[1\] = \[4, 2\] joins node 4: .*0\.\.3 \(3 zones and the 1 nodes made before\)"),
        ([[0, 0]], r"merges\[0\] = \[0, 0\] joins node 0 again: merges\[0\]"),
        ([[0, 1], [2, 0], [3, 4]], r"merges\[1\] = \[2, 0\] joins node 0 again: merges\[0\]"),
        ([[0, 1], [4, 2], [4, 3]], r"merges\[2\] = \[4, 3\] joins node 4 again: merges\[1\]"),
        (np.array([[0, 2**63]], np.uint64), r"joins node 9.2233720368547758e\+18"),
        ([[0.0, 1.0], [3.0, 1.5]], r"merges\[1\] = \[3, 1\.5\] joins node 1\.5: .* whole numbers"),
        ([[0.0, math.nan]], r"merges\[0\] = \[0, nan\] joins node nan: "),
        ([[0.0, 1.0], [3.0, math.inf]], r"merges\[1\] = \[3, inf\] joins node inf: "),
        ([["0", "1"]], "merges = .*: not numbers"),
        ([[0, 1], [2]], "merges = .*: not numbers"),
        ([[0, 1e300]], r"joins node 1.0*1e\+300"),
        ([[], [], []], r"shape \(3, 0\): give Z-1 pairs"),
        ([0, 1], r"shape \(2,\): give Z-1 pairs"),
        ([[0, 1, 2]], r"shape \(1, 3\): give Z-1 pairs"),
    ],
)
def test_what_is_not_a_tree_is_refused(merges: npt.ArrayLike, message: str) -> None:
    with pytest.raises(DendrogramError, match=message):
        Dendrogram.from_merges(merges)


@pytest.mark.parametrize("sharpness", [-1.0, math.nan, math.inf])
def test_a_sharpness_that_makes_no_probabilities_is_refused(sharpness: float) -> None:
    with pytest.raises(DendrogramError, match=f"sharpness = {sharpness}"):
        Dendrogram.from_merges(LEVEL).sharing_probabilities(FOUR, sharpness)


def test_distances_of_other_zones_are_refused() -> None:
    tree = Dendrogram.from_merges(LEVEL)
    with pytest.raises(DendrogramError, match="between 3 zones do not fit a dendrogram of 4 zones"):
        tree.loss(THREE)
    with pytest.raises(DistanceError, match=r"distances\[0, 1\] = -1\.0 is negative"):
        tree.node_distances(-FOUR)


# A value


def test_it_is_frozen_and_keeps_its_own_merges() -> None:
    given_merges = np.array(LEVEL)
    tree = Dendrogram(given_merges)
    given_merges[0] = 7
    assert tree.merges.tolist() == LEVEL
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.merges = given_merges  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        tree.merges[0, 0] = 1


@given(st.integers(2, 8).flatmap(merges_of), st.randoms(use_true_random=False))
def test_the_same_tree_written_otherwise_is_equal(merges: Ints, random: Random) -> None:
    zones = len(merges) + 1
    number = {zone: zone for zone in range(zones)}
    rows, written = list(range(zones - 1)), list[list[int]]()
    while rows:  # any order that keeps children before parents, and either child first
        row = random.choice([i for i in rows if all(node in number for node in merges[i].tolist())])
        rows.remove(row)
        number[zones + row] = zones + len(written)
        written.append(random.sample([number[node] for node in merges[row].tolist()], 2))
    one, other = Dendrogram(merges), Dendrogram.from_merges(written)
    assert one == other
    assert hash(one) == hash(other)


def test_other_trees_are_not_equal() -> None:
    trees = [Dendrogram.from_merges(merges) for merges in ([], [[0, 1]], [[0, 1], [3, 2]], LEVEL, LADDER)]
    assert len(set(trees)) == len(trees)
    assert Dendrogram.from_merges(LEVEL) != LEVEL


def test_what_it_computes_once_cannot_be_written_to_nor_what_comes_from_a_pickle() -> None:
    tree = Dendrogram.from_merges([[0, 1], [2, 3]])
    for array in (tree.sizes, tree.leaf_order, pickle.loads(pickle.dumps(tree)).merges):  # noqa: S301 (our own bytes)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_sharpness_beyond_all_measure_takes_the_nearest_only() -> None:
    distances = np.array([[0, 100, 300], [100, 0, 300], [300, 300, 0.0]])
    probabilities = Dendrogram.from_merges([[0, 1], [2, 3]]).sharing_probabilities(distances, 1e308)
    assert probabilities.tolist() == [[0, 1, 0], [1, 0, 0], [1, 1, 0]]


def test_ancestors_from_the_parent_to_the_root_with_the_leaves_on_their_other_side() -> None:
    tree = Dendrogram.from_merges([[4, 1], [3, 0], [6, 2], [5, 7]])  # ((4, 1), ((3, 0), 2))
    assert list(tree.ancestors(0)) == [(6, (3,)), (7, (2,)), (8, (1, 4))]
    assert list(tree.ancestors(4)) == [(5, (1,)), (8, (0, 2, 3))]
    assert list(Dendrogram.from_merges([]).ancestors(0)) == []
    for leaf in (-1, 5):
        with pytest.raises(DendrogramError, match=f"leaf {leaf}: a dendrogram of 5 zones has the leaves 0..4"):
            list(tree.ancestors(leaf))
