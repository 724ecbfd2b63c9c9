"""`sgfusion simulate`: one run by one method, from the data to a results folder."""

import base64
import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from console.figures import draw_zone_tree
from console.progress import QuietBars, phases, told
from console.report.formats import counted, size
from console.report.run_table import run_table
from console.results import write_results
from console.run_argument import refuse_suite
from console.summary import summarise
from console.unfinished import UnfinishedRun
from console.zones_file import zones_of_world
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import MissingDependencyError, SGFusionError
from sgfusion.runfile import RunFile, load_run_file
from sgfusion.runfile_document import load_document
from simulator.checks import check_draws, cut_k, cut_note
from simulator.jobs import training
from simulator.methods.registry import METHODS, method_of
from simulator.outcome import Outcome
from simulator.pool import ProcessPool, cores
from simulator.resolve import with_places
from simulator.suite import run_by_method
from simulator.suite_folder import SuiteFolder
from simulator.work import Pool, ThisProcess, Work
from simulator.world import World, load_world

Vector = npt.NDArray[np.float32]

WORTH_A_POOL = 20.0
"""Seconds of work in one process that more processes are started for."""
DRAWS_BY_THE_TREE = ("sgfusion", "chi-sgfusion")
"""Methods with a figure of the tree: it shows who draws whom, which is not so of any other."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """A run that was trained: its outcomes in the order of zones, its models by their names, its rounds' records."""

    method: str
    outcomes: tuple[Outcome, ...]
    models: Mapping[str, Vector]
    rounds: tuple[Mapping[str, Any], ...]


class _Collector(QuietBars):
    """Bars that keep the results too."""

    def __init__(self, screen: Console, kept: UnfinishedRun, zones: Mapping[str, str | None]) -> None:
        super().__init__(screen)
        self._kept = kept
        self._zones = zones
        self.results = {name: result for name, zone in zones.items() if (result := kept.result(zone)) is not None}
        self.failures: dict[str, str] = {}

    def finished(self, work: Work, result: str) -> None:
        """Keep it, on disk at once."""
        self._kept.keep(self._zones[work.name], result)
        self.results[work.name] = json.loads(result)
        super().finished(work, result)

    def failed(self, work: Work, reason: str) -> None:
        """Keep why."""
        self.failures[work.name] = reason
        super().failed(work, reason)


def load_run(path: Path, overrides: Sequence[str], method: str | None) -> tuple[RunFile, str]:
    """The run file and the method: the one that is asked for, or the one that the file's sampler means."""
    document = load_document(path, overrides)
    refuse_suite(path, document)
    if method is None:
        run = load_run_file(path, overrides)
        return run, method_of(run)
    return run_by_method(document, method, {}, str(path), Path()), method


def simulate(run: RunFile, method: str, folder: Path, workers: int | None, screen: Console) -> None:
    """Train, write the results folder, print a table. Without a number of workers, `train_all` finds a good one.

    Killed and started again it goes on where it was, and the folder never holds results of two runs.
    """
    with SuiteFolder(folder).hold(), UnfinishedRun(folder, run, method) as kept:
        with phases(screen) as progress:
            progress("data and dendrogram", 0, 1)
            world = load_world(run)
            placed = with_places(run, world.data.places)
        check_draws(run, method, len(world.zones), neighbours=world.data.neighbours is not None)
        notes = (*world.notes, *notes_on_draws(run, method, len(world.zones)))
        for note in notes:
            screen.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
        trained = train_all(world, method, workers, kept, screen)
        summary = summarise(
            world.data,
            method=method,
            seed=run.seed,
            zones=world.zones,
            outcomes=trained.outcomes,
            models=tuple(trained.models),
            notes=notes,
            again=shlex.join(["sgfusion", "simulate", "run.toml", "--method", method]),
        )
        kept.make_way(trained.models)
        write_results(
            folder,
            run=placed,
            zone_tree=world.tree,
            rounds=trained.rounds,
            models=trained.models,
            zones=zones_of_world(world, trained.outcomes),
            summary=summary,
        )
        drawn = ""
        if method in DRAWS_BY_THE_TREE:
            drawn = draw_tree(folder, run, world.tree, synthetic=world.synthetic, screen=screen)
        kept.remove()
    screen.print(f"{METHODS[method].title}, seed {run.seed}", style="bold", highlight=False)
    screen.print(run_table(trained.outcomes, world.zones, vars(world.task.metric)))
    screen.print(_sentence(world, summary, folder) + drawn, highlight=False, markup=False, soft_wrap=True)


def train_all(world: World, method: str, workers: int | None, kept: UnfinishedRun, screen: Console) -> Simulated:
    """Every zone's trajectory, or the one of all zones together; those that are kept are not trained again.

    Without a number of workers the first zone is trained here, and the others by all cores if they will take long:
    a process of its own first loads torch and the data again.
    """
    title = METHODS[method].title
    zones = {zone or title: zone for zone in (world.zones if METHODS[method].per_zone else (None,))}
    with _Collector(screen, kept, zones) as bars:
        left = [
            training(world.run, method, zone, name, len(world.zones), models=True)
            for name, zone in zones.items()
            if name not in bars.results
        ]
        bars.stage(title, left, len(bars.results))
        began = time.monotonic()
        if workers is None:
            ThisProcess().run(left[:1], bars)
            left = left[1:]
            workers = cores() if (time.monotonic() - began) * len(left) > WORTH_A_POOL else 1
        pool: Pool = ThisProcess() if min(workers, len(left)) <= 1 else ProcessPool(workers)
        try:
            pool.run(left, bars)
        finally:
            pool.close()
    if bars.failures:
        again = "\nRun the same command again to do what failed; finished jobs are kept." if bars.results else ""
        raise SGFusionError(
            f"{len(bars.failures)} of {counted(len(zones), 'job')} failed\n{told(bars.failures)}{again}"
        )
    results = [bars.results[name] for name in zones]
    return Simulated(
        method,
        tuple(Outcome.from_json(result["outcome"]) for result in results),
        {name: np.frombuffer(base64.b64decode(text), "<f4") for r in results for name, text in r["models"].items()},
        tuple(record for result in results for record in result["rounds"]),
    )


def notes_on_draws(run: RunFile, method: str, zones: int) -> tuple[str, ...]:
    """What becomes of a `k` that is more than the other zones."""
    k = cut_k(run, method, zones)
    return () if k is None else (cut_note([k], zones),)


def draw_tree(folder: Path, run: RunFile, tree: ZoneTree, *, synthetic: bool, screen: Console) -> str:
    """The dendrogram's figure, if there is one to draw and matplotlib to draw it; a sentence on it."""
    if len(tree.zones) == 1:
        return ""
    probabilities = tree.dendrogram.sharing_probabilities(tree.distances, run.hrg.sharpness)
    path = folder / "dendrogram.png"
    try:
        draw_zone_tree(path, _shown(run.name, synthetic=synthetic), tree, probabilities, run.hrg.sharpness)
    except MissingDependencyError as error:
        screen.print(f"note: no dendrogram.png: {error}", highlight=False, markup=False, soft_wrap=True)
        return ""
    return f" Look at {path}."


def _shown(name: str, *, synthetic: bool) -> str:
    """The run's name as figures have it: one seen without its folder is still honest."""
    return f"{name} (synthetic)" if synthetic and "synthetic" not in name.lower() else name


def _sentence(world: World, summary: Mapping[str, Any], folder: Path) -> str:
    made_up = "The data is synthetic. " if world.synthetic else ""
    gradients, sent = summary["device_gradients"], summary["bytes_sent"]
    judged = any(zone["validation"] is not None for zone in summary["zones"].values())
    which = "of the round that was best on the validation samples" if judged else "of the last round"
    return (
        f"{made_up}Models are those {which}.\n"
        f"{counted(gradients, 'device gradient')}; a deployment would send {size(sent)}. Results in {folder}."
    )
