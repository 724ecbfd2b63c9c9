"""Random: uniform draws, as many zones in expectation as SGFusion draws (method 9, a control of ours).

What SGFusion gains over this is what the dendrogram is worth; what this gains over no sharing is the worth of sharing.
"""

import numpy as np

from sgfusion.sampling import HrgSampler
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod
from simulator.world import World


def plan(world: World, _zone: int, source: InProcess) -> Plan:
    """Zone `z` takes each other zone with the same probability, the mean of its row of `p`."""
    others = max(1, len(world.zones) - 1)
    means = np.minimum(1.0, world.probabilities.sum(axis=1, keepdims=True) / others)
    uniform = np.repeat(means, len(world.zones), axis=1)
    np.fill_diagonal(uniform, 0.0)
    return Plan(HrgSampler(uniform, world.run.seed), source)


METHOD = ZoneMethod("random", "Random", "random", plan)
