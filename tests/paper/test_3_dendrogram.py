"""Method 3: the dendrogram, a hierarchical random graph over zones."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from sgfusion.dendrogram import Dendrogram
from sgfusion.distance import zone_distances
from sgfusion.hrg import fit_dendrogram, sample_chain
from tests.trees import (
    Floats,
    Ints,
    Planted,
    all_dendrograms,
    all_losses,
    all_merges,
    gibbs,
    index_of,
    law_is_rejected,
    leaves,
    metropolis,
    move_bits,
    proposals,
    random_distances,
    random_merges,
    to_merges,
)

FIVE = random_distances(np.random.default_rng(31), 5)
LADDER: Ints = np.array([[0, 1], [5, 2], [6, 3], [7, 4]])
ALMOST_ONE = 1 - 2.0**-53


@pytest.fixture(scope="module")
def sixteen() -> Floats:
    """Sixteen zones of four kinds, as histograms are: most are 0.1 to 0.4 apart."""
    rng = np.random.default_rng(32)
    kinds = rng.dirichlet(np.full(10, 3.0), 4)
    return zone_distances(np.array([rng.dirichlet(60 * kinds[zone % 4]) for zone in range(16)]))


def random_loss(distances: Floats) -> float:
    rng = np.random.default_rng(33)
    return float(np.mean([Dendrogram(random_merges(rng, len(distances))).loss(distances) for _ in range(500)]))


# The tree and its loss


def test_node_distances() -> None:
    """d_r = Σ_{z in L_r, z' in R_r} d(Y_z, Y_z') / (n_L n_R)"""
    tree = Dendrogram.from_merges([[0, 1], [2, 3], [5, 6], [4, 7]])
    means = [FIVE[0, 1], FIVE[2, 3], FIVE[:2, 2:4].sum() / 4, FIVE[:4, 4].sum() / 4]
    assert tree.node_distances(FIVE).tolist() == pytest.approx(means, rel=1e-14)


def test_loss() -> None:
    """L(T) = Σ_r d_r"""
    assert [tree.loss(FIVE) for tree in all_dendrograms(5)] == pytest.approx(all_losses(FIVE).tolist(), rel=1e-14)


def test_optimum() -> None:
    """T* = argmin L(T)"""
    assert fit_dendrogram(FIVE, seed=0).dendrogram == all_dendrograms(5)[all_losses(FIVE).argmin()]


# The chain


def test_a_node_but_the_root_is_picked_uniformly() -> None:
    """pick a *non-root* internal node `r` uniformly"""
    seen = set()
    for node in range(3):  # node k owns a third of the 31-bit numbers, the first and the last of them included
        for high in (move_bits(5, node, 0), move_bits(5, node + 1, 0) - (1 << 33)):
            state = Planted(LADDER, FIVE)
            state.walk([high], [0.0])
            root_kept = state.tree[8, :2].tolist() in ([7, 4], [4, 7])
            assert root_kept == (node < 2)  # α and β below the root change it only when r is the root's child
            seen.add((node, state.dendrogram()))
    assert len(seen) == 3
    assert [move_bits(5, node, 0) >> 33 for node in range(4)] == [math.ceil(node * 2**31 / 3) for node in range(4)]


def test_alpha_or_beta() -> None:
    """From `((A,B),C)` propose, with probability 1/2 each, `((A,C),B)` (α) or `((B,C),A)` (β)."""
    three = FIVE[:3, :3]
    for a, b, c in itertools.permutations(range(3)):
        merges = to_merges(((a, b), c))
        proposed = []
        for coin in (0, 1):
            state = Planted(merges, three)
            state.walk([coin], [0.0])
            proposed.append(state.dendrogram())
        assert proposed == [Dendrogram(to_merges(tree)) for tree in (((a, c), b), ((b, c), a))]
    trees = list(sample_chain(np.zeros((3, 3)), seed=1, temperature=1.0, moves=4001))
    turns = Counter((index_of(3)[new] - index_of(3)[old]) % 3 for old, new in itertools.pairwise(trees))
    assert turns[0] == 0  # no rise: always accepted
    assert abs(turns[1] - turns[2]) < 5 * math.sqrt(4000)


def test_acceptance() -> None:
    """Accept with `ρ = min(1, exp(-(L(T') - L(T)) / temperature))`."""
    losses = all_losses(FIVE)
    for temperature, (i, merges) in itertools.product((0.1, 1.0), enumerate(all_merges(5))):
        tried = Planted(merges, FIVE)
        tried.walk([move_bits(5, 2, 0)], [0.0])
        ratio = math.exp(-(losses[index_of(5)[tried.dendrogram()]] - losses[i]) / temperature)
        for drawn, accepted in ((ratio * (1 - 1e-9), 1), (ratio * (1 + 1e-9), 0)):
            walked = Planted(merges, FIVE).walk([move_bits(5, 2, 0)], [min(drawn, ALMOST_ONE)], temperature)
            assert walked[0] == (1 if ratio >= 1 else accepted)


def test_the_proposal_is_symmetric() -> None:
    """The proposal is symmetric"""
    chances = np.zeros((105, 105))
    for i, merges in enumerate(all_merges(5)):
        for node, coin in itertools.product(range(3), range(2)):
            state = Planted(merges, FIVE)
            state.walk([move_bits(5, node, coin)], [0.0])
            chances[i, index_of(5)[state.dendrogram()]] += 1 / 6
    assert np.array_equal(chances, chances.T)
    np.testing.assert_allclose(chances, proposals(5), atol=1e-15)
    law = gibbs(all_losses(FIVE), 0.2)
    np.testing.assert_allclose(law @ metropolis(chances, all_losses(FIVE), 0.2), law, atol=1e-15)


@pytest.mark.parametrize(("temperature", "seed"), [(0.1, 1), (0.2, 2)])
def test_stationary_law(temperature: float, seed: int) -> None:
    """the chain's stationary law is
    exactly `∝ exp(-L(T) / temperature)`: that is a test, not a remark (five zones have only 105 trees).
    """
    trees = sample_chain(FIVE, seed=seed, temperature=temperature, moves=20_000 * 100, thin=100)
    counts = Counter(itertools.islice(trees, 20, None))
    seen = np.array([counts[tree] for tree in all_dendrograms(5)], np.float64)
    losses = all_losses(FIVE)
    assert len(losses) == 105
    assert not law_is_rejected(seen, gibbs(losses, temperature))
    assert law_is_rejected(seen, gibbs(losses, temperature * 1.15))


# What we settled


def test_the_papers_temperature_wanders(sixteen: Floats) -> None:
    """Histogram distances are about 0.1 to 0.4, so at temperature 1 the
    chain accepts 92 to 99 % of all moves and wanders: it ends near a random tree
    """
    apart = sixteen[np.triu_indices(16, 1)]
    assert 0.05 < np.quantile(apart, 0.1) < np.quantile(apart, 0.9) < 0.45
    assert 0.92 <= fit_dendrogram(sixteen, seed=1, schedule="paper").acceptance <= 0.99
    chain = sample_chain(sixteen, seed=1, temperature=1.0, moves=300 * 80, thin=80)
    wandering = np.mean([tree.loss(sixteen) for tree in chain])
    random, best = random_loss(sixteen), fit_dendrogram(sixteen, seed=1).loss
    assert random - wandering < 0.1 * (random - best)


def test_the_default_finds_the_optimum(sixteen: Floats) -> None:
    """So the default is an annealed schedule
    that finds `T*`; `schedule = "paper"` keeps temperature 1 and returns the best tree it saw.
    """
    seven = sixteen[:7, :7]
    assert fit_dendrogram(seven, seed=0).loss == pytest.approx(all_losses(seven).min(), rel=1e-12)
    annealed = {fit_dendrogram(sixteen, seed=seed).dendrogram for seed in range(5)}
    assert len(annealed) == 1
    (best,) = annealed
    paper = fit_dendrogram(sixteen, seed=0, schedule="paper")
    assert best.loss(sixteen) < 0.9 * paper.loss
    assert paper.loss < random_loss(sixteen)


def test_sums_between_nodes() -> None:
    """Keep `S[u,v]`, the sum of distances between the leaves of nodes `u` and `v`."""
    rng = np.random.default_rng(34)
    state = Planted(LADDER, FIVE)
    state.walk(rng.integers(0, 2**64, 200, np.uint64), rng.random(200))
    for node in range(9):
        below = leaves(state.nested(node))
        assert state.reach[node].tolist() == pytest.approx(FIVE[below].sum(axis=0).tolist(), rel=1e-14)


def test_an_accepted_move_is_local() -> None:
    """an accepted move changes only node `r`'s leaf set, so it costs O(|Z|)."""
    for node, coin in itertools.product(range(3), range(2)):
        state = Planted(LADDER, FIVE)
        before = [set(leaves(state.nested(each))) for each in range(9)]
        state.walk([move_bits(5, node, coin)], [0.0])
        after = [set(leaves(state.nested(each))) for each in range(9)]
        assert [each for each in range(9) if after[each] != before[each]] == [5 + node]


def test_convergence() -> None:
    """Relative, never absolute (L is small): best unchanged for k·|Z| moves, with a cap; say which ended it."""
    for unit in (2.0**-40, 1.0, 2.0**40):
        long = fit_dendrogram(FIVE * unit, seed=0, patience=50)
        assert long.converged
        assert long.moves == fit_dendrogram(FIVE, seed=0, patience=50).moves
        capped = fit_dendrogram(FIVE * unit, seed=0, patience=50, max_moves=long.moves - 1)
        assert (capped.converged, capped.moves) == (False, long.moves - 1)


def test_one_zone() -> None:
    """One zone: a single leaf, nothing to sample."""
    fit = fit_dendrogram([[0]], seed=0)
    assert (fit.dendrogram.merges.shape, fit.loss, fit.moves, fit.converged) == ((0, 2), 0, 0, True)


def test_two_zones() -> None:
    """Two zones: one node."""
    fit = fit_dendrogram([[0, 0.3], [0.3, 0]], seed=0)
    assert (fit.dendrogram.merges.shape, fit.loss, fit.moves, fit.converged) == ((1, 2), 0.3, 0, True)


def test_equal_histograms() -> None:
    """Equal histograms: distances 0, uniform."""
    distances = zone_distances([[0.1, 0.2, 0.7]] * 5)
    assert not distances.any()
    assert fit_dendrogram(distances, seed=0).loss == 0
    trees = sample_chain(distances, seed=3, temperature=1.0, moves=10_000 * 40, thin=40)
    counts = Counter(trees)
    assert not law_is_rejected(
        np.array([counts[tree] for tree in all_dendrograms(5)], np.float64), np.full(105, 1 / 105)
    )
