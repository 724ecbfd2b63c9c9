"""The kernel's own demonstration: private histograms, dendrogram, draws and fusion, on generated zones in one process.

It drives the same `zone_trainer` as every other way to run; only where gradients come from is its own.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from console.figures import draw_zone_tree
from console.generated_zones import GeneratedZones, ZoneData, generate_zones, label_edges
from console.progress import Report
from console.results import write_results
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.distance import zone_distances
from sgfusion.durable import replace_file
from sgfusion.errors import RunFileError
from sgfusion.histogram import label_mass, zone_histogram
from sgfusion.hrg import Fit, fit_dendrogram
from sgfusion.privacy import Ledger, scaled_to_one
from sgfusion.runfile import RunFile, Section
from sgfusion.sampling import HrgSampler, NoSampler, Sampler
from sgfusion.zone_trainer import RoundReport, ZoneState, ZoneTrainer, run_round

Vector = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Demonstration:
    """What the demonstration found; RMSEs are on samples kept apart, one for each zone."""

    zones: tuple[str, ...]
    fit: Fit
    distances: Floats
    probabilities: Floats
    drawn_per_round: Floats
    before: Floats
    alone: Floats
    fused: Floats


def demonstrate(run: RunFile, folder: Path, progress: Report) -> Demonstration:
    """Run it all and write the results folder, with `dendrogram.png`."""
    settings, zones = _checked(run)
    replace_file(folder / "run.toml", run.to_toml().encode())  # a folder that cannot be written to is found out now
    data = generate_zones(settings, len(zones), run.seed)
    histograms = []
    for z, (name, zone) in enumerate(zip(zones, data, strict=True)):
        progress("private histograms", z, len(zones))
        histograms.append(zone_histogram([_released(run, folder, name, u, y) for u, (_, y) in enumerate(zone.train)]))
    distances = zone_distances(histograms, run.hrg.metric, run.hrg.p, zones=zones)
    progress("dendrogram", 0, 1)  # the first fit on a machine compiles for some seconds before it moves
    fit = fit_dendrogram(
        distances,
        seed=run.seed,
        schedule=run.hrg.schedule,
        restarts=run.hrg.restarts,
        patience=run.hrg.patience,
        max_moves=run.hrg.max_moves,
        progress=lambda done, planned, _: progress("dendrogram", done, planned),
    )
    probabilities = fit.dendrogram.sharing_probabilities(distances, run.hrg.sharpness)
    theta = np.zeros(settings.features, np.float32)
    alone, _ = _train(run, data, theta, NoSampler(), lambda i, n: progress("each zone alone", i, n))
    fused, reports = _train(
        run, data, theta, HrgSampler(probabilities, run.seed), lambda i, n: progress("SGFusion", i, n)
    )
    found = Demonstration(
        zones=zones,
        fit=fit,
        distances=distances,
        probabilities=probabilities,
        drawn_per_round=np.array([np.mean([len(r.drawn) for r in reports if r.zone == z]) for z in range(len(zones))]),
        before=_rmse(data, [theta] * len(zones)),
        alone=_rmse(data, alone),
        fused=_rmse(data, fused),
    )
    tree = ZoneTree(zones, fit.dendrogram, distances)
    models = dict(zip(zones, fused, strict=True))
    rounds = [report.to_record() for report in reports]
    progress("results", 0, 2)
    write_results(folder, run=run, zone_tree=tree, rounds=rounds, models=models, summary=summary(found))
    progress("results", 1, 2)
    if len(zones) > 1:
        draw_zone_tree(folder / "dendrogram.png", tree, probabilities, [zone.kind for zone in data])
    return found


def summary(found: Demonstration) -> dict[str, object]:
    """`summary.json`."""
    per_zone = {
        name: {"before": before, "alone": alone, "sgfusion": fused}
        for name, before, alone, fused in zip(
            found.zones, found.before.tolist(), found.alone.tolist(), found.fused.tolist(), strict=True
        )
    }
    return {
        "rmse": per_zone,
        "zones_won_by_sgfusion": int((found.fused < found.alone).sum()),
        "dendrogram": {"loss": found.fit.loss, "moves": found.fit.moves, "converged": found.fit.converged},
        "drawn_per_round": float(found.drawn_per_round.mean()),
    }


class _InProcess:
    """Gradients of ridge-free least squares, computed here; every device counts the same (method 6)."""

    def __init__(self, data: Sequence[ZoneData], zone: int) -> None:
        self._data = data
        self._zone = zone

    def local(self, theta: Vector) -> Vector:
        return self.peer(self._zone, theta)

    def peer(self, zone: int, theta: Vector) -> Vector:
        wide = theta.astype(np.float64)
        gradients = np.stack([x.T @ (x @ wide - y) / len(y) for x, y in self._data[zone].train])
        mean: Floats = gradients.mean(axis=0)
        return mean.astype(np.float32)


def _train(
    run: RunFile, data: Sequence[ZoneData], theta: Vector, sampler: Sampler, progress: Callable[[int, int], None]
) -> tuple[list[Vector], list[RoundReport]]:
    """All zones, one after the other: no zone waits for another (method 6)."""
    optimiser = run.optimiser.optimiser(run.rounds)
    models, reports = [], []
    for z in range(len(data)):
        progress(z, len(data))
        trainer = ZoneTrainer(ZoneState.initial(z, theta, optimiser), sampler, optimiser, run.fusion.similarity)
        source = _InProcess(data, z)
        reports += [run_round(trainer, source) for _ in range(run.rounds)]
        models.append(trainer.state.theta)
    return models, reports


def _released(run: RunFile, folder: Path, zone: str, device: int, labels: Floats) -> Floats:
    """A device's histogram as it leaves the device: through a ledger of its own, on disk.

    Run again, the devices hand out the same releases. Other data or another ε are other made-up devices.
    """
    mass = label_mass(labels, label_edges())
    epsilon = run.histogram.epsilon
    if epsilon == "off":
        return scaled_to_one(mass)
    made_up_from = repr((run.seed, run.data, run.zones, run.histogram)).encode()
    devices = folder / "devices" / hashlib.sha256(made_up_from).hexdigest()[:12]
    ledger = Ledger(devices / zone / f"{device}.ledger.json", run.histogram.budget or epsilon)
    return ledger.release("histogram", mass, epsilon=epsilon, adjacency=run.histogram.adjacency)


def _rmse(data: Sequence[ZoneData], models: Sequence[Vector]) -> Floats:
    return np.array(
        [np.sqrt(np.mean((zone.test[0] @ m - zone.test[1]) ** 2)) for zone, m in zip(data, models, strict=True)]
    )


def _checked(run: RunFile) -> tuple[GeneratedZones, tuple[str, ...]]:
    """The demonstration knows one task, one source and one way to train; another is refused, not ignored."""
    for key, value, known in (
        ("task.name", run.task.name, "linear"),
        ("data.source", run.data.source, "generated_zones"),
        ("sampler.kind", run.sampler.kind, "hrg"),
        ("update.kind", run.update.kind, "gradient"),
    ):
        if value != known:
            raise RunFileError(f"{key} = {value!r}: the demonstration knows {known!r} only")
    if run.hrg.from_ is not None:
        raise RunFileError(f"hrg.from = {run.hrg.from_!r}: the demonstration fits a dendrogram of its own")
    run.task.options_as("task", Section)  # this task has no keys of its own
    if not run.zones.names:
        raise RunFileError("zones.names is empty: name the zones to generate")
    return run.data.options_as("data", GeneratedZones), run.zones.names
