"""The data of all zones, loaded once a process: what a run's source yields, scaled and checked for its task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from device.batch import Batch, batch_of
from device.learner import Learner
from device.local_data import device_data
from device.samples import DeviceData, Samples, joined
from device.sources.source import Source, known_places, open_source
from device.stack import Stack
from device.tasks.task import Task, load_task
from sgfusion.errors import DataError
from sgfusion.runfile import RunFile
from sgfusion.runfile_geography import Rings
from simulator.geography import lonely_note, shortened

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ZoneData:
    """One zone's devices, in order of their ids, and their samples as batches."""

    name: str
    devices: tuple[DeviceData, ...]

    def __len__(self) -> int:
        """Samples of all devices."""
        return sum(map(len, self.devices))

    @cached_property
    def train(self) -> Batch:
        """All training samples as one batch; every device counts the same."""
        return batch_of(*(device.train for device in self.devices))

    @cached_property
    def device_batches(self) -> tuple[Batch, ...]:
        """Each device's training samples."""
        return tuple(batch_of(device.train) for device in self.devices)

    @cached_property
    def halves(self) -> tuple["ZoneData", "ZoneData"]:
        """Every other device, and the rest."""
        return ZoneData(self.name, self.devices[::2]), ZoneData(self.name, self.devices[1::2])

    @cached_property
    def validation(self) -> Batch | None:
        """The samples that models are chosen by; None if no device has any."""
        return _held_out([device.validation for device in self.devices])

    @cached_property
    def test(self) -> Batch | None:
        """The samples that models are judged by; None if no device has any."""
        return _held_out([device.test for device in self.devices])

    @cached_property
    def device_validations(self) -> tuple[Batch | None, ...]:
        """Each device's validation samples."""
        return tuple(_held_out([device.validation]) for device in self.devices)

    @cached_property
    def device_tests(self) -> tuple[Batch | None, ...]:
        """Each device's test samples."""
        return tuple(_held_out([device.test]) for device in self.devices)


@dataclass(frozen=True, eq=False)
class AllData:
    """The zones of a run, their task, and who is next to whom."""

    task: Task
    zones: tuple[ZoneData, ...]
    neighbours: tuple[tuple[int, ...], ...] | None
    """None: the source knows no geography."""
    notes: tuple[str, ...]
    learner: Learner = field(repr=False)
    theta: Vector = field(repr=False)
    """`θ⁰`, the same for every zone and every method."""
    synthetic: bool = False
    """The source makes its data up."""
    places: Mapping[str, Rings] = field(default_factory=dict)
    """Where zones lie, as the source knows it."""

    @cached_property
    def zone_stack(self) -> Stack | None:
        """Every zone's training samples as a row; None for a task whose model takes no stacks."""
        return Stack.of([zone.train for zone in self.zones]) if self.task.stackable else None

    @cached_property
    def device_stack(self) -> Stack | None:
        """Every device's training samples as a row, in the order of zones and of ids within them."""
        rows = [batch for zone in self.zones for batch in zone.device_batches]
        return Stack.of(rows) if self.task.stackable else None

    @property
    def names(self) -> tuple[str, ...]:
        """The zones' names, in the order of their numbers."""
        return tuple(zone.name for zone in self.zones)


def load_data(run: RunFile) -> AllData:
    """Open the source, take every device's samples, check and scale them for the task."""
    task, source = load_task(run), open_source(run)
    zones = tuple(
        ZoneData(name, tuple(device_data(task, source, name, device) for device in source.devices(name)))
        for name in source.zones()
    )
    for zone in zones:
        if not zone.devices:
            raise DataError(f"zone {zone.name!r} has no devices: leave it out of zones.names")
    untested = [zone.name for zone in zones if zone.test is None]
    notes = (f"no test samples in zones {shortened(untested)}: they train, and are not compared",) if untested else ()
    neighbours, lonely = _neighbours(run.zones.adjacent, source, zones)
    learner = Learner(task, zones[0].devices[0].train)
    notes = (*source.notes, *notes, *lonely)
    made_up = bool(getattr(source, "synthetic", False))
    places = known_places(source)
    return AllData(task, zones, neighbours, notes, learner, learner.initial(run.seed), made_up, places)


def _neighbours(
    adjacent: Mapping[str, Sequence[str]] | None, source: Source, zones: Sequence[ZoneData]
) -> tuple[tuple[tuple[int, ...], ...] | None, tuple[str, ...]]:
    """By number, and a note on zones that have none. None if there is no geography: not even one has a neighbour.

    As the run says by hand, or else as the source finds out.
    """
    near = source.neighbours() if adjacent is None else adjacent
    number = {zone.name: z for z, zone in enumerate(zones)}
    for name in sorted((adjacent or {}).keys() - number.keys()):
        raise DataError(
            f"zones.adjacent names {name!r}, which is no zone of this run: leave it out, with all its lists"
        )
    found = tuple(tuple(sorted(number[other] for other in near.get(zone.name, ()))) for zone in zones)
    if not near or (len(zones) > 1 and not any(found)):
        return None, ()
    lonely = [zone.name for zone, others in zip(zones, found, strict=True) if not others and len(zones) > 1]
    return found, (lonely_note(lonely, len(zones)),) if lonely else ()


def _held_out(parts: Sequence[Samples]) -> Batch | None:
    whole = joined(parts)
    return batch_of(whole) if len(whole) else None
