"""All: every zone, every round (method 9, a control of ours): the most that sharing can cost."""

from sgfusion.sampling import NeighbourSampler
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod
from simulator.world import World


def plan(world: World, _zone: int, source: InProcess) -> Plan:
    """All other zones."""
    zones = range(len(world.zones))
    return Plan(NeighbourSampler([[other for other in zones if other != zone] for zone in zones]), source)


METHOD = ZoneMethod("all", "All", "all", plan)
