"""Which zones of a source a run keeps: those it names, or all that have enough devices and samples."""

from collections.abc import Mapping

from device.sources.zone_name import or_meant
from sgfusion.errors import DataError
from sgfusion.runfile import Zones


class ZonesHere(Zones):
    """A run's zones as a host of devices sees them: it may hold the rows of a single device, of one of the zones."""


def refuse_zoning(zones: Zones, source: str, what: str, *, places: bool = True) -> None:
    """Refuse settings of `[zones]` that the source would leave unheard: its zones are `what`."""
    if zones.by != "column":
        raise DataError(f"zones.by = {zones.by!r}: the zones of {source} are {what}; leave zones.by out")
    if zones.neighbours is not None and not places:
        raise DataError(
            f"zones.neighbours = {zones.neighbours!r}: the zones of {source} have no places; leave zones.neighbours out"
        )


def kept_zones(
    devices: Mapping[str, int], samples: Mapping[str, int], zones: Zones
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The zones with enough devices and samples, in the order of the run or else of their names; words on the others.

    A zone that the run names and that is not there, or has too few, is an error: it was asked for. Not so on a host of
    devices, which has what it has of them.
    """
    if not devices:
        raise DataError("there are no samples at all")
    if isinstance(zones, ZonesHere) and zones.names:
        named = tuple(name for name in zones.names if name in devices)
        if not named:
            raise DataError(f"no zone of zones.names has data here: the source has {some(tuple(devices))}")
        return named, ()
    asked = f"fewer than {zones.min_devices} devices or {zones.min_samples} samples"
    kept = []
    for name in zones.names or sorted(devices):
        if name not in devices:
            there = tuple(devices)
            raise DataError(
                f"zone {name!r} of zones.names has no data: the source has {some(there)}{or_meant(name, there)}"
            )
        if devices[name] >= zones.min_devices and samples[name] >= zones.min_samples:
            kept.append(name)
        elif zones.names:
            raise DataError(
                f"zone {name!r} of zones.names has {devices[name]} devices and {samples[name]} samples, {asked}:"
                " leave it out, or lower zones.min_devices and zones.min_samples"
            )
    if not kept:
        raise DataError(f"no zone is left: all {len(devices)} have {asked}")
    few = 0 if zones.names else len(devices) - len(kept)
    return tuple(kept), (f"{few} of {len(devices)} zones left out: {asked}",) if few else ()


def some(names: tuple[str, ...]) -> str:
    """A few of the names, for messages."""
    return ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
