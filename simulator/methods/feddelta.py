"""FedDELTA: one model; devices are drawn by how diverse their gradients are (method 9).

L. Wang, Y. Guo, T. Lin, X. Tang. DELTA: Diverse Client Sampling for Fasting Federated Learning. NeurIPS 2023. What is
settled about it stands in `delta.py`; `baselines.share` is the share of devices drawn a round.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.cost import Cost
from simulator.directions import batch_halves, halved_passes_of
from simulator.methods import delta
from simulator.methods.central import Stepped, device_batches, device_count, served_by, zones_of_devices
from simulator.methods.method import CentralMethod, Served
from simulator.world import World


@dataclass(frozen=True, eq=False)
class State:
    """The model, and each device's direction and variance of when it was last drawn."""

    model: Stepped
    gradients: npt.NDArray[np.float32]
    variances: npt.NDArray[np.float64]


def init(world: World) -> State:
    """Nothing is known of any device."""
    devices = device_count(world)
    size = world.learner.size
    return State(Stepped.initial(world, world.theta), np.zeros((devices, size), np.float32), np.zeros(devices))


def apply(world: World, state: State, round: int, cost: Cost) -> State:
    """Everyone in round 1; then `n` draws with replacement, reweighted to be unbiased."""
    batches, settings = device_batches(world), world.run.baselines
    if round == 1:
        chosen, weights = np.arange(len(batches)), np.full(len(batches), 1 / len(batches))
    else:
        count = max(1, round_half_up(settings.share * len(batches)))
        chances = delta.probabilities(state.gradients, state.variances, settings)
        times = delta.draw(chances, count, world.run.seed, "feddelta draw", round)
        chosen, weights = np.flatnonzero(times), delta.reweighted(chances, times)
    gradients, variances = state.gradients.copy(), state.variances.copy()
    total = np.zeros(world.learner.size)
    for u in chosen:
        gradients[u], variances[u] = batch_halves(world.learner, state.model.theta, batches[u], world.run.update)
        total += weights[u] * gradients[u].astype(np.float64)
    edges = len(np.unique(zones_of_devices(world)[chosen]))
    passes = halved_passes_of([batches[u] for u in chosen], world.run.update)
    # The cloud needs directions one by one, to know how diverse they are.
    cost.central(len(chosen), edges, models=1, means=len(chosen), to_device=1, passes=passes)
    return State(state.model.along(world, total, round), gradients, variances)


def round_half_up(number: float) -> int:
    """To the nearest whole number."""
    return int(number + 0.5)


def serve(world: World, state: State) -> Served:
    """The one model."""
    return served_by(world, [state.model])


METHOD = CentralMethod("feddelta", "FedDELTA", init, apply, serve)
