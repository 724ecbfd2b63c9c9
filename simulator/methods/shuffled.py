"""Shuffled: SGFusion's chances, dealt to other zones at random once and for all (a control of ours).

A zone draws as many zones as by SGFusion and comes back to the same few as often, but they are not those that are like
it. What SGFusion gains over this is what likeness is worth; what this gains over Random is the worth of drawing the
same few zones again and again.
"""

import numpy as np

from sgfusion.sampling import HrgSampler
from sgfusion.streams import raw_stream, uniforms
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod
from simulator.world import World


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """Zone `z` takes another zone with the probability that `p(z, ·)` gives to some other, a function of the seed."""
    others = [other for other in range(len(world.zones)) if other != zone]
    order = np.argsort(uniforms(raw_stream(world.run.seed, "shuffled", zone), len(others)), kind="stable")
    dealt = world.probabilities.copy()
    dealt[zone, others] = dealt[zone, others][order]
    return Plan(HrgSampler(dealt, world.run.seed), source)


METHOD = ZoneMethod("shuffled", "Shuffled", None, plan)
