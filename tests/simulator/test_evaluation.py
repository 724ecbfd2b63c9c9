"""A zone's scores, and the round that a run keeps (method 9, "Measures")."""

import numpy as np
import pytest

from device.batch import batch_of
from device.tasks.task import RMSE_UNITLESS
from sgfusion.evaluation import Score, pooled
from simulator.evaluation import zone_point
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import ByHand, near, tiny


@pytest.mark.parametrize("exact", [False, True])
def test_a_zones_scores_are_sums_over_its_devices_held_out_samples(exact: bool) -> None:
    run = tiny("data.validation=3", "data.test=4")
    world, hand = load_world(run), ByHand(run)
    theta = np.array([0.5, -1.0, 2.0], np.float32)
    for z, zone in enumerate(world.data.zones):
        found = zone_point(world.learner, theta, zone, 7, exact=exact)
        assert found.round == 7
        for split, each, scores in (("validation", 3, found.validation), ("test", 4, found.test)):
            parts = [getattr(device, split) for device in hand.data[z]]
            errors = sum(float(((part.x.astype(np.float64) @ theta - part.y) ** 2).sum()) for part in parts)
            assert scores.keys() == {zone.name}
            assert scores[zone.name].count == each * len(parts)
            assert near(scores[zone.name].total, errors, 1e-5)


def test_exact_scores_are_those_of_each_device_added_in_the_order_of_ids_to_the_bit() -> None:
    """As an edge adds what devices answer; a zone in one batch has other last bits, or this would show nothing."""
    world = load_world(tiny("data.validation=300", "data.test=700"))
    theta = np.array([0.5, -1.0, 2.0], np.float32)
    differ = 0
    for zone in world.data.zones:
        found = zone_point(world.learner, theta, zone, 1, exact=True)
        at_once = zone_point(world.learner, theta, zone, 1, exact=False)
        for split in ("validation", "test"):
            total, count = 0.0, 0
            for device in zone.devices:  # each as a device of its own would judge it
                of_device, labels = world.learner.evaluate(theta, batch_of(getattr(device, split)))
                total, count = total + of_device, count + labels
            assert getattr(found, split) == {zone.name: Score(total, count)}
            differ += getattr(at_once, split) != getattr(found, split)
    assert differ


def test_devices_without_held_out_samples_add_nothing_to_exact_scores() -> None:
    world = load_world(tiny("data.untested=['birch']"))
    for zone in world.data.zones:
        found = zone_point(world.learner, world.theta, zone, 0, exact=True)
        assert found.validation == {zone.name: Score(0.0, 0)}
        assert (found.test == {zone.name: Score(0.0, 0)}) == (zone.name == "birch")


def test_an_exact_run_is_scored_exactly() -> None:
    run = tiny("data.validation=37", "data.test=53", "simulation.exact=true")
    world = load_world(run)
    for zone in world.data.zones:
        first = train(run, "sgeofl", zone.name).outcome.points[0]
        assert first == zone_point(world.learner, world.theta, zone, 0, exact=True)


# In a run


def test_a_run_keeps_the_round_that_validation_chooses_where_test_would_choose_another() -> None:
    """Both splits of each zone are small and noisy, so that in some zones they choose different rounds."""
    run = tiny("data.validation=1", "data.test=2", "data.noise=1.5", rounds=40)
    differ = 0
    for zone in run.zones.names:
        trained = train(run, "sgeofl", zone)
        outcome = trained.outcome
        by_validation = [pooled(RMSE_UNITLESS, each.validation) for each in outcome.points]
        by_test = [pooled(RMSE_UNITLESS, each.test) for each in outcome.points]
        assert outcome.chosen == int(np.argmin(by_validation))
        differ += int(np.argmin(by_test)) != outcome.chosen
        again = tiny("data.validation=1", "data.test=2", "data.noise=1.5", rounds=max(1, outcome.chosen))
        if outcome.chosen:
            hand = ByHand(again).trajectory(run.zones.names.index(zone), ())[-1]
            assert near(trained.models[zone], hand, 1e-4)
    assert differ


def test_a_central_run_chooses_by_all_zones_together() -> None:
    run = tiny("data.validation=1", "data.test=2", "data.noise=1.5", rounds=40)
    for method in ("fedavg", "ifca", "fedsem", "feddelta"):
        outcome = train(run, method, None).outcome
        assert outcome.chosen == int(np.argmin([pooled(RMSE_UNITLESS, each.validation) for each in outcome.points]))
