"""SGeoFL: one model per zone, no sharing (method 9)."""

import numpy as np
import pytest

from simulator.methods.sgeofl import METHOD
from simulator.run import train
from tests.simulator.tiny import NAMES, UPDATES, ByHand, near, tiny


@pytest.mark.parametrize("update", UPDATES)
def test_it_is_plain_descent_on_the_zones_own_loss(update: str) -> None:
    run = tiny(*UPDATES[update])
    hand = ByHand(run)
    for z, zone in enumerate(NAMES):
        theta = hand.start
        for _ in range(2):
            theta = theta - hand.rate * np.mean([hand.device(theta, xy) for xy in hand.train[z]], axis=0)
        trained = train(run, "sgeofl", zone)
        assert near(trained.models[zone], theta)
        assert [report.drawn for report in trained.reports] == [(), ()]


def test_it_finds_the_minimum_of_the_zones_own_loss() -> None:
    run = tiny("evaluation.every=1000", rounds=300)
    hand = ByHand(run)
    for z, zone in enumerate(NAMES):
        assert near(train(run, "sgeofl", zone).models[zone], hand.best(z), 1e-4)


def test_it_is_the_method_of_its_sampler() -> None:
    assert (METHOD.sampler_kind, METHOD.uses_histograms) == ("none", False)
