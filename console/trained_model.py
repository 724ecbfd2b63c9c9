"""A trained model by its zone: from a results folder, or from the edge of a running cluster."""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from console.folder_argument import refuse_absent
from console.reach import OPERATOR, Reached, state_of
from console.run_argument import with_zone
from device.learner import Learner
from device.local_data import device_data
from device.samples import Samples
from device.sources.source import Source, open_source
from device.sources.zone_name import zones_or_meant
from device.tasks.task import Task, load_task
from sgfusion.errors import DataError, InputError, TensorError, UnavailableError
from sgfusion.reports import RunStatus, ZoneEvaluation
from sgfusion.runfile import RunFile, load_run_file
from sgfusion.wire.channel import open_channel
from sgfusion.wire.device_rpc import fetch_model
from sgfusion.wire.identity import Identity
from simulator.methods.registry import METHODS, method_of

Vector = npt.NDArray[np.float32]
WITHIN = 60.0
"""Seconds for an edge to hand out its model."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A run with its task and its data, as far as a model needs them."""

    run: RunFile
    task: Task
    source: Source
    like: Samples
    """Scaled samples of the run's data: their shape is the model's."""

    @classmethod
    def of(cls, run: RunFile, zone: str) -> "Setting":
        """Opens the data; of the zone's samples, those of one device are read. Those of a zone that joined with data of
        its own are elsewhere: then another's, which have the same shape.
        """
        task, source = load_task(run), open_source(run, here=True)
        if zone not in (*run.zones.names, *source.zones()):
            raise DataError(f"--zone {zone!r} is not one of the run's: {zones_or_meant(zone, source.zones())}")
        of = zone if zone in source.zones() else source.zones()[0]
        return cls(run, task, source, device_data(task, source, of, source.devices(of)[0]).train)

    @property
    def synthetic(self) -> bool:
        """Whether the data is made up."""
        return bool(getattr(self.source, "synthetic", False))


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A zone's weights, and what is known of how they came about."""

    setting: Setting
    zone: str
    theta: Vector
    kind: Literal["best", "last"]
    round: int
    title: str
    """Of the method."""
    digest: str
    """SHA-256 of the run file."""
    values: Mapping[str, float | None]
    """Of the task's metric: before, alone, kept on the test split; validation."""
    simulated: bool = False
    """Trained by the simulator: then noise on histograms was drawn from a seed."""
    devices: int | None = None
    """That the zone's edge knows; those of the data where there is no edge to ask."""


def from_results(folder: Path, zone: str | None) -> TrainedModel:
    """The model that a results folder keeps for the zone; without one, an error says which there are."""
    summary = summary_of(folder)
    zone = _given(zone, list(summary["zones"]))
    run = load_run_file(folder / "run.toml")
    setting = Setting.of(with_zone(run, zone) if zone in summary["zones"] else run, zone)  # one that joined later too
    names: list[str] = summary["models"]
    name = zone if zone in names else names[0] if names == ["global"] else None
    if name is None or zone not in summary["zones"]:
        raise DataError(f"{folder} has no model of zone {zone!r}: it has {zones_or_meant(zone, names)}")
    entry = summary["zones"][zone]
    return TrainedModel(
        setting,
        zone,
        _read_weights(folder / "models" / f"{name}.safetensors"),
        "best",
        entry["round"],
        summary["title"],
        hashlib.sha256((folder / "run.toml").read_bytes()).hexdigest(),
        {key: entry.get(key) for key in ("before", "alone", "test", "validation")},
        simulated=summary["again"].startswith("sgfusion simulate"),
    )


def run_of_cluster(folder: Path) -> RunFile:
    """The run of the cluster in a results folder, which may have no results yet."""
    return load_run_file(state_of(folder) / "run.toml")


def from_cluster(reached: Reached, run: RunFile, zone: str | None, kind: Literal["best", "last"]) -> TrainedModel:
    """The model that the zone's edge has now."""
    status = reached.ask(lambda client: client.status())
    zone = _given(zone, [each.zone for each in status.zones])
    round, fingerprint, theta = asyncio.run(_fetch(reached, status, zone, kind))
    setting = Setting.of(with_zone(run, zone), zone)
    if fingerprint != (own := Learner(setting.task, setting.like).fingerprint):
        raise DataError(
            f"the edge of {zone} has a model of fingerprint {fingerprint}, the run file's is {own}: give the cluster's"
            " run file"
        )
    found = next(each for each in status.zones if each.zone == zone)
    judged = found.best if kind == "best" else found.last
    digest = hashlib.sha256(run.to_toml().encode()).hexdigest()
    values = {"before": _value(status, found.first), "test": None, "validation": None}
    if judged is not None and judged.round == round and status.metric is not None:
        values["test"] = _value(status, judged)
        values["validation"] = status.metric.value(judged.validation.total, judged.validation.count)
    title = METHODS[method_of(run)].title
    devices = len({*found.attendance.attending, *found.attendance.missing})
    return TrainedModel(setting, zone, theta, kind, round, title, digest, values, devices=devices)


def _given(zone: str | None, there: Sequence[str]) -> str:
    if zone is None:
        raise InputError(f"give --zone: {', '.join(there) or 'there is none yet'}")
    return zone


def summary_of(folder: Path) -> dict[str, Any]:
    """`summary.json`; an error says what the folder should be."""
    refuse_absent(folder)
    try:
        found: dict[str, Any] = json.loads((folder / "summary.json").read_bytes())
    except OSError as error:
        raise DataError(
            f"{folder} is no results folder, it has no summary.json: give one of sgfusion up or simulate"
        ) from error
    except ValueError as error:
        raise DataError(f"{folder / 'summary.json'} is damaged: {error}") from error
    return found


async def _fetch(reached: Reached, status: RunStatus, zone: str, kind: str) -> tuple[int, str, Vector]:
    found = next((each for each in status.zones if each.zone == zone), None)
    if found is None or not found.address:
        raise DataError(
            f"--zone {zone!r} is not here: the cloud knows {zones_or_meant(zone, [z.zone for z in status.zones])}"
        )
    server = Identity("edge", zone)
    async with open_channel(found.address, server=server, me=OPERATOR, keys=reached.keys) as channel:
        try:
            return await fetch_model(channel, zone, kind, timeout=WITHIN)
        except UnavailableError as error:
            raise UnavailableError(f"the edge of zone {zone!r}, which has its model: {error}") from error


def _value(status: RunStatus, evaluation: ZoneEvaluation | None) -> float | None:
    if evaluation is None or status.metric is None or not evaluation.test.count:
        return None
    return status.metric.value(evaluation.test.total, evaluation.test.count)


def _read_weights(path: Path) -> Vector:
    try:
        return np.asarray(safetensors.numpy.load(path.read_bytes())["theta"], np.float32)
    except (OSError, KeyError, safetensors.SafetensorError) as error:
        raise TensorError(f"{path} is no model of a results folder: {error}") from error
