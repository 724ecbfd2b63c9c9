"""Zones made up for demonstrations and tests: each is of a hidden kind, and zones of one kind are alike.

They are alike in terrain and law. The terrain is where a zone's features `x` lie, and shifts its labels; the law is
`y = ⟨w_zone, x⟩ + noise`, or with `classes` the class of the highest of so many such scores. All zones share most of
the law, zones of a kind more of it. What a device holds is a pure function of (seed, zone number, device number), where
a zone's number is its place in `zones.names`. The zones' neighbours are made up too, as on a ring: they lie nowhere.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from device.samples import DeviceData, Samples
from device.sources.kept_zones import kept_zones, refuse_zoning, some
from sgfusion.errors import DataError
from sgfusion.runfile import Count, Positive, Section, Zones
from sgfusion.streams import raw_stream

Floats = npt.NDArray[np.float64]


class Options(Section):
    """The keys of `[data]` when `source = "generated_zones"`.

    Each device has `samples` to train on, and `validation` and `test` samples besides. `contrast` is how far the kinds'
    laws lie apart, `difference` how far those of the zones of one kind do.
    """

    devices: Count
    samples: Count
    features: Count
    kinds: Count
    contrast: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    difference: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    noise: Positive
    validation: Count = 10
    test: Count = 40
    classes: Annotated[int, Field(ge=2)] | None = None


class GeneratedZones:
    """The source: zone `z` is of kind `z mod kinds`, its devices are d0, d1 and so on."""

    scaled = True
    synthetic = True

    def __init__(self, options: Options, zones: Zones, seed: int) -> None:
        if not zones.names:
            raise DataError("zones.names is empty: generated_zones makes up a zone for each name, so name some")
        self._options, self._seed = options, seed
        self._samples = options.samples + options.validation + options.test
        devices = dict.fromkeys(zones.names, options.devices)
        samples = dict.fromkeys(zones.names, options.devices * self._samples)
        self._zones, self.notes = kept_zones(devices, samples, zones)
        self._numbers = {name: number for number, name in enumerate(self._zones)}
        # In order of ids, so d10 stands before d2, as wherever devices are put in order.
        self._devices = dict(sorted((f"d{number}", number) for number in range(options.devices)))

    def zones(self) -> tuple[str, ...]:
        """The zones that the run names."""
        return self._zones

    def devices(self, zone: str) -> tuple[str, ...]:
        """The zone's devices, in order of their ids."""
        self._number(zone)
        return tuple(self._devices)

    def data(self, zone: str, device: str) -> DeviceData:
        """What the device holds of the zone."""
        number, options = self._number(zone), self._options
        if device not in self._devices:
            raise DataError(f"zone {zone!r} has no device {device!r}: it has {some(self.devices(zone))}")
        common, laws = self._laws
        kind = number % options.kinds
        law = laws[kind] + options.difference * self._random("zone", number).normal(size=common.shape)
        random = self._random("device", number, self._devices[device])
        x = _terrain(common, kind, options.kinds) + random.normal(size=(self._samples, options.features))
        scores = x @ law.T + options.noise * random.normal(size=(self._samples, len(law)))
        y = scores[:, 0] if options.classes is None else scores.argmax(axis=1)
        all_samples = Samples(x.astype(np.float32), y.astype(np.float32))
        first, second = options.samples, options.samples + options.validation
        return DeviceData(
            zone,
            device,
            all_samples.part(0, first),
            all_samples.part(first, second),
            all_samples.part(second, self._samples),
        )

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        """The zones before and after each, on a ring: as good as any, where there is no geography."""
        count = len(self._zones)
        beside = {z: sorted({(z - 1) % count, (z + 1) % count} - {z}) for z in range(count)}
        return {name: tuple(self._zones[other] for other in beside[z]) for name, z in self._numbers.items()}

    @cached_property
    def _laws(self) -> tuple[Floats, Floats]:
        """The law that all zones share, `[scores, features]`, and that of each kind."""
        random = self._random("kinds")
        shape = (self._options.classes or 1, self._options.features)
        common = random.normal(size=shape)
        return common, common + self._options.contrast * random.normal(size=(self._options.kinds, *shape))

    def _number(self, zone: str) -> int:
        try:
            return self._numbers[zone]
        except KeyError:
            raise DataError(f"zone {zone!r} has no data: there are {some(self._zones)}") from None

    def _random(self, purpose: str, *place: int) -> np.random.Generator:
        return np.random.Generator(raw_stream(self._seed, f"generated {purpose}", *place))


def open_source(options: Options, zones: Zones, seed: int) -> GeneratedZones:
    """The zones that the run names."""
    refuse_zoning(zones, "generated_zones", "made up, one for each of zones.names", places=False)
    return GeneratedZones(options, zones, seed)


def _terrain(common: Floats, kind: int, kinds: int) -> Floats:
    """Where the kind's features lie.

    Kinds lie apart along the common law (of the first class, against the others), so their labels do too: that is what
    the method can see of them.
    """
    along = common[0] - (common.mean(axis=0) if len(common) > 1 else 0)
    place: float = np.linspace(-1.5, 1.5, kinds)[kind] if kinds > 1 else 0.0
    terrain: Floats = place * along / np.linalg.norm(along)
    return terrain
