"""Random: uniform draws, as many zones in expectation as SGFusion draws (method 9, a control of ours).

What SGFusion gains over this is what the dendrogram is worth; what this gains over no sharing is the worth of sharing.
"""

from sgfusion.runfile import SamplerChoice
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod, told
from simulator.world import World


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """Zone `z` takes each other zone with the same probability, the mean of its row of `p`."""
    return told(world, zone, source, SamplerChoice(kind="random"))


METHOD = ZoneMethod("random", "Random", "random", plan)
