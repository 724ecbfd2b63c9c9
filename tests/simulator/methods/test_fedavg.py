"""FedAvg: one model, all devices, each counting the same (method 9)."""

import numpy as np
import pytest

from simulator.methods.fedavg import METHOD
from simulator.run import train
from tests.simulator.tiny import NAMES, UPDATES, ByHand, near, tiny


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("exact", ["false", "true"])
def test_two_rounds_by_hand(update: str, exact: str) -> None:
    run = tiny(*UPDATES[update], f"simulation.exact={exact}")
    hand = ByHand(run)
    theta = hand.start
    for _ in range(2):
        theta = theta - hand.rate * np.mean([hand.device(theta, xy) for xy in hand.devices], axis=0)
    trained = train(run, "fedavg", None)
    assert list(trained.models) == ["global"]
    assert near(trained.models["global"], theta)


def test_neither_samples_nor_zones_are_what_counts() -> None:
    """The by-hand test can tell these apart in this world."""
    hand = ByHand(tiny())
    gradients = [hand.device(hand.start, xy) for xy in hand.devices]
    by_devices = np.mean(gradients, axis=0)
    by_samples = np.average(gradients, axis=0, weights=[len(y) for _, y in hand.devices])
    by_zones = np.mean([hand.zone(hand.start, z) for z in hand.numbers], axis=0)
    assert not near(by_samples, by_devices, 1e-3)
    assert not near(by_zones, by_devices, 1e-3)


def test_the_zone_asked_for_makes_no_difference() -> None:
    run = tiny()
    one, other = train(run, "fedavg", None), train(run, "fedavg", "ash")
    assert one.outcome == other.outcome
    assert one.outcome.zone is None
    assert (one.outcome.drawn, one.outcome.homophily) == (None, None)
    assert list(one.outcome.best.test) == list(NAMES)


def test_momentum_is_that_of_the_run() -> None:
    run = tiny("optimiser={kind='momentum', rate=0.1, momentum=0.5}", rounds=3)
    hand = ByHand(run)
    theta, velocity = hand.start, np.zeros(3)
    for _ in range(3):
        velocity = 0.5 * velocity + np.mean([hand.device(theta, xy) for xy in hand.devices], axis=0)
        theta = theta - 0.1 * velocity
    assert near(train(run, "fedavg", None).models["global"], theta)


def test_it_trains_no_zones_apart() -> None:
    assert not METHOD.per_zone
