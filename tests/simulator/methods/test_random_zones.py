"""Random: uniform draws, as many zones in expectation as SGFusion draws (method 9)."""

from collections import Counter

import pytest
from scipy.stats import binomtest

from simulator.cost import Cost
from simulator.directions import InProcess
from simulator.methods import sgfusion
from simulator.methods.random_zones import METHOD
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, SIZES, UPDATES, ByHand, luck, near, tiny

UNLIKELY = 1e-5
ROUNDS = 1500


@pytest.mark.parametrize("update", UPDATES)
def test_two_rounds_by_hand(update: str) -> None:
    run = tiny(*UPDATES[update])
    hand, p = ByHand(run), load_world(run).probabilities
    for z, zone in enumerate(NAMES):
        chance = p[z].sum() / 4

        def draw(number: int, z: int = z, chance: float = chance) -> list[int]:
            numbers = luck(run.seed, "hrg draw", z, number, count=len(NAMES))
            return [other for other in hand.numbers if other != z and numbers[other] < chance]

        trained = train(run, "random", zone)
        assert [list(report.drawn) for report in trained.reports] == [draw(1), draw(2)]
        assert near(trained.models[zone], hand.trajectory(z, draw)[-1])


def test_zones_are_drawn_alike_and_as_many_as_sgfusion_draws() -> None:
    world = load_world(tiny())
    for z in range(len(NAMES)):
        drawn, ours = (
            Counter(other for number in range(1, ROUNDS + 1) for other in method.draw(z, number))
            for method in (
                plan(world, z, InProcess(world, z, Cost(3))).sampler for plan in (METHOD.plan, sgfusion.plan)
            )
        )
        assert z not in drawn
        expected = float(world.probabilities[z].sum())
        for other in {*range(len(NAMES))} - {z}:
            assert binomtest(drawn[other], ROUNDS, min(1.0, expected / 4)).pvalue > UNLIKELY
        assert drawn.total() / ROUNDS == pytest.approx(expected, abs=0.15)
        assert ours.total() / ROUNDS == pytest.approx(expected, abs=0.15)


def test_zones_that_are_all_drawn_anyway_are_all_drawn() -> None:
    run = tiny(sizes=SIZES[:2])
    assert load_world(run).probabilities.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert train(run, "random", "ash").outcome.drawn == 1.0


def test_it_is_the_method_of_its_sampler() -> None:
    assert METHOD.sampler_kind == "random"
