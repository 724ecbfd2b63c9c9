"""All: every zone, every round (method 9, a control of ours): the most that sharing can cost."""

from sgfusion.runfile import SamplerChoice
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod, told
from simulator.world import World


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """All other zones."""
    return told(world, zone, source, SamplerChoice(kind="all"))


METHOD = ZoneMethod("all", "All", "all", plan)
