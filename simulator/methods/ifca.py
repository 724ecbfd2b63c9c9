"""IFCA: k models; each device trains the one that fits its training data best (method 9).

A. Ghosh, J. Chung, D. Yin, K. Ramchandran. An Efficient Framework for Clustered Federated Learning. NeurIPS 2020.
`baselines.clusters` is k. A cluster's model is the unweighted mean of its devices' models, with momentum or Adam that
optimiser's step along the mean of their directions; an empty one stays.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from device.batch import Batch
from device.direction import device_direction
from sgfusion.fusion import mean_direction
from sgfusion.streams import raw_stream
from simulator.cost import Cost
from simulator.directions import all_passes_of
from simulator.methods.central import Indices, Stepped, device_batches, device_count, pairs_of, served_by
from simulator.methods.method import CentralMethod, Served
from simulator.world import World

Vector = npt.NDArray[np.float32]

SPREAD = 0.1
"""The deviation of clusters' initial weights where a task has but one set of them, such as zeros."""


@dataclass(frozen=True, eq=False)
class State:
    """The clusters' models."""

    models: tuple[Stepped, ...]


def init(world: World) -> State:
    """The first model starts from `θ⁰` as all methods do, the others from weights of other seeds: they must differ."""
    return State(tuple(Stepped.initial(world, _start(world, j)) for j in range(world.run.baselines.clusters)))


def apply(world: World, state: State, round: int, cost: Cost) -> State:
    """Every device picks `argmin_j F_u(θ_j)`; each cluster steps along the mean of its devices' directions."""
    chosen = best_models(world, state.models)
    members = [np.flatnonzero(chosen == j) for j in range(len(state.models))]
    models = tuple(
        model.along(world, _mean(world, model.theta, devices), round) if len(devices) else model
        for model, devices in zip(state.models, members, strict=True)
    )
    cost.central(
        device_count(world),
        len(world.zones),
        len(models),
        pairs_of(world, chosen),
        to_device=len(models),
        passes=all_passes_of(device_batches(world), world.run.update),
    )
    return State(models)


def serve(world: World, state: State) -> Served:
    """Each device has the model that is best on its training data."""
    return served_by(world, state.models, best_models(world, state.models))


def best_models(world: World, models: tuple[Stepped, ...]) -> Indices:
    """`argmin_j F_u(θ_j)` of each device."""
    losses = np.stack([_device_losses(world, model.theta) for model in models])
    best: Indices = np.argmin(losses, axis=0)
    return best


def _device_losses(world: World, theta: Vector) -> npt.NDArray[np.float64]:
    """`F_u(θ)` of each device, a zone at a time."""
    means = []
    for zone in world.data.zones:
        losses = world.learner.losses(theta, zone.train).astype(np.float64)
        sizes = np.array([len(device.train) for device in zone.devices])
        means.append(np.add.reduceat(losses, np.concatenate([[0], np.cumsum(sizes)[:-1]])) / sizes)
    return np.concatenate(means)


def _mean(world: World, theta: Vector, devices: Indices) -> Vector:
    """The mean direction of the devices, as one batch where that is the same."""
    batches, update = device_batches(world), world.run.update
    if world.run.simulation.exact or update.kind == "delta":
        return mean_direction(device_direction(world.learner, theta, batches[u], update) for u in devices)
    return world.learner.gradient(theta, Batch.joined([batches[u] for u in devices]))


def _start(world: World, j: int) -> Vector:
    if j == 0:
        return world.theta
    stream = raw_stream(world.run.seed, "ifca start", j)
    other = world.learner.initial(int(stream.random_raw()) >> 1)
    if not np.array_equal(other, world.theta):
        return other
    return (world.theta + SPREAD * np.random.Generator(stream).standard_normal(len(other))).astype(np.float32)


METHOD = CentralMethod("ifca", "IFCA", init, apply, serve)
