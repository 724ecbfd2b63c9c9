"""A run file with all that its data says filled in: a cluster needs the zones' names before any data is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from device.sources.outlines import cells
from device.sources.polygons import Polygons
from device.sources.source import known_places, open_source
from sgfusion.errors import SGFusionError
from sgfusion.runfile import RunFile, Zones, checked, parse_run_file
from sgfusion.runfile_geography import Rings
from simulator.world import DATA, key_of


@dataclass(frozen=True)
class _Found:
    """What a source says of its zones; not its samples, which may be many."""

    devices: Mapping[str, tuple[str, ...]]
    """By zone, in the order of their numbers."""
    neighbours: Mapping[str, tuple[str, ...]]
    places: Mapping[str, Rings]


def resolved(run: RunFile) -> RunFile:
    """The run with `zones.names` and, as far as its source knows them, `zones.adjacent` and `zones.places`.

    It is the same world as before. Zones that are too small, or have no data, go; places said by hand stay, also those
    of zones that the run does not have: they may join.
    """
    found = _found(*key_of(run, DATA))
    document = run.model_dump(by_alias=True, exclude_none=True)
    document["zones"]["names"] = list(found.devices)
    if run.zones.adjacent is None and found.neighbours:
        document["zones"]["adjacent"] = {zone: found.neighbours.get(zone, ()) for zone in found.devices}
    if run.zones.places is None and found.places:
        document["zones"]["places"] = found.places
    return checked(RunFile, document, f"run {run.name!r}, with its zones filled in")


def with_places(run: RunFile, places: Mapping[str, Rings]) -> RunFile:
    """The run with those places of its zones, unless it says by itself where they lie."""
    if run.zones.places is not None or not places:
        return run
    document = run.model_dump(by_alias=True, exclude_none=True)
    document["zones"]["places"] = places
    return checked(RunFile, document, f"run {run.name!r}, with the places of its zones filled in")


def places_of(run: RunFile) -> Mapping[str, Rings]:
    """Where the run's zones lie: as it says itself, as its cells or polygons say, or as its source knows.

    Never an error, be it that the data is elsewhere or that a package is missing: a map does without.
    """
    if run.zones.places is not None:
        return run.zones.places
    try:
        return _by_zoning(run.zones) or with_places(run, _found(*key_of(run, DATA)).places).zones.places or {}
    except (SGFusionError, OSError):
        return {}


def devices_of(run: RunFile) -> dict[str, tuple[str, ...]]:
    """The ids of each zone's devices, in their order; zones in the order of their numbers."""
    return dict(_found(*key_of(run, DATA)).devices)


@lru_cache(maxsize=8)
def _found(text: str, _files: str) -> _Found:
    run = parse_run_file(text)
    source = open_source(run)
    devices = {zone: source.devices(zone) for zone in source.zones()}
    return _Found(devices, dict(source.neighbours()), known_places(source))


def _by_zoning(zones: Zones) -> Mapping[str, Rings]:
    """The places of the zones that a run names, where cells or polygons tell them without any data."""
    if zones.by == "h3":
        return cells(zones.names)
    if zones.by == "polygons":
        return Polygons(str(zones.polygons), str(zones.property)).places(zones.names)
    return {}
