"""The world that a suite's jobs of one data set and seed took place in: `worlds/<data>/<seed>.json`."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sgfusion.dendrogram import Dendrogram
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import DataError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Example:
    """One device's label mass, and what it released of it (method 1)."""

    zone: str
    device: str
    mass: Floats
    released: Floats


@dataclass(frozen=True, eq=False)
class World:
    """Zones, who is next to whom, and how they share gradients (methods 2 to 4)."""

    zones: tuple[str, ...]
    devices: tuple[int, ...]
    samples: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...] | None
    """None: the data has no places."""
    edges: Floats
    distances: Floats
    merges: tuple[tuple[int, int], ...]
    probabilities: Floats
    sharpness: float
    epsilon: float | Literal["off"]
    loss: float
    example: Example | None

    @cached_property
    def tree(self) -> ZoneTree:
        """The dendrogram with names and distances."""
        return ZoneTree(self.zones, Dendrogram.from_merges(self.merges), self.distances)


def read_world(path: Path) -> World | None:
    """The world in the file; None if it is not there yet."""
    try:
        return _world(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path} is not a suite's world: {error!r}. Remove it, and the suite writes it again"
        ) from error


def _world(document: dict[str, Any]) -> World:
    example = document.get("example")
    return World(
        zones=tuple(document["zones"]),
        devices=tuple(document["devices"]),
        samples=tuple(document["samples"]),
        neighbours=None if document["neighbours"] is None else tuple(map(tuple, document["neighbours"])),
        edges=np.array(document["edges"], np.float64),
        distances=np.array(document["distances"], np.float64),
        merges=tuple((left, right) for left, right in document["merges"]),
        probabilities=np.array(document["probabilities"], np.float64),
        sharpness=float(document["sharpness"]),
        epsilon=document["epsilon"],
        loss=float(document["loss"]),
        example=None
        if example is None
        else Example(example["zone"], example["device"], np.array(example["mass"]), np.array(example["released"])),
    )
