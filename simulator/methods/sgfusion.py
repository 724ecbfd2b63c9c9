"""SGFusion: zones drawn from the probabilistic dendrogram, gradients fused by attention (methods 5 and 7).

K. Nguyen, K. Tran, N. Phan, C. Borcea, R. Jin, I. Khalil. SGFusion: Stochastic Geographic Gradient Fusion in Federated
Learning. IEEE BigData 2025, arXiv:2510.23455.
"""

from sgfusion.runfile import SamplerChoice
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod, told
from simulator.world import World


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """Each zone independently with probability `p(z, z')`."""
    return told(world, zone, source, SamplerChoice(kind="hrg"))


METHOD = ZoneMethod("sgfusion", "SGFusion", "hrg", plan, uses_histograms=True)
