"""χ-SGFusion: exactly χ zones a round, by the same probabilities (method 8)."""

import pytest

from sgfusion.errors import DataError, SamplerError
from simulator.methods.chi_sgfusion import METHOD
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, UPDATES, ByHand, Floats, luck, near, pick, tiny


def draw_by_hand(row: Floats, count: int, seed: int, z: int, number: int) -> list[int]:
    """One after the other, in proportion to the weights of those not yet drawn."""
    drawn: list[int] = []
    for chance in luck(seed, "chi draw", z, number, count=count):
        drawn.append(pick([0.0 if other in drawn else weight for other, weight in enumerate(row)], chance))
    return sorted(drawn)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("chi", [None, 1, 4])
def test_two_rounds_by_hand(update: str, chi: int | None) -> None:
    run = tiny(*UPDATES[update], "sampler.kind=chi", *([] if chi is None else [f"sampler.chi={chi}"]))
    hand, p = ByHand(run), load_world(run).probabilities
    for z, zone in enumerate(NAMES):
        count = len(hand.near[z]) if chi is None else chi

        def draw(number: int, z: int = z, count: int = count) -> list[int]:
            return draw_by_hand(p[z], count, run.seed, z, number)

        trained = train(run, "chi-sgfusion", zone)
        assert [list(report.drawn) for report in trained.reports] == [draw(1), draw(2)]
        assert {len(report.drawn) for report in trained.reports} == {count}
        assert near(trained.models[zone], hand.trajectory(z, draw)[-1])


def test_chi_is_the_number_of_neighbours_unless_the_run_says_another() -> None:
    borders = "data.borders=[['ash', 'birch'], ['birch', 'cedar'], ['birch', 'elm']]"  # fir has none
    drawn = [train(tiny(borders), "chi-sgfusion", zone).outcome.drawn for zone in NAMES]
    assert drawn == [1.0, 3.0, 1.0, 1.0, 0.0]


def test_without_geography_chi_must_be_said() -> None:
    with pytest.raises(DataError, match=r"gives zones no neighbours, .*chi-sgfusion without sampler\.chi need"):
        train(tiny("data.borders=[]"), "chi-sgfusion", "ash")
    run = tiny("data.borders=[]", "sampler={kind='chi', chi=2}")
    assert train(run, "chi-sgfusion", "ash").outcome.drawn == 2.0


def test_more_zones_than_there_are_is_an_error() -> None:
    with pytest.raises(SamplerError, match=r"sampler\.chi = 5: a zone of this run has 4 others to draw from"):
        train(tiny("sampler={kind='chi', chi=5}"), "chi-sgfusion", "ash")


def test_it_is_the_method_of_its_sampler() -> None:
    assert (METHOD.sampler_kind, METHOD.uses_histograms) == ("chi", True)
