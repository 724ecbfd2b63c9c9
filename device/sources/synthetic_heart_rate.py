"""Synthetic heart rates: made up by `synthetic_workouts`, in the size and shape of the paper's data (method 10).

Countries have the paper's numbers of devices, samples and zones, spread unevenly over zones and devices. What a device
holds is a pure function of (seed, zone, device), whichever zones a run names: a device makes its own. Real devices
roam; here each belongs to one zone. These data can show that a method does what it should, not how well it does on
people.
"""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from device.samples import DeviceData, Samples, split
from device.sources.kept_zones import kept_zones, refuse_zoning, some
from device.sources.outlines import points
from device.sources.synthetic_countries import COUNTRIES, CountryName
from device.sources.synthetic_workouts import workouts, zone_traits
from device.sources.zoning import delaunay_neighbours
from sgfusion.errors import DataError
from sgfusion.runfile import Section, Share, Zones
from sgfusion.runfile_geography import Rings
from sgfusion.streams import raw_stream

LEAST_SAMPLES = 5
"""A device has at least so many: the fewest that are split into three fifths, one and one."""


class Options(Section):
    """The keys of `[data]` when `source = "synthetic_heart_rate"`.

    `length` is the number of steps of a workout; `share` the share of each device's workouts that is kept, the first
    ones, but never fewer than five; `difference` how strongly zones differ (0: not at all, but for chance); `alike` how
    much of the difference of their laws goes along with that of their habits, and so of their labels.
    """

    country: CountryName
    length: Annotated[int, Field(ge=2)] = 50
    share: Share = 1.0
    difference: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    alike: Annotated[float, Field(ge=0, le=1)] = 0.5
    context: bool = True


class SyntheticHeartRate:
    """The source: zones are the country's regions, devices are synthetic-000 and so on, each in one zone."""

    scaled = False
    synthetic = True

    def __init__(self, options: Options, zones: Zones, seed: int) -> None:
        self._options, self._seed, self._country = options, seed, COUNTRIES[options.country]
        places = self._country.zones
        self._numbers = {name: number for number, name in enumerate(places)}
        self._traits = zone_traits(
            self._random("zones"), len(places), difference=options.difference, alike=options.alike
        )
        counts = self._random("counts")
        devices = apportion(self._country.devices, counts.lognormal(0, 0.7, len(places)), 1)
        samples = apportion(self._country.samples, counts.lognormal(0, 0.8, self._country.devices), LEAST_SAMPLES)
        first = np.concatenate([[0], np.cumsum(devices)])
        self._made: dict[str, dict[str, int]] = {
            zone: {f"synthetic-{u:03d}": int(samples[u]) for u in range(first[z], first[z + 1])}
            for zone, z in self._numbers.items()
        }
        self._zones, left_out = kept_zones(
            {zone: len(made) for zone, made in self._made.items()},
            {zone: sum(map(self._kept, made.values())) for zone, made in self._made.items()},
            zones,
        )
        self.notes: tuple[str, ...] = ("synthetic heart rates: made up, measured on nobody", *left_out)
        if options.share < 1:
            made = [count for zone in self._zones for count in self._made[zone].values()]
            kept = sum(map(self._kept, made))
            self.notes += (f"{kept} of {sum(made)} samples kept: share = {options.share}",)

    def zones(self) -> tuple[str, ...]:
        """The zones that are kept."""
        return self._zones

    def devices(self, zone: str) -> tuple[str, ...]:
        """The zone's devices, in order of their ids."""
        return tuple(self._of(zone))

    def data(self, zone: str, device: str) -> DeviceData:
        """What the device holds of the zone: made anew at each call, the same each time."""
        made = self._of(zone)
        if device not in made:
            raise DataError(f"zone {zone!r} has no device {device!r}: it has {some(tuple(made))}")
        z, options = self._numbers[zone], self._options
        # The device's number in its zone: its workouts do not hang on how many devices other zones have.
        random = self._random("device", z, tuple(made).index(device))
        x, context, y = workouts(random, self._traits[z], made[device], options.length)
        kept = self._kept(made[device])
        samples = Samples(
            x[:kept].astype(np.float32),
            y[:kept].astype(np.float32),
            context[:kept].astype(np.float32) if options.context else None,
        )
        return split(zone, device, samples)

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        """Who is next to whom, by the middles of the regions."""
        middles = np.array([self._country.zones[zone] for zone in self._zones])
        return delaunay_neighbours(self._zones, middles[:, 0], middles[:, 1])

    def places(self) -> Mapping[str, Rings]:
        """The middles of the regions."""
        return points({zone: self._country.zones[zone] for zone in self._zones})

    def _kept(self, made: int) -> int:
        return max(LEAST_SAMPLES, round(self._options.share * made))

    def _of(self, zone: str) -> Mapping[str, int]:
        if zone not in self._made:
            raise DataError(f"zone {zone!r} has no data: there are {some(tuple(self._made))}")
        return self._made[zone]

    def _random(self, purpose: str, *place: int) -> np.random.Generator:
        purpose = f"synthetic heart rate {self._options.country} {purpose}"
        return np.random.Generator(raw_stream(self._seed, purpose, *place))


def open_source(options: Options, zones: Zones, seed: int) -> SyntheticHeartRate:
    """The country's zones."""
    refuse_zoning(zones, "synthetic_heart_rate", "regions of its country")
    return SyntheticHeartRate(options, zones, seed)


def apportion(total: int, weights: npt.NDArray[np.float64], least: int) -> npt.NDArray[np.int64]:
    """Whole parts of `total` by weight, each at least `least`; what rounding leaves goes to the largest remainders."""
    exact = (total - least * len(weights)) * weights / weights.sum()
    parts = np.floor(exact).astype(np.int64)
    short = total - least * len(weights) - int(parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:short]] += 1
    whole: npt.NDArray[np.int64] = parts + least
    return whole
