import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from sgfusion import hrg_moves
from sgfusion.dendrogram import Dendrogram
from tests.trees import (
    KINDS,
    Floats,
    Planted,
    all_losses,
    all_merges,
    gibbs,
    index_of,
    leaves,
    metropolis,
    move_bits,
    naive_node_distances,
    proposals,
    random_distances,
    random_merges,
    to_merges,
)

ALMOST_ONE = 1 - 2.0**-53  # the greatest number that a stream of uniforms gives
LAST_31 = (2**33 - 1) & ~1  # all the bits that choose neither node nor coin


# One move


@pytest.mark.parametrize(("coin", "expected"), [(0, ((0, 2), 1)), (1, ((1, 2), 0))], ids=["alpha", "beta"])
def test_the_two_moves_of_three_zones(coin: int, expected: tuple[tuple[int, int], int]) -> None:
    state = Planted(np.array([[0, 1], [3, 2]]), np.zeros((3, 3)))
    assert state.walk([move_bits(3, 0, coin)], [ALMOST_ONE])[0] == 1  # no rise: accepted whatever is drawn
    assert state.dendrogram() == Dendrogram(to_merges(expected))


@pytest.mark.parametrize("zones", [3, 4, 5, 6])
def test_proposals_are_those_of_the_method(zones: int) -> None:
    """Every move from every tree, made by hand: uniform over non-root nodes, a fair coin, symmetric, irreducible."""
    chances = np.zeros_like(proposals(zones))
    distances = random_distances(np.random.default_rng(zones), zones)
    for i, merges in enumerate(all_merges(zones)):
        for node in range(zones - 2):
            for coin in (0, 1):
                state = Planted(merges, distances)
                accepted, _, _ = state.walk([move_bits(zones, node, coin)], [0.0])
                assert accepted == 1
                chances[i, index_of(zones)[state.dendrogram()]] += 1 / (2 * (zones - 2))
    np.testing.assert_allclose(chances, proposals(zones), atol=1e-15)
    assert np.array_equal(chances, chances.T)
    assert connected_components(chances > 0)[0] == 1


@pytest.mark.parametrize("temperature", [0.05, 0.3, math.inf])
def test_the_chain_is_in_detailed_balance(temperature: float) -> None:
    """The acceptance of every move from each of the 105 trees, found to nine digits by the draws around it."""
    zones = 5
    distances = random_distances(np.random.default_rng(8), zones)
    losses = all_losses(distances)
    transitions = np.zeros_like(proposals(zones))
    for i, merges in enumerate(all_merges(zones)):
        for node in range(zones - 2):
            for coin in (0, 1):
                bits = move_bits(zones, node, coin)
                proposed = Planted(merges, distances)
                proposed.walk([bits], [0.0])
                j = index_of(zones)[proposed.dendrogram()]
                chance = min(1.0, math.exp(-(losses[j] - losses[i]) / temperature))
                below, above = chance * (1 - 1e-9), chance * (1 + 1e-9)
                assert Planted(merges, distances).walk([bits], [min(below, ALMOST_ONE)], temperature)[0] == 1
                if above < 1:
                    assert Planted(merges, distances).walk([bits], [above], temperature)[0] == 0
                transitions[i, j] += chance / (2 * (zones - 2))
    transitions[np.diag_indices_from(transitions)] += 1 - transitions.sum(axis=1)
    np.testing.assert_allclose(transitions, metropolis(proposals(zones), losses, temperature), atol=1e-14)
    law = gibbs(losses, temperature)
    flow = law[:, None] * transitions
    np.testing.assert_allclose(flow, flow.T, atol=1e-16, rtol=1e-11)
    np.testing.assert_allclose(law @ transitions, law, atol=1e-15)


@pytest.mark.parametrize("zones", [3, 4, 5, 9, 115])
def test_the_bits_choose_every_node_equally_often(zones: int) -> None:
    """Node k owns the 31-bit numbers from k·2³¹/(zones-2) on: the counts of any two nodes differ by at most one."""
    state = Planted(random_merges(np.random.default_rng(zones), zones), np.zeros((zones, zones)))
    nodes = range(zones - 2) if zones < 100 else range(0, zones - 2, (zones - 3) // 6)
    for node in nodes:
        for high in (move_bits(zones, node, 0), move_bits(zones, node + 1, 0) - (1 << 33)):
            for bits in (high, high | LAST_31, high | 1):
                before = state.tree[:, :3].copy()
                state.walk([bits], [0.0])
                moved = np.flatnonzero(state.tree[:, 2] != before[:, 2])  # B and C change parents
                r = zones + node
                assert set(moved) == {state.tree[r, 1], *(set(before[r, :2]) - {state.tree[r, 0]})}
                assert state.tree[r, 0] == before[r, bits & 1]  # the coin keeps the left or the right child


# Many moves


@given(st.integers(3, 12), st.sampled_from(KINDS), st.integers(0, 2**32), st.sampled_from([0.01, 0.3, math.inf]))
def test_the_state_is_exact_after_many_moves(zones: int, kind: str, seed: int, temperature: float) -> None:
    rng = np.random.default_rng(seed)
    distances = random_distances(rng, zones, kind)
    state = Planted(random_merges(rng, zones), distances)
    for moves in (1, 2, 5, 50):
        state.walk(rng.integers(0, 2**64, moves, np.uint64), rng.random(moves), temperature)
        assert_exact(state, distances)


def assert_exact(state: Planted, distances: Floats) -> None:
    zones, root = state.zones, 2 * state.zones - 2
    below = {node: leaves(state.nested(node)) for node in range(2 * zones - 1)}
    assert sorted(below[root]) == list(range(zones))
    assert state.tree[root, 2] == -1

    def between(u: int, v: int) -> float:
        return float(distances[np.ix_(below[u], below[v])].sum())

    for node in range(2 * zones - 1):
        assert state.tree[node, 3] == len(below[node])
        np.testing.assert_allclose(state.reach[node], distances[below[node]].sum(axis=0), rtol=1e-12)
        if node < zones:
            assert state.tree[node, :2].tolist() == [-1, -1]
            continue
        a, b, w, _ = state.tree[node].tolist()
        assert state.tree[a, 2] == state.tree[b, 2] == node
        assert state.near[node, 2] == pytest.approx(between(a, b), rel=1e-12)
        if node != root and state.near[node, 0] != hrg_moves.STALE:
            (c,) = set(state.tree[w, :2].tolist()) - {node}
            assert state.near[node, :2].tolist() == pytest.approx([between(a, c), between(b, c)], rel=1e-12)
    expected = sum(naive_node_distances(to_merges(state.nested()), distances))
    assert hrg_moves.tree_loss(state.tree, state.near) == pytest.approx(expected, rel=1e-12)


@given(st.integers(3, 10), st.sampled_from(KINDS), st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.3, math.inf]))
@settings(max_examples=30)
def test_the_best_tree_is_the_best_of_all_it_passed(zones: int, kind: str, seed: int, temperature: float) -> None:
    """One walk, and the same moves one at a time with every loss from the definition."""
    rng = np.random.default_rng(seed)
    distances, merges = random_distances(rng, zones, kind), random_merges(rng, zones)
    temperature = temperature or 1e-9
    bits, uniforms = rng.integers(0, 2**64, 120, np.uint64), rng.random(120)
    at_once, by_step = Planted(merges, distances), Planted(merges, distances)
    accepted, best, improved_at = at_once.walk(bits, uniforms, temperature)
    steps, least, last = 0, Dendrogram(merges).loss(distances), 0
    for move in range(len(bits)):
        steps += by_step.walk(bits[move : move + 1], uniforms[move : move + 1], temperature)[0]
        loss = by_step.dendrogram().loss(distances)
        if loss < least * (1 - 1e-9):
            least, last = loss, move
    assert (accepted, at_once.nested()) == (steps, by_step.nested())
    assert best == pytest.approx(least, rel=1e-11)
    assert improved_at == last
    best_state = Planted(merges, distances)
    best_state.tree[:] = at_once.best_tree
    assert best_state.dendrogram().loss(distances) == pytest.approx(best, rel=1e-11)


def test_a_walk_that_finds_nothing_better_says_so_and_keeps_the_best_tree() -> None:
    rng = np.random.default_rng(3)
    state = Planted(random_merges(rng, 6), random_distances(rng, 6))
    _, best, improved_at = state.walk(rng.integers(0, 2**64, 50, np.uint64), rng.random(50), best=0.001)
    assert (best, improved_at) == (0.001, -1)
    assert not state.best_tree.any()
