"""Heart rates of workouts, from your own copy of FitRec's endomondoHR file (method 10); `.gz` is read as it is.

A device is a user, a zone the admin-1 region of a workout's start, and workouts are in order of their starts. Features
of each step: distance in km, altitude in m, elapsed time in minutes. Context: those of the user's previous workout in
time, wherever it was, the hours from its start to this one's at every step, and its heart rate in bpm; all zeros for a
user's first. The label is the heart rate in bpm at each step. All in these units: the task scales them.

Zones are "Oslo" when a country is chosen, else "NO-Oslo", as regions of two countries may have one name. Users' ids are
text, so user 10 comes before user 9.
"""

import gzip
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field

from device.samples import Samples
from device.sources.grouped import GroupedSource, Names
from device.sources.missing import no_such_file
from device.sources.regions import country_code, regions
from device.sources.sieve import Sieve
from device.sources.workouts import Workouts, read_workouts, start_of
from device.sources.zoning import place
from sgfusion.errors import DataError
from sgfusion.runfile import Section, Zones

LONGEST = 1 << 24
"""Bytes of a line, of which 500 points take 40 thousand: a file without lines does not fill the memory."""


class Options(Section):
    """The file; a country and a sport to keep to; how many points of a workout to keep; whether to give the context.

    The previous workout may be one in another country, but not one of another sport than is asked for.
    """

    path: Annotated[str, Field(min_length=1)]
    country: Annotated[str, AfterValidator(country_code)] | None = None
    sport: Annotated[str, Field(min_length=1)] | None = None
    length: Annotated[int, Field(ge=2)] = 100
    context: bool = True


def open_source(options: Options, zones: Zones, _seed: int) -> GroupedSource:
    """The file's workouts. A bad line is left out and counted by its fault; no usable workout at all is an error."""
    faults: Counter[str] = Counter()
    users = None if options.country is None else _users_in(options.path, options.country)
    found = read_workouts(_lines(options.path), options.length, faults, sport=options.sport, users=users)
    lines = len(found) + faults.total()
    workouts = found.at(_first_at_each_start(found))
    faults["another one of its user at the same time"] += len(found) - len(workouts)
    context = _previous_workouts(workouts) if options.context else None
    kept = np.ones(len(workouts), np.bool_)
    regional: Names | None = None
    if zones.by == "column" or options.country is not None:
        country, region = regions(workouts.latitude, workouts.longitude)
        kept = kept if options.country is None else country == options.country
        regional = _zone_names(country, region, alone=options.country is not None)[kept]
    faults[f"starts outside {options.country}"] += len(workouts) - int(kept.sum())
    notes = [f"{count} of {lines} workouts left out: {fault}" for fault, count in sorted(faults.items()) if count]
    if not kept.any():
        raise DataError(f"{options.path} has no usable workout: {'; '.join(notes) or 'it is empty'}")
    workouts, context = workouts.at(kept), None if context is None else context[kept]
    sieve = Sieve(len(workouts))
    zone, neighbours, places = place(zones, regional, workouts.latitude, workouts.longitude, sieve)
    sieve.check_some_left(options.path)
    kept = sieve.kept
    user = np.array(workouts.users, np.str_)[workouts.user]
    return GroupedSource(
        Samples(workouts.series[kept, :, :3], workouts.series[kept, :, 3], None if context is None else context[kept]),
        zone[kept],
        user[kept],
        workouts.start[kept],
        zones,
        scaled=False,
        neighbours=neighbours,
        places=places,
        notes=(*notes, *sieve.notes),
    )


def _lines(path: str) -> Iterator[bytes]:
    """The file's lines but blank ones, cut off where they are too long to be a workout."""
    try:
        with gzip.open(path) if Path(path).suffix.lower() == ".gz" else Path(path).open("rb") as file:
            whole = True  # whether the next piece starts a line
            while piece := file.readline(LONGEST):
                if whole and piece.strip():
                    yield piece
                whole = piece.endswith(b"\n")
    except FileNotFoundError as error:
        raise DataError(f"{no_such_file(path)}. FitRec's terms leave it to you to get it") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"data.path = {path!r} cannot be read: {error}") from error


def _users_in(path: str, country: str) -> frozenset[str]:
    """The users with a workout that starts in the country.

    A first pass over the file, without reading lists: reading all of them, of which one country's are a few in a
    hundred, takes half an hour.
    """
    numbers: dict[str, int] = {}
    user, places = array("q"), array("d")
    for line in _lines(path):
        start = start_of(line)
        if start is not None:
            user.append(numbers.setdefault(start.user, len(numbers)))
            places.extend((start.latitude, start.longitude))
    latitude, longitude = np.array(places, np.float64).reshape(-1, 2).T
    countries, _ = regions(latitude, longitude)
    inside = np.array(user, np.intp)[countries == country]
    if len(user) and not len(inside):
        most = ", ".join(f"{code} ({count})" for code, count in Counter(countries.tolist()).most_common(10))
        raise DataError(f"no workout of {path} starts in {country}: they start in {most}")
    names = tuple(numbers)
    return frozenset(names[number] for number in np.unique(inside).tolist())


def _first_at_each_start(workouts: Workouts) -> npt.NDArray[np.bool_]:
    """Nobody starts twice in one second: later lines that say so are copies, which would leak into the test split."""
    rows = np.lexsort((np.arange(len(workouts)), workouts.start, workouts.user))
    user, start = workouts.user[rows], workouts.start[rows]
    first = np.ones(len(workouts), np.bool_)
    first[rows[1:]] = (user[1:] != user[:-1]) | (start[1:] != start[:-1])
    return first


def _previous_workouts(workouts: Workouts) -> npt.NDArray[np.float32]:
    """The context `[N, T, 5]`: what the user did before, zeros if nothing."""
    rows = np.lexsort((workouts.start, workouts.user))
    follows = workouts.user[rows[1:]] == workouts.user[rows[:-1]]
    later, earlier = rows[1:][follows], rows[:-1][follows]
    context = np.zeros((*workouts.series.shape[:2], 5), np.float32)
    context[later, :, :3] = workouts.series[earlier, :, :3]
    context[later, :, 3] = ((workouts.start[later] - workouts.start[earlier]) / 3600)[:, None]
    context[later, :, 4] = workouts.series[earlier, :, 3]
    return context


def _zone_names(country: Names, region: Names, *, alone: bool) -> Names:
    """The regions' names, with the country's unless it is the only one; the country's where a region has none."""
    with_country = np.char.strip(np.char.add(np.char.add(country, " "), region))
    return np.where((region != "") & alone, region, with_country)
