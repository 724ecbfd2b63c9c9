"""top-k-SGFusion: the k zones nearest in label distribution, every round (method 8)."""

import numpy as np
import pytest

from simulator.methods.top_k_sgfusion import METHOD, K
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, SIZES, UPDATES, ByHand, Floats, near, tiny


def nearest_by_hand(histograms: Floats, z: int, k: int) -> list[int]:
    apart = {other: float(np.sqrt(((row - histograms[z]) ** 2).sum())) for other, row in enumerate(histograms)}
    others = sorted((other for other in apart if other != z), key=lambda other: apart[other])
    return sorted(others[:k])


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_two_rounds_by_hand(update: str, k: int) -> None:
    run = tiny(*UPDATES[update], f"sampler={{kind='top-k', k={k}}}")
    hand, histograms = ByHand(run), load_world(run).histograms
    for z, zone in enumerate(NAMES):
        drawn = nearest_by_hand(histograms, z, k)
        trained = train(run, "top-k-sgfusion", zone)
        assert [list(report.drawn) for report in trained.reports] == [drawn, drawn]
        assert near(trained.models[zone], hand.trajectory(z, drawn)[-1])


def test_k_has_a_default_and_is_no_more_than_there_are_others() -> None:
    assert train(tiny(), "top-k-sgfusion", "ash").outcome.drawn == 4
    names = [f"zone-{number}" for number in range(9)]
    made = (
        "source='generated_zones', devices=1, samples=4, features=3, kinds=2, contrast=1.0, difference=0.1, noise=0.5"
    )
    many = tiny(f"data={{{made}}}", f"zones.names={names}")
    assert train(many, "top-k-sgfusion", "zone-0").outcome.drawn == K == 7
    for zones, drawn in ((1, 0), (2, 1), (3, 2)):
        run = tiny("sampler={kind='top-k', k=9}", sizes=SIZES[:zones])
        assert train(run, "top-k-sgfusion", "ash").outcome.drawn == drawn


def test_it_is_the_method_of_its_sampler() -> None:
    assert (METHOD.sampler_kind, METHOD.uses_histograms) == ("top-k", True)
