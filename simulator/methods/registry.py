"""All methods by name."""

from collections.abc import Mapping

from sgfusion.errors import RunFileError
from sgfusion.runfile import RunFile
from simulator.methods import (
    all_zones,
    chi_sgfusion,
    d_zgd,
    delta_z,
    fedavg,
    feddelta,
    fedsem,
    ifca,
    random_zones,
    sgeofl,
    sgfusion,
    shuffled,
    top_k_sgfusion,
)
from simulator.methods.method import Method, ZoneMethod

_MODULES = (
    sgfusion,
    chi_sgfusion,
    top_k_sgfusion,
    d_zgd,
    sgeofl,
    delta_z,
    fedavg,
    ifca,
    fedsem,
    feddelta,
    random_zones,
    shuffled,
    all_zones,
)
METHODS: Mapping[str, Method] = {module.METHOD.name: module.METHOD for module in _MODULES}
"""In the order in which tables have them: those of this family, zone methods, central ones, controls."""


def method_named(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise RunFileError(f"method {name!r}: choose one of {', '.join(METHODS)}")
    return METHODS[name]


def method_of(run: RunFile) -> str:
    """The zone method that the run file's sampler means."""
    return next(m.name for m in METHODS.values() if isinstance(m, ZoneMethod) and m.sampler_kind == run.sampler.kind)
