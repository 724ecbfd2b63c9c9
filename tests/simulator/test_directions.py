"""Directions of zones on requested weights, computed in this process (method 6)."""

import numpy as np
import numpy.typing as npt
import pytest

from device.batch import batch_of
from device.direction import device_direction
from device.tasks.linear import Options, make_task
from simulator.cost import Cost
from simulator.directions import (
    InProcess,
    all_passes_of,
    batch_halves,
    half_variance,
    halved_passes_of,
    zone_direction,
    zone_halves,
)
from simulator.world import load_world
from simulator.zone_data import ZoneData
from tests.simulator.tiny import L2, NAMES, SIZES, UPDATES, ByHand, gradient, near, tiny

Vector = npt.NDArray[np.float32]
THETA = np.array([0.7, -1.2, 0.4], np.float32)
WIDE = THETA.astype(np.float64)


def test_a_devices_gradient_is_the_closed_form() -> None:
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    for zone, by_hand in zip(world.data.zones, hand.train, strict=True):
        for batch, (x, y) in zip(zone.device_batches, by_hand, strict=True):
            found = device_direction(world.learner, THETA, batch, run.update)
            assert found.dtype == np.float32
            assert near(found, x.T @ (x @ WIDE - y) / len(y) + L2 * WIDE)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("exact", [False, True])
def test_a_zones_direction_is_the_mean_over_its_devices_not_over_its_samples(update: str, exact: bool) -> None:
    run = tiny(*UPDATES[update])
    world, hand = load_world(run), ByHand(run)
    for z, zone in enumerate(world.data.zones):
        assert near(zone_direction(world.learner, THETA, zone, run.update, exact=exact), hand.zone(WIDE, z))
    x, y = (np.concatenate(parts) for parts in zip(*hand.train[1], strict=True))
    assert not near(gradient(WIDE, x, y), hand.zone(WIDE, 1), 1e-2)


@pytest.mark.parametrize("update", UPDATES)
def test_exact_is_a_loop_over_devices_in_the_order_of_their_ids_to_the_bit(update: str) -> None:
    run = tiny(*UPDATES[update], "simulation.exact=true")
    world = load_world(run)
    for z, zone in enumerate(world.data.zones):
        total = np.zeros(3)
        for device in zone.devices:  # each as a device of its own would compute it
            alone = batch_of(device.train)
            kind = world.learner.gradient if run.update.kind == "gradient" else None
            answer = kind(THETA, alone) if kind else world.learner.delta(THETA, alone, run.update)
            total = total + answer.astype(np.float64)
        expected = (total / len(zone.devices)).astype(np.float32)
        found = zone_direction(world.learner, THETA, zone, run.update, exact=True)
        assert found.tobytes() == expected.tobytes()
        source = InProcess(world, z, Cost(3))
        assert source.local(THETA).tobytes() == source.peer(z, THETA).tobytes() == expected.tobytes()


def test_one_batch_agrees_with_the_loop_but_for_rounding() -> None:
    run = tiny()
    world = load_world(run)
    for zone in world.data.zones:
        loop, batch = (zone_direction(world.learner, THETA, zone, run.update, exact=exact) for exact in (True, False))
        assert near(batch, loop, 1e-5)


def test_one_local_step_over_everything_is_the_rate_times_the_gradient() -> None:
    run = tiny(*UPDATES["delta"])
    world = load_world(run)
    assert (run.update.epochs, run.update.rate, run.update.batch) == (1, 0.5, None)
    for zone in world.data.zones:
        delta = zone_direction(world.learner, THETA, zone, run.update, exact=False)
        assert near(delta, 0.5 * zone_direction(world.learner, THETA, zone, tiny().update, exact=True))


def test_a_source_asks_the_zone_that_is_named_on_the_weights_that_are_given() -> None:
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    cost = Cost(3)
    source = InProcess(world, 1, cost)
    assert near(source.local(THETA), hand.zone(WIDE, 1))
    assert (cost.device_gradients, cost.bytes_sent) == (3, 3 * 24)
    for z in range(len(NAMES)):
        assert near(source.peer(z, 2 * THETA), hand.zone(2 * WIDE, z))
    assert THETA.tolist() == np.array([0.7, -1.2, 0.4], np.float32).tolist()
    assert (cost.device_gradients, cost.bytes_sent) == (3 + 11, (3 + 11 + 5) * 24)


def test_an_answer_is_not_changed_by_the_next_one() -> None:
    world = load_world(tiny())
    source = InProcess(world, 0, Cost(3))
    first = source.local(THETA)
    kept = first.copy()
    source.peer(1, 3 * THETA)
    assert first.tobytes() == kept.tobytes()


@pytest.mark.parametrize("settings", [(), ("simulation.exact=true",), UPDATES["epochs"], ("task.bias=true",)])
def test_many_zones_asked_at_once_answer_as_each_alone(settings: tuple[str, ...]) -> None:
    names = [f"z{number}" for number in range(10)]
    run = tiny(*settings, f"zones.names={names}", sizes=[*SIZES, *reversed(SIZES)])
    world = load_world(run)
    theta = np.append(THETA, np.float32(0.3)) if world.learner.size == 4 else THETA
    at_once, alone = Cost(len(theta)), Cost(len(theta))
    for zones in ([9, 1, 4], [8, 0, 1, 7, 2, 6, 5, 3], [3], []):
        together = InProcess(world, 0, at_once).peers(zones, theta)
        each = [InProcess(world, 0, alone).peer(z, theta) for z in zones]
        assert len(together) == len(each) == len(zones)
        for one, other in zip(together, each, strict=True):
            assert one.dtype == np.float32
            assert near(one, other, 5e-6)
            assert not run.simulation.exact or one.tobytes() == other.tobytes()
    assert at_once == alone
    if world.learner.size == 3:
        hand = ByHand(run)
        assert near(InProcess(world, 0, Cost(3)).peers(range(1, 10), THETA), [hand.zone(WIDE, z) for z in range(1, 10)])


# Halves


def test_the_variance_of_halves() -> None:
    one, other = np.array([1.0, 4.0], np.float32), np.array([3.0, 1.0], np.float32)
    assert half_variance(one, other) == (4 + 9) / 4
    assert half_variance(one, one) == 0.0
    big = np.array([3e38], np.float32)
    assert half_variance(big, -big) == pytest.approx(9e76, rel=1e-3)  # in float64


@pytest.mark.parametrize("update", UPDATES)
def test_halves_of_a_device_are_every_other_sample(update: str) -> None:
    run = tiny(*UPDATES[update])
    world, hand = load_world(run), ByHand(run)
    for zone, by_hand in zip(world.data.zones, hand.train, strict=True):
        for batch, (x, y) in zip(zone.device_batches, by_hand, strict=True):
            direction, variance = batch_halves(world.learner, THETA, batch, run.update)
            assert near(direction, hand.device(WIDE, (x, y)), 5e-6)
            if len(y) == 1:
                assert variance == 0.0
                continue
            one, two = (hand.device(WIDE, (x[half::2], y[half::2])) for half in (0, 1))
            assert near(variance, ((one - two) ** 2).sum() / 4, 1e-5)


@pytest.mark.parametrize("update", UPDATES)
def test_halves_of_a_zone_are_every_other_device(update: str) -> None:
    run = tiny(*UPDATES[update])
    world, hand = load_world(run), ByHand(run)
    for z, zone in enumerate(world.data.zones):
        direction, variance = zone_halves(world.learner, THETA, zone, run.update, exact=False)
        assert near(direction, hand.zone(WIDE, z), 5e-6)
        if len(zone.devices) > 1:
            devices = [hand.device(WIDE, xy) for xy in hand.train[z]]
            one, two = np.mean(devices[::2], axis=0), np.mean(devices[1::2], axis=0)
            assert near(variance, ((one - two) ** 2).sum() / 4, 1e-5)


@pytest.mark.parametrize("update", UPDATES)
def test_peer_halves_are_the_peers_direction_and_cost_as_much(update: str) -> None:
    world = load_world(tiny(*UPDATES[update]))
    one, other = Cost(3), Cost(3)
    for z in range(len(NAMES)):
        direction, _ = InProcess(world, 0, one).peer_halves(z, THETA)
        assert near(direction, InProcess(world, 0, other).peer(z, THETA), 5e-6)
    assert one.bytes_sent == other.bytes_sent
    # But for local epochs of a zone of one device: those over halves of its samples are further runs.
    alone = [device for zone in world.data.zones if len(zone.devices) == 1 for device in zone.device_batches]
    more = halved_passes_of(alone, world.run.update) - all_passes_of(alone, world.run.update)
    assert one.device_gradients == other.device_gradients + more
    assert (more > 0) == (update != "gradient")


@pytest.mark.parametrize("update", UPDATES)
def test_peer_halves_are_exact_where_the_run_is(update: str) -> None:
    """`exact` computes device by device, in the order of ids and with a cluster's bits, for every zone method."""
    world = load_world(tiny(*UPDATES[update], "simulation.exact=true"))
    for z in range(len(NAMES)):
        source = InProcess(world, 0, Cost(3))
        assert source.peer_halves(z, THETA)[0].tobytes() == source.peer(z, THETA).tobytes()


def test_weights_beyond_float32_come_through_without_a_warning() -> None:
    """The trainer finds out; on the way there nothing is said twice."""
    world = load_world(tiny("simulation.exact=true"))
    huge = np.array([3e38, -3e38, 3e38], np.float32)
    for z in range(len(NAMES)):
        source = InProcess(world, 0, Cost(3))
        assert not np.isfinite(source.peer(z, huge)).all()
        assert not np.isfinite(source.peer_halves(z, huge)[0]).all()


def test_the_penalty_is_counted_once_a_device() -> None:
    """A device's loss has the ridge once, however many samples it has."""
    assert make_task(Options(l2=0.0)).penalty is None
    world = load_world(tiny("task.l2=0.0"))
    ridge = load_world(tiny())
    for z in range(len(NAMES)):
        zones: tuple[ZoneData, ...] = world.data.zones
        plain = zone_direction(world.learner, THETA, zones[z], world.run.update, exact=False)
        with_ridge = zone_direction(ridge.learner, THETA, ridge.data.zones[z], ridge.run.update, exact=False)
        assert near(with_ridge - plain, L2 * WIDE, 1e-5)
