"""SGFusion: draws of the dendrogram, fused by attention (methods 5 and 7)."""

import pytest

from simulator.methods.registry import METHODS
from simulator.methods.sgfusion import METHOD
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, UPDATES, ByHand, luck, near, tiny


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("similarity", ["inner", "cosine"])
def test_two_rounds_by_hand(update: str, similarity: str) -> None:
    run = tiny(*UPDATES[update], f"fusion.similarity={similarity}")
    hand, p = ByHand(run), load_world(run).probabilities
    numbers = set()
    for z, zone in enumerate(NAMES):

        def draw(number: int, z: int = z) -> list[int]:
            chance = luck(run.seed, "hrg draw", z, number, count=len(NAMES))
            return [other for other in hand.numbers if chance[other] < p[z, other]]

        trained = train(run, "sgfusion", zone)
        assert [list(report.drawn) for report in trained.reports] == [draw(1), draw(2)]
        assert near(trained.models[zone], hand.trajectory(z, draw)[-1])
        numbers |= {len(draw(1)), len(draw(2))}
    assert len(numbers) > 2, "the draws of this seed differ too little to test anything"


def test_an_empty_draw_is_a_local_step() -> None:
    run = tiny(rounds=1)
    hand, empty = ByHand(run), 0
    for z, zone in enumerate(NAMES):
        trained = train(run, "sgfusion", zone)
        if not trained.reports[0].drawn:
            assert near(trained.models[zone], hand.start - hand.rate * hand.zone(hand.start, z))
            assert (trained.outcome.drawn, trained.outcome.homophily) == (0.0, None)
            empty += 1
    assert empty, "no draw of this seed is empty"


def test_it_is_the_method_of_the_run_files_default_sampler() -> None:
    assert METHODS["sgfusion"] is METHOD
    assert METHOD.sampler_kind == tiny().sampler.kind == "hrg"
    assert METHOD.uses_histograms
