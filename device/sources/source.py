"""What a data source is, and how a run file names one.

A source is a module of this package, or one of yours as `module:name`. It has a pydantic `Options(Section)` for its
keys of `[data]` and a function `open_source(options, zones, seed) -> Source`; yours names that function, and has its
options' type as the attribute `options`.
"""

from collections.abc import Mapping
from typing import Protocol

from device.named import Kind
from device.samples import DeviceData
from device.sources.grouped import GroupedSource
from device.sources.kept_zones import ZonesHere
from device.sources.suspicions import labels_outside
from device.tasks.task import load_task
from sgfusion.errors import DataError
from sgfusion.runfile import RunFile
from sgfusion.runfile_geography import Rings

SOURCES = ("fitrec", "flights", "generated_zones", "sequences", "synthetic_heart_rate", "table")
_KIND = Kind("data.source", "device.sources", SOURCES, "open_source", DataError)


class Source(Protocol):
    """Samples by zone and device, deterministic; each device's are split in order of time.

    A source that makes its data up has `synthetic = True` besides, and every table and figure says so. One that knows
    where its zones lie has a method `places` besides, `() -> Mapping[str, Rings]`, for a map: see `known_places`.
    """

    scaled: bool
    """False: in the units of the task, whose public constants then scale them. True: scaled as they should be."""
    notes: tuple[str, ...]
    """What was left out and why, in words for people: "12 of 400 samples left out: NaN in altitude"."""

    def zones(self) -> tuple[str, ...]:
        """The zones: those the run names, in its order, or all that have enough data, in order of their names."""

    def devices(self, zone: str) -> tuple[str, ...]:
        """The zone's devices, in order of their ids."""

    def data(self, zone: str, device: str) -> DeviceData:
        """What the device holds of the zone."""

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        """The geographic neighbours of each zone, symmetric; empty if the source knows no geography."""


def open_source(run: RunFile, *, here: bool = False) -> Source:
    """The source that the run file names, with its options checked. `here`: what this host has of it is enough."""
    opener, options = _KIND.find(run.data.source)
    zones = ZonesHere.model_construct(**dict(run.zones)) if here else run.zones  # which was checked when it was read
    source: Source = opener(run.data.options_as("data", options), zones, run.seed)
    if isinstance(source, GroupedSource):  # what is read from files; a source cannot know the task's bins
        source.notes += labels_outside(source.labels, load_task(run).edges)
    return source


def known_places(source: Source) -> dict[str, Rings]:
    """Where the source's zones lie: outlines or points, of all of them, of some, or of none."""
    found: Mapping[str, Rings] = getattr(source, "places", dict)()
    return {zone: found[zone] for zone in source.zones() if zone in found}


def check_options(run: RunFile) -> None:
    """Refuse a run whose source is not there or does not have the keys that it gives; nothing is opened."""
    _, options = _KIND.find(run.data.source)
    run.data.options_as("data", options)
