"""Method 4: probabilistic dendrograms."""

import math

import numpy as np
import pytest

from sgfusion.dendrogram import Dendrogram
from sgfusion.hrg import fit_dendrogram
from tests.trees import Floats, Ints, random_distances, random_merges, zones_below

CASES = [
    (random_merges(rng, zones), random_distances(rng, zones, kind))
    for rng in [np.random.default_rng(41)]
    for zones in (2, 3, 8, 25)
    for kind in ("uniform", "histograms", "far")
]


def ancestors(merges: Ints, zone: int) -> list[tuple[int, int]]:
    """`S_z`, from the leaf up: each ancestor's row in `merges`, and a zone of the side not come from."""
    below = zones_below(merges)
    pairs = [(row, left, right) for row, (left, right) in enumerate(merges.tolist())]
    return [
        (row, below[right if zone in below[left] else left][0])
        for row, left, right in pairs
        if zone in below[left] + below[right]
    ]


@pytest.mark.parametrize(("merges", "distances"), CASES)
def test_probabilities_of_ancestors(merges: Ints, distances: Floats) -> None:
    """For each zone `z` with ancestors `S_z`: `p_r = exp(-d_r) / Σ_{s in S_z} exp(-d_s)`"""
    tree = Dendrogram(merges)
    shares, apart = tree.sharing_probabilities(distances), tree.node_distances(distances)
    for zone in range(tree.zones):
        rows = [row for row, _ in ancestors(merges, zone)]
        least = min(apart[row] for row in rows)
        total = sum(math.exp(least - apart[row]) for row in rows)
        for row, other in ancestors(merges, zone):
            assert shares[zone, other] == pytest.approx(math.exp(least - apart[row]) / total, rel=1e-12)


@pytest.mark.parametrize(("merges", "distances"), CASES)
def test_probabilities_sum_to_one_over_ancestors(merges: Ints, distances: Floats) -> None:
    """so `Σ_{r in S_z} p_r = 1`."""
    shares = Dendrogram(merges).sharing_probabilities(distances)
    for zone in range(len(distances)):
        assert sum(shares[zone, other] for _, other in ancestors(merges, zone)) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("merges", "distances"), CASES)
def test_probability_at_the_lowest_common_ancestor(merges: Ints, distances: Floats) -> None:
    """`p(z,z') = p_r` at their lowest common ancestor"""
    shares = Dendrogram(merges).sharing_probabilities(distances)
    below = zones_below(merges)
    for left, right in merges.tolist():
        for zone, others in [(z, below[right]) for z in below[left]] + [(z, below[left]) for z in below[right]]:
            assert len(set(shares[zone, others].tolist())) == 1  # one p_r for the whole subtree
    assert not np.diag(shares).any()


def test_each_zone_has_its_own() -> None:
    """The cloud sends zone `z` its
    own `T_z` only.
    """
    tree = Dendrogram.from_merges([[0, 1], [3, 2]])
    shares = tree.sharing_probabilities([[0, 1, 3], [1, 0, 3], [3, 3, 0]])
    near = 1 / (1 + math.exp(-2))
    np.testing.assert_allclose(shares, [[0.0, near, 1 - near], [near, 0.0, 1 - near], [1.0, 1.0, 0.0]], rtol=1e-14)
    assert shares[0, 2] != shares[2, 0]  # the same ancestor, weighed against others in T_0 and in T_2


def test_sharpness() -> None:
    """a sharpness `κ` (`exp(-κ d_r)`, default 1 as in the paper) is a setting, because distances are small."""
    distances = random_distances(np.random.default_rng(42), 16, "clusters")
    tree = fit_dendrogram(distances, seed=0).dendrogram
    as_in_the_paper = tree.sharing_probabilities(distances)
    assert np.array_equal(as_in_the_paper, tree.sharing_probabilities(distances, sharpness=1.0))
    # κ is a unit of distance.
    np.testing.assert_allclose(
        tree.sharing_probabilities(distances, 7.0), tree.sharing_probabilities(7 * distances), rtol=1e-10
    )
    for zone in range(16):
        own = [other for _, other in ancestors(tree.merges, zone)]
        flat, paper, sharp = (tree.sharing_probabilities(distances, k)[zone, own] for k in (0.0, 1.0, 1e9))
        assert flat.tolist() == pytest.approx([1 / len(own)] * len(own), rel=1e-14)
        assert paper.max() < 2.5 * paper.min()  # small distances: hardly a preference
        assert sharp.max() == 1.0


def test_all_distances_zero_give_every_ancestor_the_same() -> None:
    """Equal histograms: distances 0, uniform."""
    tree = fit_dendrogram(np.zeros((8, 8)), seed=0).dendrogram
    assert tree.sharing_probabilities(np.zeros((8, 8))).tolist() == ((1 - np.eye(8)) / 3).tolist()  # a level tree
