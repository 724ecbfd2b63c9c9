"""What there is to say of a run's zones before they train: each may be meant so, and each may be a slip of the pen."""

from collections.abc import Mapping, Sequence

from console.formats import counted
from console.lone_devices import lone_devices
from device.sources.zone_name import meant_zone
from sgfusion.runfile import RunFile
from simulator.geography import shortened

BY_HAND = ("sequences", "table")
"""Sources whose devices have the ids that their owner gave them. Aircraft and athletes are who they are, and move."""


def zone_notes(run: RunFile, devices: Mapping[str, Sequence[str]], samples: Mapping[str, int]) -> tuple[str, ...]:
    """A note a matter; `devices` are the ids of each zone's, `samples` how many a zone of one device has, or any."""
    spelt = tuple(devices) if run.zones.by == "column" else ()
    return (
        *lone_devices(devices, samples, spelt),
        *(roaming_devices(devices) if run.data.source in BY_HAND else ()),
        *misplaced(tuple(devices), run.zones.places or ()),
    )


def roaming_devices(devices: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Of devices in several zones: people move, and tables number devices anew in each zone."""
    zones: dict[str, list[str]] = {}
    for zone, ids in devices.items():
        for device in ids:
            zones.setdefault(device, []).append(zone)
    roaming = [f"{device} ({shortened(where)})" for device, where in zones.items() if len(where) > 1]
    if not roaming:
        return ()
    are = "is" if len(roaming) == 1 else "are"
    return (
        f"{counted(len(roaming), 'device')} {are} in more than one zone: {shortened(roaming)}. Such a device takes part"
        " in each, with that zone's samples alone; if these are different devices, give each a name of its own",
    )


def misplaced(zones: Sequence[str], places: Sequence[str] | Mapping[str, object]) -> tuple[str, ...]:
    """Of places that may be meant for a zone without one. Any other may be of a zone that joins later."""
    without = [zone for zone in zones if zone not in places]
    meant = {place: meant_zone(place, without) for place in places if place not in zones}
    return tuple(
        f"zones.places has {place!r}, which is no zone of this run: is it {zone!r}, which has no place?"
        for place, zone in meant.items()
        if zone is not None
    )
