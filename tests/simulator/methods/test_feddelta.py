"""FedDELTA: one model, devices drawn by how diverse their gradients are (method 9)."""

import numpy as np
import pytest

from simulator.cost import Cost
from simulator.methods.feddelta import METHOD, State
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import SIZES, UPDATES, ByHand, Floats, luck, near, pick, tiny

DEVICES = 11


def variance_by_hand(hand: ByHand, theta: Floats, xy: tuple[Floats, Floats]) -> float:
    x, y = xy
    if len(y) == 1:
        return 0.0
    one, other = (hand.device(theta, (x[half::2], y[half::2])) for half in (0, 1))
    return float(((one - other) ** 2).sum() / 4)


def rounds_by_hand(hand: ByHand, count: int) -> Floats:
    settings, theta = hand.run.baselines, hand.start
    gradients: dict[int, Floats] = {}
    variances: dict[int, float] = {}
    for number in range(1, hand.run.rounds + 1):
        weights = dict.fromkeys(range(DEVICES), 1 / DEVICES)
        if number > 1:
            middle = np.mean(list(gradients.values()), axis=0)
            worth = [
                np.sqrt(settings.alpha1 * ((gradients[u] - middle) ** 2).sum() + settings.alpha2 * variances[u])
                for u in range(DEVICES)
            ]
            chances = np.array(worth) / sum(worth)
            picked = [pick(chances, chance) for chance in luck(hand.run.seed, "feddelta draw", number, count=count)]
            weights = {u: picked.count(u) / (count * chances[u] * DEVICES) for u in sorted(set(picked))}
        total = np.zeros(3)
        for u, weight in weights.items():
            gradients[u] = hand.device(theta, hand.devices[u])
            variances[u] = variance_by_hand(hand, theta, hand.devices[u])
            total = total + weight * gradients[u]
        theta = theta - hand.rate * total
    return theta


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(("share", "count"), [(0.1, 1), (0.5, 6), (1.0, 11), (0.01, 1)])
def test_three_rounds_by_hand(update: str, share: float, count: int) -> None:
    assert sum(map(len, SIZES)) == DEVICES
    run = tiny(*UPDATES[update], f"baselines.share={share}", rounds=3)
    assert near(train(run, "feddelta", None).models["global"], rounds_by_hand(ByHand(run), count), 1e-5)


def test_the_alphas_are_those_of_the_run() -> None:
    for alphas in ("baselines={alpha1=1, alpha2=0, share=0.3}", "baselines={alpha1=0, alpha2=1, share=0.9}"):
        run = tiny(
            alphas, "data.sizes=[[8, 3], [5, 4, 2], [6], [4, 4], [2, 7, 3]]", rounds=3
        )  # else α2 counts for none
        count = 3 if "0.3" in alphas else 10
        assert near(train(run, "feddelta", None).models["global"], rounds_by_hand(ByHand(run), count), 1e-5)


def test_the_direction_is_unbiased() -> None:
    run = tiny("baselines.share=0.3")
    world, hand, cost = load_world(run), ByHand(run), Cost(3)
    known: State = METHOD.apply(world, METHOD.init(world), 1, cost)
    theta = known.model.theta.astype(np.float64)
    mean = np.mean([hand.device(theta, xy) for xy in hand.devices], axis=0)
    moved = [METHOD.apply(world, known, number, cost).model.theta for number in range(2, 252)]
    estimates = (theta - np.array(moved, np.float64)) / hand.rate
    errors = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert (estimates.std(axis=0) > 0.01).all()
    assert (np.abs(estimates.mean(axis=0) - mean) < 5 * errors).all()


def test_who_is_not_drawn_is_remembered_as_last_seen() -> None:
    run = tiny("baselines.share=0.1")
    world, hand = load_world(run), ByHand(run)
    first: State = METHOD.apply(world, METHOD.init(world), 1, Cost(3))
    second: State = METHOD.apply(world, first, 2, Cost(3))
    assert near(first.gradients, [hand.device(hand.start, xy) for xy in hand.devices])
    changed = [u for u in range(DEVICES) if not np.array_equal(first.gradients[u], second.gradients[u])]
    assert len(changed) == 1
    theta = first.model.theta.astype(np.float64)
    assert near(second.gradients[changed[0]], hand.device(theta, hand.devices[changed[0]]))
    assert near(second.variances[changed[0]], variance_by_hand(hand, theta, hand.devices[changed[0]]), 1e-5)


def test_all_devices_have_the_one_model() -> None:
    world = load_world(tiny())
    served = METHOD.serve(world, METHOD.init(world))
    assert served.of_device.tolist() == [0] * DEVICES
    assert len(served.models) == 1
