"""What methods with central models share: devices in one row, and steps of several models (method 9)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from device.batch import Batch
from device.direction import device_direction
from device.stack import WORTHWHILE
from sgfusion.optimiser import OptimiserState, first_state, step
from simulator.methods.method import Served
from simulator.world import World

Vector = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Stepped:
    """A model and what its optimiser keeps."""

    theta: Vector
    optimiser: OptimiserState

    @classmethod
    def initial(cls, world: World, theta: Vector) -> "Stepped":
        """Before the first step."""
        return cls(theta, first_state(world.run.optimiser.optimiser(world.run.rounds), len(theta)))

    def along(self, world: World, direction: npt.NDArray[np.floating], round: int) -> "Stepped":
        """The round's step of the run's optimiser, the same that zones take.

        A model that had nobody to train it in earlier rounds steps at this round's rate all the same.
        """
        settings = world.run.optimiser.optimiser(world.run.rounds)
        state = OptimiserState(round - 1, self.optimiser.slots)
        return Stepped(*step(settings, state, self.theta, direction.astype(np.float32)))


def device_batches(world: World) -> list[Batch]:
    """Every device's training samples, in the order of zones and of ids within them."""
    return [batch for zone in world.data.zones for batch in zone.device_batches]


def device_count(world: World) -> int:
    """Devices of all zones."""
    return sum(len(zone.devices) for zone in world.data.zones)


def each_direction(world: World, theta: Vector, devices: Indices) -> npt.NDArray[np.float32]:
    """`[N, P]`: the direction of each of the devices on `θ`, in one pass where that is cheaper."""
    run, stack = world.run, world.data.device_stack
    if len(devices) >= WORTHWHILE and run.update.kind == "gradient" and not run.simulation.exact and stack is not None:
        return world.learner.gradients(theta, stack.rows(devices.tolist()))
    batches = device_batches(world)
    rows = [device_direction(world.learner, theta, batches[u], run.update) for u in devices]
    return np.stack(rows) if rows else np.empty((0, world.learner.size), np.float32)


def zones_of_devices(world: World) -> Indices:
    """The zone's number of each device, in the order of `device_batches`."""
    return np.repeat(np.arange(len(world.zones)), [len(zone.devices) for zone in world.data.zones])


def pairs_of(world: World, of_device: Indices) -> int:
    """How many pairs of a zone and a model there are: each is a mean that the zone's edge sends up."""
    return len(np.unique(np.stack([zones_of_devices(world), of_device]), axis=1).T)


def served_by(world: World, models: Sequence[Stepped], of_device: Indices | None = None) -> Served:
    """The models as they serve; all devices have the first if nothing else is said."""
    nobody = np.zeros(device_count(world), np.intp)
    return Served([model.theta for model in models], nobody if of_device is None else of_device)
