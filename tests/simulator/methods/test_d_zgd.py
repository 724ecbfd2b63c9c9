"""D-ZGD: the geographic neighbours, fixed, fused by attention (method 9)."""

import pytest

from sgfusion.errors import DataError
from simulator.methods.d_zgd import METHOD
from simulator.run import train
from tests.simulator.tiny import NAMES, UPDATES, ByHand, near, tiny


@pytest.mark.parametrize("update", UPDATES)
def test_two_rounds_by_hand(update: str) -> None:
    run = tiny(*UPDATES[update])
    hand = ByHand(run)
    assert hand.near == [[1], [0, 2], [1, 3], [2, 4], [3]]
    for z, zone in enumerate(NAMES):
        trained = train(run, "d-zgd", zone)
        assert [list(report.drawn) for report in trained.reports] == [hand.near[z]] * 2
        assert near(trained.models[zone], hand.trajectory(z, hand.near[z])[-1])


def test_without_geography_it_says_what_is_missing() -> None:
    with pytest.raises(DataError, match=r"'tests\.simulator\.tiny:Tiny' gives zones no neighbours, which d-zgd"):
        train(tiny("data.borders=[]"), "d-zgd", "ash")


def test_it_is_the_method_of_its_sampler() -> None:
    assert (METHOD.sampler_kind, METHOD.uses_histograms) == ("neighbours", False)
