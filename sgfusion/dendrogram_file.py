"""`dendrogram.json` of a results folder: the tree, the zones' names and their distances.

It holds all that a later run needs to share gradients in the same way without fitting again (`[hrg] from`).
"""

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgfusion.arrays import as_floats
from sgfusion.dendrogram import Dendrogram
from sgfusion.distance import checked_distances
from sgfusion.errors import DendrogramError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ZoneTree:
    """A dendrogram whose leaves have names and distances. Invariant: all three are of the same zones, in one order."""

    zones: tuple[str, ...]
    dendrogram: Dendrogram
    distances: Floats

    def __post_init__(self) -> None:
        distances = checked_distances(self.distances).copy()
        distances.flags.writeable = False
        object.__setattr__(self, "distances", distances)
        object.__setattr__(self, "zones", tuple(self.zones))
        if len(set(self.zones)) != len(self.zones):
            twice = next(name for name in self.zones if self.zones.count(name) > 1)
            raise DendrogramError(f"zone {twice!r} is named twice: names are unique")
        if not len(self.zones) == self.dendrogram.zones == len(distances):
            raise DendrogramError(
                f"{len(self.zones)} names, {self.dendrogram.zones} leaves and {len(distances)} rows of distances:"
                " give one of each for every zone"
            )

    def to_json(self) -> str:
        """The text of `dendrogram.json`, one merge and one row of distances a line; floats keep every bit."""
        document = json.loads(self.dendrogram.to_json())
        document |= {
            "zones": list(self.zones),
            "node_distances": self.dendrogram.node_distances(self.distances).tolist(),
            "distances": self.distances.tolist(),
        }
        lines = []
        for key, value in document.items():
            nested = isinstance(value, list) and value and isinstance(value[0], list)
            rows = ",\n    ".join(json.dumps(row) for row in value) if nested else ""
            lines.append(f"  {json.dumps(key)}: " + (f"[\n    {rows}\n  ]" if nested else json.dumps(value)))
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "ZoneTree":
        """The zone tree of `to_json`; `node_distances` follow from the rest and may be left out."""
        dendrogram = Dendrogram.from_json(text)
        document = json.loads(text)
        names, distances = document.get("zones"), document.get("distances")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DendrogramError(f"zones = {names!r}: give a list with the name of each leaf")
        return cls(tuple(names), dendrogram, as_floats(distances, "distances", DendrogramError))
