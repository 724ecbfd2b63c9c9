"""Which keys may change without making another run of it: a service that comes back goes on with its progress."""

import reprlib
from collections.abc import Iterator, Mapping
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


def differing_alone(run: RunFile, other: RunFile) -> list[str]:
    """The keys by which zones that train alone come to something else in another run, each with both values."""
    one, two = dict(_alone_keys(run)), dict(_alone_keys(other))
    if not (run.zones.names and other.zones.names):  # one leaves it to the data, which is the same
        two["zones.names"] = one["zones.names"]
    pairs = {key: (one.get(key), two.get(key)) for key in sorted(one.keys() | two.keys())}
    said = {key: tuple(map(reprlib.repr, pair)) for key, pair in pairs.items() if pair[0] != pair[1]}
    return [f"{key} is {there} there and {here} here" for key, (there, here) in said.items()]


def _alone_keys(run: RunFile) -> Iterator[tuple[str, Any]]:
    document = run.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(ALONE))
    for section, keys in document.items():
        for key, value in keys.items() if isinstance(keys, Mapping) else [("", keys)]:
            name = f"{section}.{key}".rstrip(".")
            if name not in DRAWING:
                # A folder may have come from another machine, where the file lay elsewhere.
                yield name, PurePath(value).name if (section, key) in PATHS else value
