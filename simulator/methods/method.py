"""What a method of the comparison is: one that trains zones apart, or one with central models.

Both are small: state in, state out. A zone method says whom a zone draws, and everything else is `zone_trainer`. A
central method is two functions, `init` and `apply`, and says which model serves which device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sgfusion.draws import draws_for, sampler_of
from sgfusion.runfile import SamplerChoice, SamplerKind
from sgfusion.sampling import Sampler
from sgfusion.zone_trainer import Weigh
from simulator.cost import Cost
from simulator.directions import DirectionSource, InProcess
from simulator.world import World

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Plan:
    """How a zone trains: whom it draws, whom it asks, and its own way to weigh answers if it is not attention."""

    sampler: Sampler
    source: DirectionSource
    weigh: Weigh | None = None


def told(world: World, zone: int, source: DirectionSource, sampler: SamplerChoice) -> Plan:
    """The plan of a zone that draws as the cloud would tell it to with this `sampler`; answers weigh by attention."""
    by_place = sampler.kind == "neighbours" or (sampler.kind == "chi" and sampler.chi is None)
    near = world.neighbours()[zone] if by_place else None
    draws = draws_for(zone, sampler=sampler, tree=world.chances, neighbours=near)
    return Plan(sampler_of(draws, zone=zone, seed=world.run.seed, zones=len(world.zones)), source)


@dataclass(frozen=True)
class ZoneMethod:
    """One model per zone, through `zone_trainer`."""

    name: str
    title: str
    sampler_kind: SamplerKind | None
    """The run file's `sampler.kind` that means this method; None for one that is only compared with."""
    plan: Callable[[World, int, InProcess], Plan]
    """Given the world, the zone and where its gradients come from."""
    uses_histograms: bool = False
    per_zone: bool = True


@dataclass(frozen=True, eq=False)
class Served:
    """Models, and which of them serves each device: `of_device` is in the order of zones and of ids within them."""

    models: Sequence[Vector]
    of_device: npt.NDArray[np.intp]


@dataclass(frozen=True)
class CentralMethod:
    """Models that all zones' devices train together."""

    name: str
    title: str
    init: Callable[[World], Any]
    """The state before round 1."""
    apply: Callable[[World, Any, int, Cost], Any]
    """The state after the given round; what it costs is entered in the account."""
    serve: Callable[[World, Any], Served]
    per_zone: bool = False


Method = ZoneMethod | CentralMethod
