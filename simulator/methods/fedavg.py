"""FedAvg: one model for all devices of all zones (method 9).

B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas. Communication-Efficient Learning of Deep Networks from
Decentralized Data. AISTATS 2017. Every device takes part in every round and counts the same, as in every method here.
"""

import numpy as np

from simulator.cost import Cost
from simulator.directions import all_passes_of, zone_direction
from simulator.methods.central import Stepped, device_batches, device_count, served_by
from simulator.methods.method import CentralMethod, Served
from simulator.world import World


def init(world: World) -> Stepped:
    """`θ⁰`."""
    return Stepped.initial(world, world.theta)


def apply(world: World, model: Stepped, round: int, cost: Cost) -> Stepped:
    """One step along the mean of all devices' directions."""
    devices, update, exact = device_count(world), world.run.update, world.run.simulation.exact
    total = np.zeros(world.learner.size)
    for zone in world.data.zones:
        share = len(zone.devices) / devices
        total += share * zone_direction(world.learner, model.theta, zone, update, exact=exact).astype(np.float64)
    cost.gradients(devices, hops=len(world.zones), passes=all_passes_of(device_batches(world), update))
    return model.along(world, total, round)


def serve(world: World, model: Stepped) -> Served:
    """The one model."""
    return served_by(world, [model])


METHOD = CentralMethod("fedavg", "FedAvg", init, apply, serve)
