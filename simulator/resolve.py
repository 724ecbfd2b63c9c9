"""A run file with all that its data says filled in: a cluster needs the zones' names before any data is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from device.sources.source import open_source
from sgfusion.runfile import RunFile, checked, parse_run_file
from simulator.world import DATA, key_of


@dataclass(frozen=True)
class _Found:
    """What a source says of its zones; not its samples, which may be many."""

    devices: Mapping[str, tuple[str, ...]]
    """By zone, in the order of their numbers."""
    neighbours: Mapping[str, tuple[str, ...]]


def resolved(run: RunFile) -> RunFile:
    """The run with `zones.names` and, if its source knows neighbours, `zones.adjacent`: the same world as before."""
    found = _found(*key_of(run, DATA))
    document = run.model_dump(by_alias=True, exclude_none=True)
    document["zones"]["names"] = list(found.devices)
    if run.zones.adjacent is None and found.neighbours:
        document["zones"]["adjacent"] = {zone: found.neighbours.get(zone, ()) for zone in found.devices}
    return checked(RunFile, document, f"run {run.name!r}, with its zones filled in")


def devices_of(run: RunFile) -> dict[str, tuple[str, ...]]:
    """The ids of each zone's devices, in their order; zones in the order of their numbers."""
    return dict(_found(*key_of(run, DATA)).devices)


@lru_cache(maxsize=8)
def _found(text: str, _files: str) -> _Found:
    run = parse_run_file(text)
    source = open_source(run)
    return _Found({zone: source.devices(zone) for zone in source.zones()}, dict(source.neighbours()))
