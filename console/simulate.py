"""`sgfusion simulate`: one run by one method, from the data to a results folder."""

import base64
import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from console.figures import draw_zone_tree
from console.formats import counted, size
from console.notes import tell
from console.progress import QuietBars, phases, told
from console.report.run_table import run_table
from console.results import write_results
from console.run_argument import refuse_suite
from console.summary import summarise
from console.unfinished import UnfinishedRun
from console.zone_notes import zone_notes
from console.zones_file import zones_of_world
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import InputError, MissingDependencyError, SGFusionError
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

KNOWN_AFTER = 2.0
"""Seconds of training after which one may say how long all of it will take."""
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
        self._first: tuple[Work, float] | None = None
        """The job that began first, and when."""
        self._workers: int | None = None
        self._say: Callable[[float], None] | None = None

    def foresee(self, workers: int | None, say: Callable[[float], None]) -> None:
        """Call `say` once with about how many seconds the stage will take, as soon as that is known."""
        self._workers, self._say = workers, say

    def started(self, work: Work) -> None:
        """When, too: by how long the first one takes one knows all."""
        super().started(work)
        if self._first is None:
            self._first = work, self._clock()

    def advanced(self, work: Work, done: int, of: int) -> None:
        """Also by how fast it is."""
        super().advanced(work, done, of)
        if done and (elapsed := self._since_first(work)) >= KNOWN_AFTER:
            self._foretell(work, elapsed * of / done)

    def _since_first(self, work: Work) -> float:
        """Seconds that the first job has taken by now; 0 of any other, which may have waited for a pool to start."""
        return self._clock() - self._first[1] if self._first is not None and self._first[0] is work else 0.0

    def _foretell(self, work: Work, first: float) -> None:
        """Say it, once, by the seconds that the first job takes as a whole."""
        if self._say is None:
            return
        say, self._say = self._say, None
        every, jobs = first * self._total / work.cost, self._jobs - self._before
        if self._workers is None:  # the first one here, then the others
            say(first + (every - first) / at_once(None, first, jobs - 1))
        else:
            say(every / at_once(self._workers, first, jobs))

    def finished(self, work: Work, result: str) -> None:
        """Keep it, on disk at once."""
        if elapsed := self._since_first(work):
            self._foretell(work, elapsed)
        self._kept.keep(self._zones[work.name], result)
        self.results[work.name] = json.loads(result)
        super().finished(work, result)

    def failed(self, work: Work, reason: str) -> None:
        """Keep why."""
        self.failures[work.name] = reason
        super().failed(work, reason)


def at_once(workers: int | None, first: float, left: int) -> int:
    """Processes for the jobs that are left, 1 being this one. Without a number: all cores, if it is worth it for jobs
    that take as long as the first one.
    """
    if workers is None:
        workers = cores() if first * left > WORTH_A_POOL else 1
    return max(1, min(workers, left))


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
    if any(folder.glob("cluster/*/run.toml")):
        raise InputError(
            f"{folder} is of a cluster (sgfusion up): a simulation does not replace its results. Give another --out"
        )
    with SuiteFolder(folder).hold(), UnfinishedRun(folder, run, method) as kept:
        with phases(screen) as progress:
            progress("data and dendrogram", 0, 1)
            world = load_world(run)
            placed = with_places(run, world.data.places)
        check_draws(run, method, len(world.zones), neighbours=world.data.neighbours is not None)
        notes = (*world.notes, *notes_on_draws(run, method, len(world.zones)), *_zone_notes(world))
        tell(notes, screen)
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


def _zone_notes(world: World) -> tuple[str, ...]:
    """As `up` says it: who simulates first, to find mistakes, reads here that a zone is misspelt."""
    devices = {zone.name: [each.device for each in zone.devices] for zone in world.data.zones}
    samples = {zone.name: len(zone) for zone in world.data.zones}
    return zone_notes(world.run, devices, samples)


def train_all(
    world: World,
    method: str,
    workers: int | None,
    kept: UnfinishedRun,
    screen: Console,
    *,
    foreseen: Callable[[float], None] | None = None,
    shown: str | None = None,
) -> Simulated:
    """Every zone's trajectory, or the one of all zones together; those that are kept are not trained again.
    Progress goes by the method's title, or by what is to be `shown` instead.
    `foreseen` is told about how many seconds it will take, unless it is over before that is known.

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
        bars.stage(shown or title, left, len(bars.results))
        if foreseen is not None:
            bars.foresee(workers, foreseen)
        first = 0.0
        if workers is None:
            began = time.monotonic()
            ThisProcess().run(left[:1], bars)
            first, left = time.monotonic() - began, left[1:]
        processes = at_once(workers, first, len(left))
        pool: Pool = ThisProcess() if processes == 1 else ProcessPool(processes)
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
        tell([f"no dendrogram.png: {error}"], screen)
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
