"""Method 8: variants; and the two of method 9 that are a choice of who is drawn."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy.stats import binomtest

from sgfusion.distance import zone_distances
from sgfusion.sampling import ChiSampler, NeighbourSampler, NoSampler, TopKSampler

P = np.array(
    [
        [0.0, 0.6, 0.3, 0.1, 0.05],
        [0.2, 0.0, 0.2, 0.2, 0.2],
        [0.5, 0.0, 0.0, 0.25, 0.25],
        [0.1, 0.2, 0.3, 0.0, 1.0],
        [0.9, 0.05, 0.04, 0.01, 0.0],
    ]
)
ZONES = 5
ROUNDS = 3000
UNLIKELY = 1e-10


def successive(zone: int, count: int) -> dict[tuple[int, ...], float]:
    """The law of `count` draws one after the other, each in proportion to the weights of those not yet drawn."""
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for order in itertools.permutations([other for other in range(ZONES) if P[zone, other]], count):
        chance, left = 1.0, P[zone].sum()
        for other in order:
            chance *= P[zone, other] / left
            left -= P[zone, other]
        law[tuple(sorted(order))] += chance
    return law


def test_the_exact_law_by_hand() -> None:
    """zone `z` draws exactly `χ_z` zones without replacement with weights `p(z,z')`"""
    assert successive(1, 2)[0, 2] == pytest.approx(1 / 6)  # equal weights: six pairs
    assert successive(2, 2)[3, 4] == pytest.approx(1 / 4 * 1 / 3 + 1 / 4 * 1 / 3)
    for zone, count in itertools.product(range(ZONES), range(4)):
        assert sum(successive(zone, count).values()) == pytest.approx(1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_chi_draws_with_the_exact_law_of_successive_sampling(count: int) -> None:
    """zone `z` draws exactly `χ_z` zones without replacement with weights `p(z,z')`"""
    sampler = ChiSampler(P, [count] * ZONES, 41)
    for zone in range(ZONES):
        drawn = [sampler.draw(zone, t) for t in range(ROUNDS)]
        law, found = successive(zone, count), Counter(drawn)
        assert found.keys() <= law.keys()
        for zones, chance in law.items():
            assert binomtest(found[zones], ROUNDS, min(chance, 1.0)).pvalue > UNLIKELY
        for other in range(ZONES):
            inclusion = sum(chance for zones, chance in law.items() if other in zones)
            assert binomtest(sum(other in draw for draw in drawn), ROUNDS, min(inclusion, 1.0)).pvalue > UNLIKELY


def test_chi_is_each_zones_own() -> None:
    """`χ_z` defaults to its number of geographic neighbours."""
    neighbours = [[1], [0, 2], [1, 3, 4], [2, 4], []]
    chi = [len(of_zone) for of_zone in neighbours]
    sampler = ChiSampler(P, chi, 3)
    for zone, t in itertools.product(range(ZONES), range(200)):
        draw = sampler.draw(zone, t)
        assert len(draw) == len(set(draw)) == chi[zone]
        assert zone not in draw


def test_chi_draws_zones_whose_weights_all_but_vanish() -> None:
    """zone `z` draws exactly `χ_z` zones without replacement with weights `p(z,z')`"""
    sampler = ChiSampler(np.array([[0, 1, 5e-324], [1, 0, 0], [1, 0, 0]]), [2, 1, 1], 1)
    assert {sampler.draw(0, t) for t in range(30)} == {(1, 2)}


def test_top_k_is_the_nearest_by_label_distribution() -> None:
    """top-k-SGFusion: the `k` zones nearest in label distribution, every round."""
    rng = np.random.Generator(np.random.Philox(key=5))
    distances = zone_distances(rng.dirichlet(np.ones(4), size=9))
    for k in range(9):
        sampler = TopKSampler(distances, k)
        for zone in range(9):
            others = sorted((other for other in range(9) if other != zone), key=lambda other: distances[zone, other])
            assert {sampler.draw(zone, t) for t in range(5)} == {tuple(sorted(others[:k]))}


def test_d_zgd_has_fixed_geographic_neighbours() -> None:
    """D-ZGD: method 7 with `N(z)` = the geographic neighbours, fixed."""
    sampler = NeighbourSampler([[2, 1], [0], [0]])
    assert {sampler.draw(0, t) for t in range(50)} == {(1, 2)}
    assert {sampler.draw(2, t) for t in range(50)} == {(0,)}


def test_sgeofl_shares_nothing() -> None:
    """SGeoFL: one model per zone, no sharing."""
    assert {NoSampler().draw(zone, t) for zone in range(9) for t in range(50)} == {()}
