"""DELTA-Z: DELTA over zones, the zone's own model the central one (method 9)."""

from collections.abc import Sequence

import numpy as np
import pytest

from sgfusion.errors import DataError
from simulator.cost import Cost
from simulator.directions import InProcess
from simulator.methods.delta_z import METHOD
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, SIZES, UPDATES, ByHand, Floats, luck, near, pick, tiny


def halves_by_hand(hand: ByHand, theta: Floats, z: int) -> float:
    """`σ²`: that of every other device, or of every other sample of a single one."""
    devices = hand.train[z]
    if len(devices) > 1:
        both = [np.mean([hand.device(theta, xy) for xy in devices[half::2]], axis=0) for half in (0, 1)]
    else:
        x, y = devices[0]
        if len(y) == 1:
            return 0.0
        both = [hand.device(theta, (x[half::2], y[half::2])) for half in (0, 1)]
    return float(((both[0] - both[1]) ** 2).sum() / 4)


def rounds_by_hand(hand: ByHand, z: int) -> tuple[Floats, list[list[int]], list[dict[int, float]]]:
    """The weights after the run's rounds, whom it drew and how much each weighed."""
    others = [other for other in hand.numbers if other != z]
    settings, theta = hand.run.baselines, hand.start
    known: dict[int, tuple[Floats, float]] = {}
    drawn, weighed = [], []
    for number in range(1, hand.run.rounds + 1):
        weights = dict.fromkeys(others, 1 / len(others))
        if number > 1:
            middle = np.mean([known[other][0] for other in others], axis=0)
            worth = [
                np.sqrt(settings.alpha1 * ((known[o][0] - middle) ** 2).sum() + settings.alpha2 * known[o][1])
                for o in others
            ]
            chances = np.array(worth) / sum(worth)
            count = len(hand.near[z])
            picked = [pick(chances, chance) for chance in luck(hand.run.seed, "delta-z draw", z, number, count=count)]
            weights = {others[i]: picked.count(i) / (count * chances[i] * len(others)) for i in sorted(set(picked))}
        direction = hand.zone(theta, z)
        for other, weight in weights.items():
            known[other] = hand.zone(theta, other), halves_by_hand(hand, theta, other)
            direction = direction + weight * known[other][0]
        theta = theta - hand.rate * direction
        drawn.append(list(weights))
        weighed.append(weights)
    return theta, drawn, weighed


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("alphas", [(0.5, 0.5), (1.0, 0.0), (0.1, 3.0)])
def test_three_rounds_by_hand(update: str, alphas: tuple[float, float]) -> None:
    settings = f"baselines={{alpha1={alphas[0]}, alpha2={alphas[1]}}}"
    run = tiny(*UPDATES[update], settings, rounds=3)
    hand = ByHand(run)
    for z, zone in enumerate(NAMES):
        theta, drawn, weighed = rounds_by_hand(hand, z)
        trained = train(run, "delta-z", zone)
        assert [list(report.drawn) for report in trained.reports] == drawn
        for report, weights in zip(trained.reports, weighed, strict=True):
            assert report.attention == pytest.approx(weights, rel=1e-4)
        assert near(trained.models[zone], theta, 1e-5)


def test_round_1_draws_everyone_and_later_ones_as_many_as_there_are_neighbours() -> None:
    run = tiny(rounds=25)
    for z, zone in enumerate(NAMES):
        first, *later = train(run, "delta-z", zone).reports
        assert len(first.drawn) == 4
        assert max(len(report.drawn) for report in later) == len(ByHand(run).near[z])  # fewer if one is drawn twice
        assert min(len(report.drawn) for report in later) == 1


def test_the_aggregate_is_unbiased() -> None:
    """Drawn again and again on the same weights, what is added to the own direction is the others' mean on average."""
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    z, theta = 1, world.theta
    plan = METHOD.plan(world, z, InProcess(world, z, Cost(3)))
    others = plan.sampler.draw(z, 1)
    gradients = dict(zip(others, plan.source.peers(others, theta), strict=True))
    assert plan.weigh is not None

    def added(number: int, drawn: Sequence[int]) -> Floats:
        assert plan.weigh is not None
        shared = np.stack([gradients[other] for other in drawn])
        weights = plan.weigh(tuple(drawn), theta, shared)
        assert number == 1 or weights.sum() > 0
        return np.asarray(weights @ shared.astype(np.float64))

    mean = np.mean([hand.zone(hand.start, other) for other in others], axis=0)
    assert near(added(1, others), mean)
    estimates = np.array([added(number, plan.sampler.draw(z, number)) for number in range(2, 3002)])
    errors = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert (estimates.std(axis=0) > 0.01).all()
    assert (np.abs(estimates.mean(axis=0) - mean) < 5 * errors).all()


def test_without_neighbours_a_zone_trains_alone() -> None:
    run = tiny("data.borders=[['ash', 'birch']]")
    hand = ByHand(run)
    trained = train(run, "delta-z", "fir")
    assert trained.outcome.drawn == 0.0
    assert near(trained.models["fir"], hand.trajectory(4, ())[-1])


def test_without_geography_it_says_what_is_missing() -> None:
    with pytest.raises(DataError, match="gives zones no neighbours"):
        train(tiny("data.borders=[]"), "delta-z", "ash")


def test_of_two_zones_the_other_is_always_drawn() -> None:
    run = tiny(sizes=SIZES[:2], rounds=3)
    theta, _, _ = rounds_by_hand(ByHand(run), 0)
    assert near(train(run, "delta-z", "ash").models["ash"], theta, 1e-5)


def test_it_is_no_sampler_of_a_run_file() -> None:
    assert METHOD.sampler_kind is None
