"""χ-SGFusion: exactly χ zones a round, drawn by the same probabilities (method 8).

The variant of SGFusion's own paper (see `sgfusion.py`) whose zones draw as many others as they have neighbours.
"""

from sgfusion.errors import SamplerError
from sgfusion.runfile import SamplerChoice
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod, told
from simulator.world import World


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """`χ_z` is `sampler.chi` for every zone, or the number of the zone's geographic neighbours."""
    chi, others = world.run.sampler.chi, len(world.zones) - 1
    if chi is not None and chi > others:
        raise SamplerError(f"sampler.chi = {chi}: a zone of this run has {others} others to draw from")
    return told(world, zone, source, SamplerChoice(kind="chi", chi=chi))


METHOD = ZoneMethod("chi-sgfusion", "χ-SGFusion", "chi", plan, uses_histograms=True)
