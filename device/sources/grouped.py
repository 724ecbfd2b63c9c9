"""A source whose samples lie in memory, each with its zone and its device: what every file becomes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from device.samples import Array, DeviceData, Samples, split
from device.sources.kept_zones import kept_zones, some
from device.sources.outlines import Places, nowhere
from device.sources.zone_name import zone_name
from sgfusion.errors import DataError
from sgfusion.runfile import Zones
from sgfusion.runfile_geography import Rings

Names = npt.NDArray[np.str_]
Neighbours = Callable[[tuple[str, ...]], Mapping[str, tuple[str, ...]]]
"""Gives the neighbours among the zones that are kept."""


def no_geography(_zones: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """For data without places."""
    return {}


class GroupedSource:
    """Samples grouped by zone and device, in order of time within a device (`order`, else as they come)."""

    def __init__(
        self,
        samples: Samples,
        zone: Sequence[str] | Names,
        device: Sequence[str] | Names,
        order: npt.NDArray[np.generic] | None,
        zones: Zones,
        *,
        scaled: bool,
        neighbours: Neighbours = no_geography,
        places: Places = nowhere,
        notes: Sequence[str] = (),
        synthetic: bool = False,
    ) -> None:
        self.scaled, self.synthetic = scaled, synthetic
        self._samples = samples
        zone_of, device_of = zone_names(zone), np.asarray(device, np.str_)
        for what, array in (("zones", zone_of), ("devices", device_of), ("order", order)):
            if array is not None and len(array) != len(samples):
                raise DataError(f"{len(array)} {what} for {len(samples)} samples: give one for each sample")
        when = np.arange(len(samples)) if order is None else np.asarray(order)
        rows = np.lexsort((np.arange(len(samples)), when, device_of, zone_of))
        self._rows: dict[str, dict[str, npt.NDArray[np.intp]]] = {}
        if len(rows):
            zone_of, device_of = zone_of[rows], device_of[rows]
            starts = np.flatnonzero((zone_of[1:] != zone_of[:-1]) | (device_of[1:] != device_of[:-1])) + 1
            for part in np.split(np.arange(len(rows)), starts):
                self._rows.setdefault(str(zone_of[part[0]]), {})[str(device_of[part[0]])] = rows[part]
        devices = {name: len(of_zone) for name, of_zone in self._rows.items()}
        sizes = {name: sum(map(len, of_zone.values())) for name, of_zone in self._rows.items()}
        self._zones, left_out = kept_zones(devices, sizes, zones)
        self.notes = (*notes, *left_out)
        self._neighbours, self._places = neighbours, places

    @property
    def labels(self) -> Array:
        """Of all samples, in no order."""
        return self._samples.y

    def zones(self) -> tuple[str, ...]:
        """The zones that are kept."""
        return self._zones

    def devices(self, zone: str) -> tuple[str, ...]:
        """The zone's devices, in order of their ids."""
        return tuple(self._of(zone))

    def data(self, zone: str, device: str) -> DeviceData:
        """What the device holds of the zone."""
        try:
            rows = self._of(zone)[device]
        except KeyError:
            raise DataError(f"zone {zone!r} has no device {device!r}: it has {some(self.devices(zone))}") from None
        context = None if self._samples.context is None else self._samples.context[rows]
        return split(zone, device, Samples(self._samples.x[rows], self._samples.y[rows], context))

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        """The geographic neighbours of each zone."""
        return self._neighbours(self._zones)

    def places(self) -> Mapping[str, Rings]:
        """Where the zones lie, for a map; those that are known to lie somewhere."""
        return self._places(self._zones)

    def _of(self, zone: str) -> Mapping[str, npt.NDArray[np.intp]]:
        if zone not in self._rows:
            raise DataError(f"zone {zone!r} has no data: there are {some(tuple(self._rows))}")
        return self._rows[zone]


def zone_names(names: Sequence[str] | Names) -> Names:
    """Names as zones have them, fit for file names and addresses: "Lesser Poland" is "Lesser-Poland"."""
    raw, which = np.unique(np.asarray(names, np.str_), return_inverse=True)
    clean = [zone_name(name) for name in raw.tolist()]
    for name, was in zip(clean, raw.tolist(), strict=True):
        if not name:
            raise DataError(f"zone {was!r}: a zone's name has a letter or a digit")
        if clean.count(name) > 1:
            twins = [raw[i] for i, other in enumerate(clean) if other == name]
            raise DataError(f"zones {' and '.join(map(repr, map(str, twins)))} would both be {name!r}: rename one")
    return np.array(clean, np.str_)[which] if clean else np.empty(0, np.str_)
