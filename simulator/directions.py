"""Directions of zones on requested weights, computed in this process (method 6)."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from device.batch import Batch
from device.direction import device_direction, passes_of
from device.learner import Learner
from device.stack import WORTHWHILE
from sgfusion.fusion import mean_direction
from sgfusion.runfile import Update
from sgfusion.zone_trainer import RoundReport, ZoneTrainer
from simulator.cost import Cost
from simulator.world import World
from simulator.zone_data import ZoneData

Vector = npt.NDArray[np.float32]


def all_passes_of(batches: Sequence[Batch], update: Update) -> int:
    """Gradients that devices compute for their directions, all together."""
    return sum(passes_of(batch, update) for batch in batches)


def halved_passes_of(batches: Sequence[Batch], update: Update) -> int:
    """`all_passes_of` where each device also says how its direction varies over halves of its samples.

    Gradients on halves add up to that on the whole. Local epochs do not: those on halves are further runs.
    """
    halves = [half for batch in batches for half in batch.every_other() if len(batch) > 1]
    return all_passes_of(batches, update) + (all_passes_of(halves, update) if update.kind == "delta" else 0)


def zone_direction(learner: Learner, theta: Vector, zone: ZoneData, update: Update, *, exact: bool) -> Vector:
    """The mean over the zone's devices: device by device in the order of their ids, or as one batch.

    Local epochs go device by device in any case: one batch of all would be another algorithm.
    """
    if exact or update.kind == "delta":
        return mean_direction(device_direction(learner, theta, batch, update) for batch in zone.device_batches)
    return learner.gradient(theta, zone.train)


def batch_halves(learner: Learner, theta: Vector, batch: Batch, update: Update) -> tuple[Vector, float]:
    """A device's direction, and the variance of one on half of its samples: every other one of them."""
    first, second = batch.every_other()
    if not len(second):
        return device_direction(learner, theta, batch, update), 0.0
    a, b = device_direction(learner, theta, first, update), device_direction(learner, theta, second, update)
    if update.kind == "delta":  # local epochs over halves are not those over the whole
        return device_direction(learner, theta, batch, update), half_variance(a, b)
    share = np.float32(len(first) / len(batch))
    with np.errstate(over="ignore", invalid="ignore"):  # as below
        return share * a + (1 - share) * b, half_variance(a, b)


def zone_halves(
    learner: Learner, theta: Vector, zone: ZoneData, update: Update, *, exact: bool
) -> tuple[Vector, float]:
    """A zone's direction, and the variance of one on half of its devices: every other one of them."""
    if len(zone.devices) == 1:
        direction, variance = batch_halves(learner, theta, zone.device_batches[0], update)
        return zone_direction(learner, theta, zone, update, exact=exact) if exact else direction, variance
    if exact or update.kind == "delta":
        each = [device_direction(learner, theta, batch, update) for batch in zone.device_batches]
        return mean_direction(each), half_variance(mean_direction(each[::2]), mean_direction(each[1::2]))
    first, second = zone.halves
    a, b = learner.gradient(theta, first.train), learner.gradient(theta, second.train)
    share = np.float32(len(first.devices) / len(zone.devices))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite the trainer finds out
        return share * a + (1 - share) * b, half_variance(a, b)


def half_variance(first: Vector, second: Vector) -> float:
    """`σ²` of a direction on half of the data, from those on both halves."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.square(first.astype(np.float64) - second).sum() / 4)


class DirectionSource(Protocol):
    """Where a simulated zone's directions come from: a `GradientSource` that is asked for all drawn zones at once."""

    def local(self, theta: Vector) -> Vector:
        """The zone's own."""

    def peers(self, zones: Sequence[int], theta: Vector) -> list[Vector]:
        """Those of the drawn zones."""


def simulate_round(trainer: ZoneTrainer, source: DirectionSource) -> RoundReport:
    """The kernel's `run_round`, asking for all drawn zones at once. Nobody is lost or late in one process."""
    ask = trainer.begin()
    trainer.receive_local(source.local(ask.theta))
    for zone, direction in zip(ask.draw, source.peers(ask.draw, ask.theta), strict=True):
        trainer.receive_peer(zone, direction)
    return trainer.finish()


class InProcess:
    """The simulator's source: the zone's own devices and its peers', all in this process."""

    def __init__(self, world: World, zone: int, cost: Cost) -> None:
        self._world = world
        self._zone = zone
        self._cost = cost

    def local(self, theta: Vector) -> Vector:
        """`∇F_z(θ)`."""
        self._pay(self._zone, hops=0)
        return self._direction(self._zone, theta)

    def peer(self, zone: int, theta: Vector) -> Vector:
        """`∇F_z'(θ)`, by way of the peer's edge."""
        self._pay(zone, hops=1)
        return self._direction(zone, theta)

    def peers(self, zones: Sequence[int], theta: Vector) -> list[Vector]:
        """`peer` of several zones: in one pass where that is cheaper."""
        data, run = self._world.data, self._world.run
        at_once = len(zones) >= WORTHWHILE and run.update.kind == "gradient" and not run.simulation.exact
        if not at_once or data.zone_stack is None:
            return [self.peer(zone, theta) for zone in zones]
        for zone in zones:
            self._pay(zone, hops=1)
        return list(self._world.learner.gradients(theta, data.zone_stack.rows(zones)))

    def peer_halves(self, zone: int, theta: Vector) -> tuple[Vector, float]:
        """`peer` with the variance over halves of its devices, which costs it nothing more; of one, of its samples."""
        batches, update = self._world.data.zones[zone].device_batches, self._world.run.update
        passes = halved_passes_of(batches, update) if len(batches) == 1 else all_passes_of(batches, update)
        self._cost.gradients(len(batches), hops=1, passes=passes)
        world = self._world
        exact = world.run.simulation.exact
        return zone_halves(world.learner, theta, world.data.zones[zone], world.run.update, exact=exact)

    def _pay(self, zone: int, *, hops: int) -> None:
        batches = self._world.data.zones[zone].device_batches
        self._cost.gradients(len(batches), hops=hops, passes=all_passes_of(batches, self._world.run.update))

    def _direction(self, zone: int, theta: Vector) -> Vector:
        world = self._world
        exact = world.run.simulation.exact
        return zone_direction(world.learner, theta, world.data.zones[zone], world.run.update, exact=exact)
