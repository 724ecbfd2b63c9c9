"""All: every zone, every round (method 9)."""

import pytest

from simulator.methods.all_zones import METHOD
from simulator.run import train
from tests.simulator.tiny import NAMES, UPDATES, ByHand, near, tiny


@pytest.mark.parametrize("update", UPDATES)
def test_two_rounds_by_hand(update: str) -> None:
    run = tiny(*UPDATES[update])
    hand = ByHand(run)
    for z, zone in enumerate(NAMES):
        others = [other for other in hand.numbers if other != z]
        trained = train(run, "all", zone)
        assert [list(report.drawn) for report in trained.reports] == [others, others]
        assert near(trained.models[zone], hand.trajectory(z, others)[-1])


def test_it_needs_no_geography() -> None:
    assert train(tiny("data.borders=[]"), "all", "fir").outcome.drawn == 4.0


def test_it_is_the_method_of_its_sampler() -> None:
    assert (METHOD.sampler_kind, METHOD.uses_histograms) == ("all", False)
