"""Method 5: bottom-up sampling, each round."""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binomtest

from sgfusion.dendrogram import Dendrogram
from sgfusion.fusion import fuse
from sgfusion.optimiser import Optimiser
from sgfusion.sampling import HrgSampler
from sgfusion.streams import raw_stream, uniforms
from sgfusion.zone_trainer import ZoneState, ZoneTrainer

Floats = npt.NDArray[np.float64]
#          10
#        /    \
#       8      9         zones 0..5; node 9 joins 6 = {0, 1} and 2
#      / \    / \
#     7   5  6   2
#    / \    / \
#   3   4  0   1
TREE = Dendrogram.from_merges([[0, 1], [3, 4], [7, 5], [6, 2], [8, 9]])
ZONES = 6
PLACES = np.array([[0.0, 0.1], [0.1, 0.2], [0.5, 0.0], [2.0, 2.0], [2.1, 1.0], [1.0, 3.0]])
DISTANCES = np.abs(PLACES[:, None] - PLACES[None]).sum(axis=2)
P = TREE.sharing_probabilities(DISTANCES)
ROUNDS = 3000
UNLIKELY = 1e-10


def leaves(node: int) -> list[int]:
    return [node] if node < ZONES else [leaf for child in TREE.merges[node - ZONES].tolist() for leaf in leaves(child)]


def climb(zone: int) -> Iterator[tuple[int, list[int]]]:
    """From the leaf to the root: each ancestor, with the zones of the subtree that the climb did not come from."""
    came_from = zone
    for ancestor, children in enumerate(TREE.merges.tolist(), ZONES):
        if came_from in children:
            other = children[1 - children.index(came_from)]
            yield ancestor, leaves(other)
            came_from = ancestor


def climbed_probabilities(zone: int) -> dict[int, float]:
    """`p_r` of each ancestor of a zone, straight from method 4's formula."""
    apart = {}
    for ancestor, _ in climb(zone):
        left, right = (leaves(child) for child in TREE.merges[ancestor - ZONES].tolist())
        apart[ancestor] = np.mean([DISTANCES[a, b] for a in left for b in right])
    total = sum(np.exp(-d) for d in apart.values())
    return {ancestor: float(np.exp(-d) / total) for ancestor, d in apart.items()}


@pytest.fixture(scope="module")
def draws() -> list[list[tuple[int, ...]]]:
    sampler = HrgSampler(P, 31)
    return [[sampler.draw(zone, t) for t in range(1, ROUNDS + 1)] for zone in range(ZONES)]


def assert_as_likely_as(hits: int, probability: float, trials: int = ROUNDS) -> None:
    assert binomtest(hits, trials, probability).pvalue > UNLIKELY


def test_a_climb_with_the_samplers_luck_draws_what_the_sampler_draws(draws: list[list[tuple[int, ...]]]) -> None:
    """Edge `z` climbs from its leaf to the root; at ancestor `r` every zone `z'` of the subtree it did not come from
    is taken, independently, with probability `p_r`.
    """
    for zone in range(ZONES):
        p = climbed_probabilities(zone)
        for t in range(1, 301):
            luck = uniforms(raw_stream(31, "hrg draw", zone, t), ZONES)
            taken = [other for ancestor, others in climb(zone) for other in others if luck[other] < p[ancestor]]
            assert tuple(sorted(taken)) == draws[zone][t - 1]


def test_each_zone_is_met_once_at_the_lowest_common_ancestor() -> None:
    """So `p(z,z') = p_r` at their lowest common ancestor, each zone is drawn once"""
    for zone in range(ZONES):
        p = climbed_probabilities(zone)
        met = [(other, p[ancestor]) for ancestor, others in climb(zone) for other in others]
        assert sorted(other for other, _ in met) == [other for other in range(ZONES) if other != zone]
        for other, probability in met:
            assert P[zone, other] == pytest.approx(probability, rel=1e-14)


def test_every_zone_is_taken_with_probability_p_r(draws: list[list[tuple[int, ...]]]) -> None:
    """every zone `z'` of the subtree it did not come from is taken, independently, with probability `p_r`."""
    for zone, other in itertools.permutations(range(ZONES), 2):
        assert_as_likely_as(sum(other in draw for draw in draws[zone]), P[zone, other])
        for third in set(range(other)) - {zone}:
            both = sum({other, third} <= set(draw) for draw in draws[zone])
            assert_as_likely_as(both, P[zone, other] * P[zone, third])


def test_the_number_drawn_varies_and_may_be_none(draws: list[list[tuple[int, ...]]]) -> None:
    """the number drawn varies. Settled: an empty draw is legal"""
    for zone in range(ZONES):
        sizes = np.array([len(draw) for draw in draws[zone]])
        assert {0, 1, 2, 3} <= set(sizes.tolist())
        assert_as_likely_as(int((sizes == 0).sum()), float(np.prod(1 - P[zone])))
        spread = np.sqrt((P[zone] * (1 - P[zone])).sum() / ROUNDS)
        assert abs(sizes.mean() - P[zone].sum()) < 6.5 * spread


def test_a_zone_that_drew_nobody_takes_its_local_step() -> None:
    """an empty draw is legal, and the zone then takes its local step."""
    sampler, optimiser = HrgSampler(P, 31), Optimiser()
    empty = next(t for t in itertools.count(1) if not sampler.draw(2, t))
    state = ZoneState.initial(2, [1.0, -1.0], optimiser)
    trainer = ZoneTrainer(ZoneState(2, empty - 1, state.theta, state.optimiser), sampler, optimiser)
    assert trainer.begin().draw == ()
    gradient = np.array([0.5, 2.0], np.float32)
    trainer.receive_local(gradient)
    trainer.finish()
    assert fuse(gradient, np.empty((0, 2))).tolist() == gradient.tolist()
    assert trainer.state.theta.tolist() == (state.theta - np.float32(0.1) * gradient).tolist()


def test_draws_are_a_pure_function_of_seed_zone_and_round(draws: list[list[tuple[int, ...]]]) -> None:
    """Draws are a pure function of (run seed, zone, round), by a counter-based generator, so a restarted edge repeats
    its draw.
    """
    for zone, t in itertools.product(range(ZONES), (1, 2, 999, ROUNDS)):
        assert HrgSampler(P, 31).draw(zone, t) == draws[zone][t - 1]
    others = HrgSampler(P, 32)
    assert [others.draw(0, t) for t in range(1, 30)] != draws[0][:29]
    assert len({tuple(of_zone[:29]) for of_zone in draws}) == ZONES
