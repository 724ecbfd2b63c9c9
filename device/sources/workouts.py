"""Workouts from lines of a FitRec file (method 10): one Python dict literal each, read as such and never run.

A bad line is counted by its fault and passed over: files of that size have some.
"""

import ast
import re
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from device.sources.neighbours import Floats, on_globe

LISTS = ("timestamp", "latitude", "longitude", "altitude", "heart_rate")
SERIES = 4
"""Distance in km, altitude in m, elapsed time in minutes, heart rate in bpm."""
EARTH = 6371.0088
"""The Earth's mean radius in km."""
ALTITUDES, MOST_BEATS, MOST_HOURS, MOST_KM = (-1000, 10_000), 300, 72, 1000
"""Beyond these, an instrument failed or a clock jumped."""

_USER = re.compile(rb"""['"]\s*:\s*(?:(\d+)|['"]([^'"]+)['"])\s*[,}]""")
_SPORT = re.compile(rb"""['"]\s*:\s*['"]([^'"]*)['"]""")
_FIRST = re.compile(rb"""['"]\s*:\s*\[\s*([-+.\deE]+)""")


class BadLineError(Exception):
    """A line that gives no workout; the message is its fault."""


class Start(NamedTuple):
    """Whose a workout is, and where it starts."""

    user: str
    latitude: float
    longitude: float


class Workout(NamedTuple):
    """One workout, thinned to evenly spaced points: `series` is `[T, 4]`."""

    user: str
    sport: object
    start: float
    latitude: float
    longitude: float
    series: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Workouts:
    """Workouts in the order of the file: their users' numbers in `users`, start in seconds, and `series[N, T, 4]`."""

    users: tuple[str, ...]
    user: npt.NDArray[np.intp]
    start: Floats
    latitude: Floats
    longitude: Floats
    series: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.user)

    def at(self, rows: npt.NDArray[np.bool_]) -> "Workouts":
        """Those of the rows; `self` if that is all."""
        if rows.all():
            return self
        place = self.start[rows], self.latitude[rows], self.longitude[rows]
        return Workouts(self.users, self.user[rows], *place, self.series[rows])


def start_of(line: bytes) -> Start | None:
    """The workout's start, found without reading the lists if the line looks as it should: far faster. None: bad."""
    user, latitude, longitude = _user(line), _first("latitude", line), _first("longitude", line)
    if user is not None and abs(latitude) <= 90 and abs(longitude) <= 180:
        return Start(user, latitude, longitude)
    try:
        workout = parse_workout(line, 2)
    except BadLineError:
        return None
    return Start(workout.user, workout.latitude, workout.longitude)


def read_workouts(
    lines: Iterable[bytes], length: int, faults: Counter[str], *, sport: str | None, users: frozenset[str] | None
) -> Workouts:
    """The usable workouts of the sport and of the users, all if None; the others are counted in `faults`.

    Memory is that of the numbers kept: no line, and no object of one, outlives its turn.
    """
    numbers: dict[str, int] = {}
    user, places, series = array("q"), array("d"), array("f")
    for line in lines:
        try:
            workout = _wanted(line, length, sport, users)
        except BadLineError as error:
            faults[str(error)] += 1
            continue
        user.append(numbers.setdefault(workout.user, len(numbers)))
        places.extend((workout.start, workout.latitude, workout.longitude))
        series.frombytes(workout.series.tobytes())
    start, latitude, longitude = np.asarray(places, np.float64).reshape(-1, 3).T
    found = np.asarray(series, np.float32).reshape(-1, length, SERIES)
    return Workouts(tuple(numbers), np.asarray(user, np.intp), start, latitude, longitude, found)


def _wanted(line: bytes, length: int, sport: str | None, users: frozenset[str] | None) -> Workout:
    elsewhere, another = "a user with none in the country", f"sport is not {sport!r}"
    # What is plain at first sight need not be read: that takes 9 ms a line, half an hour for the whole file.
    if users is not None and (user := _user(line)) is not None and user not in users:
        raise BadLineError(elsewhere)
    if sport is not None and (match := _glance("sport", _SPORT, line)) and match[1] != sport.encode():
        raise BadLineError(another)
    workout = parse_workout(line, length)
    if users is not None and workout.user not in users:
        raise BadLineError(elsewhere)
    if sport is not None and workout.sport != sport:
        raise BadLineError(another)
    return workout


def parse_workout(line: bytes, length: int) -> Workout:
    """The workout in a line, `length` of its points evenly spaced over them (some twice if it has fewer)."""
    record = _literal(line)
    user = record.get("userId")
    if not isinstance(user, int | str) or isinstance(user, bool) or user == "":
        raise BadLineError("no userId")
    time, latitude, longitude, altitude, beats = (_list(record, key) for key in LISTS)
    if len({len(time), len(latitude), len(longitude), len(altitude), len(beats)}) > 1:
        raise BadLineError("lists of different lengths")
    if len(time) < 2:
        raise BadLineError("fewer than 2 points")
    with np.errstate(all="ignore"):  # what is not finite is found out at once
        distance, elapsed = _distance(latitude, longitude), (time - time[0]) / 60
        rising = np.append(np.diff(time) >= 0, elapsed[-1] > 0)
    for fine, fault in (
        (np.isfinite(time) & np.isfinite(altitude) & np.isfinite(beats), "NaN or infinite numbers"),
        (on_globe(latitude, longitude), "latitude or longitude not in degrees"),
        ((beats > 0) & (beats <= MOST_BEATS), f"heart rate not in 1 to {MOST_BEATS}"),
        (
            (altitude >= ALTITUDES[0]) & (altitude <= ALTITUDES[1]),
            f"altitude not in {ALTITUDES[0]} to {ALTITUDES[1]} m",
        ),
        (rising, "timestamps that do not rise"),
        (elapsed <= MOST_HOURS * 60, f"longer than {MOST_HOURS} hours"),
        (distance <= MOST_KM, f"longer than {MOST_KM} km"),
    ):
        if not fine.all():
            raise BadLineError(fault)
    points = np.rint(np.linspace(0, len(time) - 1, length)).astype(np.intp)
    series = np.column_stack([distance, altitude, elapsed, beats])[points].astype(np.float32)
    start = float(time[0]), float(latitude[0]), float(longitude[0])
    return Workout(str(user), record.get("sport"), *start, series)


def _literal(line: bytes) -> Mapping[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's parser warns of odd text, of which nothing is kept
            record = ast.literal_eval(line.decode("utf-8").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BadLineError("not a dict literal") from None
    if not isinstance(record, dict):
        raise BadLineError("not a dict literal")
    return record


def _list(record: Mapping[str, Any], key: str) -> Floats:
    values = record.get(key)
    if values is None:
        raise BadLineError(f"no {key}")
    try:
        numbers = np.asarray(values)
    except (ValueError, OverflowError):  # lists within the list
        raise BadLineError(f"{key} is not a list of numbers") from None
    if not isinstance(values, list | tuple) or numbers.ndim != 1 or (len(values) and numbers.dtype.kind not in "iuf"):
        raise BadLineError(f"{key} is not a list of numbers")
    return numbers.astype(np.float64)


def _distance(latitude: Floats, longitude: Floats) -> Floats:
    """Kilometres along the way up to each point, by the haversine formula."""
    phi, lam = np.radians(latitude), np.radians(longitude)
    chord = np.sin(np.diff(phi) / 2) ** 2 + np.cos(phi[1:]) * np.cos(phi[:-1]) * np.sin(np.diff(lam) / 2) ** 2
    steps = 2 * EARTH * np.arcsin(np.sqrt(np.clip(chord, 0, 1)))
    return np.concatenate([[0.0], np.cumsum(steps)])


def _glance(key: str, value: re.Pattern[bytes], line: bytes) -> re.Match[bytes] | None:
    """What stands behind the key; None if that is not plain to see. Found by its letters: patterns search slowly."""
    at = line.find(key.encode())
    return value.match(line, at + len(key)) if at >= 0 else None


def _user(line: bytes) -> str | None:
    match = _glance("userId", _USER, line)
    return (match[1] or match[2]).decode("utf-8", "replace") if match else None


def _first(key: str, line: bytes) -> float:
    """The first number of a list, NaN if none is plain to see."""
    match = _glance(key, _FIRST, line)
    try:
        return float(match[1]) if match else np.nan
    except ValueError:
        return np.nan
