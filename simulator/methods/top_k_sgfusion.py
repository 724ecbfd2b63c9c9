"""top-k-SGFusion: the k zones nearest in label distribution, every round: SGFusion without chance (method 8).

The deterministic variant of SGFusion's own paper (see `sgfusion.py`).
"""

from sgfusion.runfile import SamplerChoice
from simulator.directions import InProcess
from simulator.methods.method import Plan, ZoneMethod, told
from simulator.world import World

K = 7
"""Zones drawn where a run file names none: it was written for another method. The paper's largest: in the tuning, on
real flights and on synthetic heart rates, more were better from 3 up to 12 (experiments/RESULTS.md)."""


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """The same `sampler.k` zones in every round; all others if there are fewer."""
    return told(world, zone, source, SamplerChoice(kind="top-k", k=world.run.sampler.k or K))


METHOD = ZoneMethod("top-k-sgfusion", "top-k-SGFusion", "top-k", plan, uses_histograms=True)
