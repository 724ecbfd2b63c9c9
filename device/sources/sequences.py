"""Samples that are sequences, from the arrays of an `.npz` file.

`x[N,T,F]`, `y[N,T]` or `y[N]`, `device[N]`, and `zone[N]` or places as `lat[N]` and `lon[N]` with zones by H3 cells or
polygons; optional `context[N,T,C]`, and `order[N]` (numbers, `datetime64`, or times in ISO form) by which a device's
samples are ordered. Devices and zones are text or whole numbers; numbers become text, so device 10 comes before 9. For
the task `heart_rate`, F = 3 (distance, altitude, elapsed) and C = 5 (those of the previous workout, since-last, its
heart rate), already scaled, or with the public constants of `[data.scale]`, or with `scaled = false` in the task's own
units (km, m, minutes; hours; bpm), for the task to scale.
"""

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from device.samples import Array, Samples
from device.sources.grouped import GroupedSource
from device.sources.npz import Npz
from device.sources.sieve import Sieve, as_float32
from device.sources.suspicions import unscaled
from device.sources.table import Constants
from device.sources.zoning import place
from sgfusion.errors import DataError
from sgfusion.runfile import Section, Zones

SHAPES = {
    "x": (("N", "T", "F"),),
    "y": (("N", "T"), ("N",)),
    "context": (("N", "T", "C"),),
    **dict.fromkeys(("device", "zone", "order", "lat", "lon"), (("N",),)),
}

PLACES_WILL_DO = """. Or let lat and lon say the zones, with zones.by = "h3", or "polygons" and a GeoJSON file"""


class Scale(Section):
    """Public constants, `[mean, deviation]` for each feature of `x` and of `context`; an empty list leaves it as is."""

    x: Annotated[tuple[Constants, ...], Field(strict=False)] = ()
    context: Annotated[tuple[Constants, ...], Field(strict=False)] = ()


class Options(Section):
    """The file, and what scales it: nothing (`scaled`), constants of your own (`scale`), or the task's (neither)."""

    path: Annotated[str, Field(min_length=1)]
    scaled: bool = True
    scale: Scale = Scale()

    @model_validator(mode="after")
    def _once(self) -> Self:
        if not self.scaled and (self.scale.x or self.scale.context):
            raise ValueError("scaled = false leaves it to the task's own constants: leave out scale")
        return self


def open_source(options: Options, zones: Zones, _seed: int) -> GroupedSource:
    """The file's samples; those with something missing are left out and counted."""
    file = Npz(options.path, SHAPES, ("x", "y", "device"))
    if zones.by == "column":
        file.require("zone", PLACES_WILL_DO if "lat" in file and "lon" in file else "")
    else:
        file.require("lat")
        file.require("lon")
    if ("lat" in file) != ("lon" in file):
        file.require("lat")
        file.require("lon")
    sieve = Sieve(len(file))
    x = _scaled(file, "x", options.scale.x)
    y = _scaled(file, "y", ())
    context = _scaled(file, "context", options.scale.context) if "context" in file or options.scale.context else None
    for key, array in (("x", x), ("context", context), ("y", y)):
        if array is not None:
            sieve.drop(np.array([not np.isfinite(sample).all() for sample in array]), f"NaN in {key}")
    device = file.text("device")
    sieve.drop(device == "", "no device")
    order = None
    if "order" in file:
        order, missing = file.order("order")
        sieve.drop(missing, "no order")
    column = file.text("zone") if "zone" in file else None
    latitude, longitude = (file.numbers(key).astype(np.float64) if key in file else None for key in ("lat", "lon"))
    zone, neighbours, places = place(zones, column, latitude, longitude, sieve)
    sieve.check_some_left(options.path)
    kept = sieve.kept
    if file.unused:  # perhaps a key with a slip in its name
        sieve.notes.append(f"not read: {', '.join(file.unused)} of the file")
    for key, array, constants in (("x", x, options.scale.x), ("context", context, options.scale.context)):
        if array is not None and options.scaled and not constants:
            sieve.notes.extend(unscaled(key, array[kept]))
    return GroupedSource(
        Samples(x[kept], y[kept], None if context is None else context[kept]),
        zone[kept],
        device[kept],
        None if order is None else order[kept],
        zones,
        scaled=options.scaled,
        neighbours=neighbours,
        places=places,
        notes=sieve.notes,
    )


def _scaled(file: Npz, key: str, constants: Sequence[tuple[float, float]]) -> Array:
    file.require(key)
    array = file.numbers(key)
    if not constants:
        return as_float32(array)
    if len(constants) != array.shape[-1]:
        raise DataError(
            f"data.scale.{key} has {len(constants)} pairs of constants and {key} has shape {array.shape}:"
            f" give {array.shape[-1]}, one for each feature"
        )
    means, deviations = np.array(constants, np.float64).T
    return as_float32((array - means) / deviations)
