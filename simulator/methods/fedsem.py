"""FedSEM: k centres; devices go with the centre nearest to their local weights (method 9).

M. Xie, G. Long, T. Shen, T. Zhou, X. Wang, J. Jiang, C. Zhang. Multi-Center Federated Learning. 2020, arXiv:2005.01026.
`baselines.clusters` is k.

Settled: centres start from k of the first local models, chosen far apart as k-means++ does; k random ones would leave
all devices with the one they started from. With momentum or Adam a centre moves along that optimiser's step in place of
the plain step to its devices' mean.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgfusion.streams import raw_stream, uniforms
from simulator.cost import Cost
from simulator.directions import all_passes_of
from simulator.methods.central import (
    Indices,
    Stepped,
    device_batches,
    device_count,
    each_direction,
    pairs_of,
    served_by,
)
from simulator.methods.method import CentralMethod, Served
from simulator.world import World

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class State:
    """The centres, and the centre of each device."""

    centres: tuple[Stepped, ...]
    of_device: Indices


def init(world: World) -> State:
    """One centre, `θ⁰`: the first local models, from which k centres are chosen, are trained in round 1."""
    return State((Stepped.initial(world, world.theta),), np.zeros(device_count(world), np.intp))


def apply(world: World, state: State, round: int, cost: Cost) -> State:
    """Broadcast and train locally; E: each device to its nearest centre; M: each centre to its devices' mean."""
    rate = world.run.optimiser.optimiser(world.run.rounds).schedule.rate_at(round)
    local = _local_models(world, state, rate)
    centres = state.centres if round > 1 else _first_centres(world, local)
    nearest = _nearest(local, np.stack([centre.theta for centre in centres]))
    # The first centres are chosen from all local models, which the cloud then needs one by one.
    means = len(local) if round == 1 else pairs_of(world, nearest)
    passes = all_passes_of(device_batches(world), world.run.update)
    cost.central(len(local), len(world.zones), len(state.centres), means, to_device=1, passes=passes)
    moved = [
        centre.along(world, (centre.theta - local[nearest == j].mean(axis=0, dtype=np.float64)) / rate, round)
        if (nearest == j).any()
        else centre
        for j, centre in enumerate(centres)
    ]
    return State(tuple(moved), nearest)


def serve(world: World, state: State) -> Served:
    """Each device has its centre's model."""
    return served_by(world, state.centres, state.of_device)


def _local_models(world: World, state: State, rate: float) -> Matrix:
    """`[M, P]`: each device's weights after a local step from its centre."""
    local = np.empty((len(state.of_device), world.learner.size), np.float32)
    for j, centre in enumerate(state.centres):
        members = np.flatnonzero(state.of_device == j)
        local[members] = centre.theta - np.float32(rate) * each_direction(world, centre.theta, members)
    return local


def _first_centres(world: World, local: Matrix) -> tuple[Stepped, ...]:
    """As many local models, each drawn with a chance that grows with the squared distance to those drawn before."""
    luck = uniforms(raw_stream(world.run.seed, "fedsem start"), world.run.baselines.clusters)
    picked: list[int] = []
    apart = np.ones(len(local))
    for number in luck:
        if not apart.any():
            break  # fewer different models than k
        heights = np.cumsum(apart)
        picked.append(int(min(np.searchsorted(heights, number * heights[-1], side="right"), len(local) - 1)))
        gaps = np.array([np.square(local[p].astype(np.float64) - local).sum(axis=1) for p in picked])
        apart = gaps.min(axis=0)
    return tuple(Stepped.initial(world, local[u].copy()) for u in picked)


def _nearest(local: Matrix, centres: Matrix) -> Indices:
    gaps = np.stack([np.square(local - centre.astype(np.float64)).sum(axis=1) for centre in centres])
    nearest: Indices = np.argmin(gaps, axis=0)
    return nearest


METHOD = CentralMethod("fedsem", "FedSEM", init, apply, serve)
