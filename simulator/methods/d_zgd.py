"""D-ZGD: gradients of the geographic neighbours, fused by attention (method 9).

X. Jiang, T. On, N. Phan, H. Mohammadi, V. D. Mayyuri, A. Chen, R. Jin, C. Borcea. Zone-based Federated Learning for
Mobile Sensing Data. IEEE PerCom 2023 (zone gradient diffusion).
"""

from sgfusion.sampling import NeighbourSampler
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod
from simulator.world import World


def plan(world: World, _zone: int, source: InProcess) -> Plan:
    """The same neighbours in every round."""
    return Plan(NeighbourSampler(world.neighbours()), source)


METHOD = ZoneMethod("d-zgd", "D-ZGD", "neighbours", plan)
