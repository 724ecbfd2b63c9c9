"""What simulating costs: beside a bare torch loop that computes the same gradients, and two workers beside one.

Both sides take turns within this run, and each ratio is the median of the turns' own: a machine that slows down slows
both sides of a turn, and one odd turn does not count. The simulator's side is a whole job as a suite runs it: draws,
gradients, attention, steps, reports and evaluations. The bare side is what a researcher would write by hand: the same
model and batches, the draws known beforehand, backward passes and an SGD step, and nothing else.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import add_limits
from sgfusion.runfile import RunFile, load_run_file
from simulator.jobs import training
from simulator.pool import ProcessPool
from simulator.run import train
from simulator.work import Work
from simulator.world import World, load_world

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
REPEATS = 15
WORKLOADS = {
    "flights, 560 weights": ("flights.toml", ("rounds=30",)),
    "heart rate, small LSTM": ("heart_rate.toml", ("rounds=20", "data.country=poland")),
    "the paper's LSTM, few workouts": ("heart_rate.toml", ("rounds=20", "task.size=paper")),
    "the paper's LSTM and workouts": ("heart_rate_paper.toml", ("rounds=2",)),
}
"""Run files and rounds that take seconds, at the paper's sharpness: more draws. Few workouts make for short gradients,
and these for the worst ratio: what is done once a round weighs most."""
BAG = ("heart_rate.toml", ("rounds=60", "data.country=us", "evaluation.every=10"))
"""A bag of 32 jobs, half a minute for two workers; the processes' start, some four seconds, is part of it."""

AT_MOST = 1.15
"""What a job may cost, the bare loop being 1."""
AT_LEAST = 1.70
"""What two workers must gain over one."""


@dataclass(frozen=True)
class Ratio:
    """Seconds of both sides, turn by turn. Invariant: as many of the one as of the other, and at least one."""

    name: str
    ours: tuple[float, ...]
    bare: tuple[float, ...]

    @property
    def of_turns(self) -> list[float]:
        """What ours costs, the other being 1, in each turn."""
        return [ours / bare for ours, bare in zip(self.ours, self.bare, strict=True)]

    @property
    def value(self) -> float:
        """The median of the turns."""
        return statistics.median(self.of_turns)

    def row(self, wanted: str) -> tuple[str, ...]:
        """Of the table."""
        ratios = sorted(self.of_turns)
        ours, bare = (f"{statistics.median(side):.2f}" for side in (self.ours, self.bare))
        return self.name, ours, bare, f"{self.value:.2f}", f"{ratios[0]:.2f} to {ratios[-1]:.2f}", wanted


def simulation(name: str, run: RunFile, repeats: int = REPEATS) -> Ratio:
    """A zone's SGFusion trajectory, simulated and as a bare loop."""
    world = load_world(run)
    zone = max(range(len(world.zones)), key=lambda z: float(world.probabilities[z].sum()))
    reports = train(run, "sgfusion", world.zones[zone]).reports  # and warms everything up
    draws = [report.drawn for report in reports]
    bare_loop(world, zone, draws)
    return _by_turns(
        name, lambda: train(run, "sgfusion", world.zones[zone]), lambda: bare_loop(world, zone, draws), repeats
    )


def bare_loop(world: World, zone: int, draws: list[tuple[int, ...]]) -> torch.nn.Module:
    """The gradients of a trajectory whose draws are known, by torch alone."""
    first = world.data.zones[zone].train
    model = world.task.build(first.x.shape[-1], 0 if first.context is None else first.context.shape[-1])
    parameters = list(model.parameters())
    for draw in draws:
        total = bare_direction(world, model, zone, draw)
        with torch.no_grad():
            for summed, p in zip(total, parameters, strict=True):
                p.sub_(summed, alpha=1e-3)
    return model


def bare_direction(world: World, model: torch.nn.Module, zone: int, draw: tuple[int, ...]) -> list[torch.Tensor]:
    """One round's: the zone's gradient, and the mean of those of the zones drawn. No attention: that is not bare."""
    task, parameters = world.task, list(model.parameters())
    total = [torch.zeros_like(p) for p in parameters]
    for z in (zone, *draw):
        batch = world.data.zones[z].train
        for p in parameters:
            p.grad = None
        loss = torch.dot(task.losses(model(batch.x, batch.context), batch.y), batch.weights)
        if task.penalty is not None:
            loss = loss + task.penalty(model)
        loss.backward()  # type: ignore[no-untyped-call]
        share = 1.0 if z == zone else 1.0 / len(draw)
        for summed, p in zip(total, parameters, strict=True):
            if p.grad is not None:
                summed.add_(p.grad, alpha=share)
    return total


def _by_turns(name: str, ours: Callable[[], object], bare: Callable[[], object], repeats: int) -> Ratio:
    turns = [(_seconds(ours), _seconds(bare)) for _ in range(repeats)]
    return Ratio(name, *zip(*turns, strict=True))


def _seconds(side: Callable[[], object]) -> float:
    start = time.perf_counter()
    side()
    return time.perf_counter() - start


class _Silent:
    """Hears of work and says nothing, but for a failure: a ratio of work left undone is no ratio."""

    def started(self, work: Work) -> None:
        """Nothing to say."""

    def advanced(self, work: Work, done: int, of: int) -> None:
        """Nothing to say."""

    def finished(self, work: Work, result: str) -> None:
        """Nothing to say."""

    def failed(self, work: Work, reason: str) -> None:
        """End it all."""
        raise RuntimeError(f"{work.name}: {reason}")


def workers(run: RunFile, repeats: int = 2) -> Ratio:
    """The same bag of jobs by one worker and by two, from the start of the processes to the last outcome."""
    zones = load_world(run).zones
    works = [training(run, "sgfusion", zone, zone, len(zones)) for zone in zones]

    def bag(processes: int) -> None:
        pool = ProcessPool(processes)
        try:
            pool.run(works, _Silent())
        finally:
            pool.close()

    return _by_turns("one worker against two", lambda: bag(1), lambda: bag(2), repeats)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; the exit code, 1 if a ratio is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="turns for each ratio; workers take a fifth as many"
    )
    parser.add_argument("--rounds", type=int, help="of every job, instead of its workload's own")
    add_limits(parser)
    given = parser.parse_args(arguments)
    repeats, short = given.repeats, () if given.rounds is None else (f"rounds={given.rounds}",)
    screen = Console()
    table = Table(
        "what", "ours, s", "bare, s", "ratio", "over turns", "wanted", title="Turns taken side by side: medians"
    )
    within = True
    for name, (file, overrides) in WORKLOADS.items():
        screen.print(f"{name} ...", highlight=False)
        ratio = simulation(name, load_run_file(EXPERIMENTS / file, ("hrg.sharpness=1", *overrides, *short)), repeats)
        table.add_row(*ratio.row(f"at most {AT_MOST:.2f}"))
        within &= ratio.value <= AT_MOST
    screen.print("workers ...", highlight=False)
    ratio = workers(load_run_file(EXPERIMENTS / BAG[0], (*BAG[1], *short)), max(1, repeats // 5))
    table.add_row(*ratio.row(f"at least {AT_LEAST:.2f}"))
    within &= ratio.value >= AT_LEAST
    screen.print(table)
    return 0 if within or not given.limits else 1


if __name__ == "__main__":
    sys.exit(main())
