"""All that a run's zones share before the first round: data, histograms, distances, dendrogram (methods 1 to 4)."""

import importlib.util
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from device.learner import Learner
from device.samples import DeviceData
from device.tasks.task import Task
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.draws import ProbabilisticDendrogram
from sgfusion.errors import DataError
from sgfusion.histogram import label_mass, zone_histogram
from sgfusion.privacy import scaled_to_one
from sgfusion.runfile import RunFile, parse_run_file
from sgfusion.same_run import without_places
from sgfusion.zone_tree import fit_zone_tree
from simulator.file_stamps import file_stamps
from simulator.geography import no_neighbours
from simulator.noise import simulated_release
from simulator.zone_data import AllData, ZoneData, load_data

Floats = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float32]

DATA = ("task", "data", "zones")
"""The sections that say what the data is."""
TREE = (*DATA, "histogram", "hrg")
"""Those that say what the dendrogram is."""


@dataclass(frozen=True, eq=False)
class World:
    """The data, and what the cloud makes of its histograms."""

    run: RunFile
    data: AllData
    histograms: Floats
    """`Y_z`, `[Z, B]`, as the cloud sees them: noised on the devices."""
    tree: ZoneTree

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones' names, in the order of their numbers."""
        return self.data.names

    @property
    def task(self) -> Task:
        """The run's task."""
        return self.data.task

    @property
    def learner(self) -> Learner:
        """The task's model."""
        return self.data.learner

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the data, and why."""
        return self.data.notes

    @property
    def synthetic(self) -> bool:
        """Whether the data is made up."""
        return self.data.synthetic

    @cached_property
    def chances(self) -> ProbabilisticDendrogram:
        """The tree with its sharing probabilities; all zones are leaves of it."""
        numbers = tuple(range(len(self.zones)))
        return ProbabilisticDendrogram(self.tree.dendrogram, self.tree.distances, numbers, self.run.hrg.sharpness)

    @property
    def probabilities(self) -> Floats:
        """`p(z, z')` (method 4)."""
        return self.chances.probabilities

    @property
    def theta(self) -> Vector:
        """`θ⁰`, the same for every zone and every method."""
        return self.data.theta

    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The geographic neighbours of each zone; an error if the data has no geography."""
        if self.data.neighbours is None:
            raise no_neighbours(self.run)
        return self.data.neighbours

    def number(self, zone: str) -> int:
        """The zone's number."""
        if zone not in self.zones:
            raise DataError(f"zone {zone!r} is not one of this run: {', '.join(self.zones)}")
        return self.zones.index(zone)

    def to_json(self) -> str:
        """What a report shows of it: `worlds/<data>/<seed>.json`."""
        places = [(z, u) for z, zone in enumerate(self.data.zones) for u in range(len(zone.devices))]
        places.sort(key=lambda place: len(self.data.zones[place[0]].devices[place[1]].train))
        z, u = places[len(places) // 2]  # a device of middling size: neither noise alone nor hardly any
        device = self.data.zones[z].devices[u]
        mass = label_mass(device.train.y, self.task.edges)
        document = {
            "zones": list(self.zones),
            "devices": [len(zone.devices) for zone in self.data.zones],
            "samples": [sum(len(device.train) for device in zone.devices) for zone in self.data.zones],
            "neighbours": None if self.data.neighbours is None else [list(near) for near in self.data.neighbours],
            "edges": self.task.edges.tolist(),
            "histograms": self.histograms.tolist(),
            "distances": self.tree.distances.tolist(),
            "merges": self.tree.dendrogram.merges.tolist(),
            "probabilities": self.probabilities.tolist(),
            "sharpness": self.run.hrg.sharpness,
            "epsilon": self.run.histogram.epsilon,
            "loss": self.tree.dendrogram.loss(self.tree.distances),
            "example": {
                "zone": device.zone,
                "device": device.device,
                "mass": mass.tolist(),
                "released": _released(self.run, self.task, z, u, device).tolist(),
            },
        }
        return json.dumps(document) + "\n"


def load_world(run: RunFile) -> World:
    """The world of the run; loaded once a process for all runs that have the same, until its files change."""
    data = _data(*key_of(run, DATA))
    histograms, tree = _tree(*key_of(run, TREE))
    return World(run, data, histograms, tree)


def key_of(run: RunFile, sections: tuple[str, ...]) -> tuple[str, str]:
    """What an outcome of these sections depends on: the run file with all others at their defaults, and its files."""
    plain = without_places(run)
    bare = {"name": "world", "seed": run.seed, "rounds": 1, **{name: getattr(plain, name) for name in sections}}
    return RunFile(**bare).to_toml(), file_stamps(run, sections)


@lru_cache(maxsize=2)
def _data(text: str, _files: str) -> AllData:
    return load_data(parse_run_file(text))


@lru_cache(maxsize=8)
def _tree(text: str, _files: str) -> tuple[Floats, ZoneTree]:
    run = parse_run_file(text)
    data = _data(*key_of(run, DATA))
    histograms = np.stack([_zone_histogram(run, data.task, z, zone) for z, zone in enumerate(data.zones)])
    # Images of devices have no numba; what they fit is a few zones to compare with, and engines give the same bits.
    compiled = importlib.util.find_spec("numba") is not None
    return histograms, fit_zone_tree(histograms, data.names, run, engine="numba" if compiled else "python")


def _zone_histogram(run: RunFile, task: Task, z: int, zone: ZoneData) -> Floats:
    return zone_histogram([_released(run, task, z, u, device) for u, device in enumerate(zone.devices)])


def _released(run: RunFile, task: Task, z: int, u: int, device: DeviceData) -> Floats:
    mass = label_mass(device.train.y, task.edges)
    if run.histogram.epsilon == "off":
        return scaled_to_one(mass)
    return simulated_release(
        mass,
        epsilon=run.histogram.epsilon,
        adjacency=run.histogram.adjacency,
        seed=run.seed,
        zone=z,
        device=u,
    )
