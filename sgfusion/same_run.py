"""Which keys may change without making another run of it: a service that comes back goes on with its progress."""

import reprlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from sgfusion.runfile import Deadlines, Quorum, RunFile
from sgfusion.runfile_document import PATHS

ALONE = ("seed", "task", "data", "zones", "update", "optimiser")
"""What a zone that trains alone hangs on: its samples, its model, its steps. Its rounds may be more or fewer."""
DRAWING = ("zones.neighbours", "zones.adjacent", "zones.places")
"""What of it does not: who is next to whom, and where."""


def without_places(run: RunFile) -> RunFile:
    """The run without its zones' places: they say how a map looks, and nothing is computed from them."""
    return run.model_copy(update={"zones": run.zones.model_copy(update={"places": None})})


def training_of(run: RunFile) -> RunFile:
    """The run as it trains: nor does it matter who is waited for, and how long."""
    return without_places(run).model_copy(update={"quorum": Quorum(), "deadlines": Deadlines()})


def differing_training(run: RunFile, other: RunFile) -> list[str]:
    """The keys of a run by which another one trains differently, each as `optimiser.rate = 3.0`."""
    one, two = (dict(_keys(training_of(each), tuple(RunFile.model_fields))) for each in (run, other))
    left = {key for key in ("zones.names", "zones.adjacent") if not (one.get(key) and two.get(key))}  # to the data
    said = [key for key in sorted((one.keys() | two.keys()) - left) if one.get(key) != two.get(key)]
    return [f"{key} = {reprlib.repr(one[key])}" if key in one else f"{key} not set" for key in said]


def differing_alone(run: RunFile, other: RunFile) -> list[str]:
    """The keys by which zones that train alone come to something else in another run, each with both values."""
    one, two = dict(_keys(run, ALONE)), dict(_keys(other, ALONE))
    if not (run.zones.names and other.zones.names):  # one leaves it to the data, which is the same
        two["zones.names"] = one["zones.names"]
    pairs = {key: (one.get(key), two.get(key)) for key in sorted(one.keys() | two.keys())}
    said = {key: tuple(map(reprlib.repr, pair)) for key, pair in pairs.items() if pair[0] != pair[1]}
    return [f"{key} is {there} there and {here} here" for key, (there, here) in said.items()]


def _keys(run: RunFile, sections: Collection[str]) -> Iterator[tuple[str, Any]]:
    document = run.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(sections))
    for section, keys in document.items():
        for key, value in keys.items() if isinstance(keys, Mapping) else [("", keys)]:
            name = f"{section}.{key}".rstrip(".")
            if sections != ALONE or name not in DRAWING:
                # A folder may have come from another machine, where the file lay elsewhere.
                yield name, PurePath(value).name if (section, key) in PATHS else value
