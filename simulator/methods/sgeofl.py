"""SGeoFL: one model per zone, no sharing (method 9).

Static geographical federated learning: the zone-wise FedAvg that zone-based methods start from; see `d_zgd.py`.
"""

from sgfusion.sampling import NoSampler
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod
from simulator.world import World


def plan(_world: World, _zone: int, source: InProcess) -> Plan:
    """Nobody is drawn."""
    return Plan(NoSampler(), source)


METHOD = ZoneMethod("sgeofl", "SGeoFL", "none", plan)
