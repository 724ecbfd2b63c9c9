"""D-ZGD: gradients of the geographic neighbours, fused by attention (method 9).

X. Jiang, T. On, N. Phan, H. Mohammadi, V. D. Mayyuri, A. Chen, R. Jin, C. Borcea. Zone-based Federated Learning for
Mobile Sensing Data. IEEE PerCom 2023 (zone gradient diffusion).
"""

from sgfusion.runfile import SamplerChoice
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod, told
from simulator.world import World


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """The same neighbours in every round."""
    return told(world, zone, source, SamplerChoice(kind="neighbours"))


METHOD = ZoneMethod("d-zgd", "D-ZGD", "neighbours", plan)
