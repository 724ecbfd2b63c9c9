"""Samples from the rows of a Parquet or CSV file, by the names of its columns.

A row is one sample of one device. Text is taken as it stands, so device ids `007` and `7` are two devices, and 10 comes
before 9 in the order of devices, which is that of text.
"""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from device.samples import Samples
from device.sources.columns import Columns
from device.sources.grouped import GroupedSource
from device.sources.sieve import Sieve, as_float32
from device.sources.zoning import place
from sgfusion.errors import DataError
from sgfusion.runfile import Positive, Section, Zones

Column = Annotated[str, Field(min_length=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Constants = Annotated[tuple[Finite, Positive], Field(strict=False)]
"""A public mean and deviation: `(value - mean) / deviation` is what the model sees."""


class Options(Section):
    """The file and its columns. `zone` counts with `zones.by = "column"`, `latitude` and `longitude` with the others.

    `time` orders a device's samples; without it they come as they stand in the file. Features in `scale` are scaled by
    its public constants, others are used as they are.
    """

    path: Column
    device: Column
    label: Column
    features: Annotated[tuple[Column, ...], Field(strict=False, min_length=1)]
    zone: Column | None = None
    latitude: Column | None = None
    longitude: Column | None = None
    time: Column | None = None
    scale: dict[str, Constants] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fitting_keys(self) -> Self:
        if (self.latitude is None) != (self.longitude is None):
            raise ValueError("latitude and longitude go together: give both columns or none")
        for name in self.features:
            if self.features.count(name) > 1:
                raise ValueError(f"features has {name!r} twice")
        if self.label in self.features:
            raise ValueError(f"label = {self.label!r} is among the features: a model would read its answer there")
        return self


def open_source(options: Options, zones: Zones, _seed: int) -> GroupedSource:
    """The table's rows as samples; those with something missing are left out and counted."""
    if zones.by == "column" and options.zone is None:
        raise DataError(
            "zones.by = 'column' needs a zone for each sample: name its column with data.zone, or give places and"
            " zones.by = 'h3'"
        )
    table = Columns(options.path, _columns(options))
    for name in options.scale:  # after the columns were looked for: the file tells which of two spellings is right
        if name not in options.features:
            raise DataError(f"data.scale has {name!r}, which is not among data.features: {', '.join(options.features)}")
    sieve = Sieve(table.rows, table.where)
    device = table.text(options.device)
    sieve.drop(device == "", f"no device in {options.device!r}")
    y = as_float32(table.numbers(options.label, "label"))
    sieve.drop(~np.isfinite(y), f"no number in {options.label!r}")
    x = np.empty((table.rows, len(options.features)), np.float32)
    for number, name in enumerate(options.features):
        mean, deviation = options.scale.get(name, (0.0, 1.0))
        x[:, number] = as_float32((table.numbers(name, "feature") - mean) / deviation)
        sieve.drop(~np.isfinite(x[:, number]), f"no number in {name!r}")
    order = None
    if options.time is not None:
        order, missing = table.times(options.time)
        sieve.drop(missing, f"no time in {options.time!r}")
    column = None if options.zone is None else table.text(options.zone)
    latitude = None if options.latitude is None else table.numbers(options.latitude, "latitude")
    longitude = None if options.longitude is None else table.numbers(options.longitude, "longitude")
    zone, neighbours, places = place(zones, column, latitude, longitude, sieve)
    sieve.check_some_left(options.path)
    kept = sieve.kept
    samples = Samples(x[kept], y[kept])
    when = None if order is None else order[kept]
    return GroupedSource(
        samples,
        zone[kept],
        device[kept],
        when,
        zones,
        scaled=True,
        neighbours=neighbours,
        places=places,
        notes=sieve.notes,
    )


def _columns(options: Options) -> dict[str, str]:
    """Each column that is read, and the key that names it."""
    roles = ("device", "label", "zone", "latitude", "longitude", "time")
    named = {getattr(options, role): f"data.{role}" for role in roles if getattr(options, role) is not None}
    return {**dict.fromkeys(options.scale, "data.scale"), **dict.fromkeys(options.features, "data.features"), **named}
