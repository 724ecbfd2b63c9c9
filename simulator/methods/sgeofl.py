"""SGeoFL: one model per zone, no sharing (method 9).

Static geographical federated learning: the zone-wise FedAvg that zone-based methods start from; see `d_zgd.py`.
"""

from sgfusion.runfile import SamplerChoice
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod, told
from simulator.world import World


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """Nobody is drawn."""
    return told(world, zone, source, SamplerChoice(kind="none"))


METHOD = ZoneMethod("sgeofl", "SGeoFL", "none", plan)
