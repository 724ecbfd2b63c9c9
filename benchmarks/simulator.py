"""What simulating costs: beside a bare torch loop that computes the same gradients, and two workers beside one.

    python -m benchmarks.simulator

Each ratio is the median over repeats that take turns within this run, so that a machine that slows down slows both. The
simulator's side is a whole job as a suite runs it: draws, gradients, attention, steps, reports and evaluations. The
bare side is what a researcher would write by hand: the same model and batches, the draws known beforehand, backward
passes and an SGD step, and nothing else.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from sgfusion.runfile import RunFile, load_run_file
from simulator.run import train
from simulator.world import World, load_world

ROOT = Path(__file__).parents[1]
REPEATS = 7
WORKLOADS = {
    "flights, 560 weights": ("experiments/flights.toml", 30),
    "heart rate, small LSTM": ("experiments/heart_rate.toml", 10),
    "heart rate, the paper's LSTM": ("experiments/heart_rate_paper.toml", 2),
}
"""Run files, and rounds that take a second or so."""


@dataclass(frozen=True)
class Ratio:
    """Seconds of both sides, medians."""

    name: str
    ours: float
    bare: float

    @property
    def value(self) -> float:
        """What ours costs, the other being 1."""
        return self.ours / self.bare


def simulation(name: str, run: RunFile, repeats: int = REPEATS) -> Ratio:
    """A zone's SGFusion trajectory, simulated and as a bare loop."""
    world = load_world(run)
    zone = max(range(len(world.zones)), key=lambda z: float(world.probabilities[z].sum()))
    reports = train(run, "sgfusion", world.zones[zone]).reports  # and warms everything up
    draws = [report.drawn for report in reports]
    ours, bare = _by_turns(
        lambda: train(run, "sgfusion", world.zones[zone]), lambda: bare_loop(world, zone, draws), repeats
    )
    return Ratio(name, ours, bare)


def bare_loop(world: World, zone: int, draws: list[tuple[int, ...]]) -> torch.nn.Module:
    """The gradients of a trajectory whose draws are known, by torch alone."""
    task, first = world.task, world.data.zones[zone].train
    model = task.build(first.x.shape[-1], 0 if first.context is None else first.context.shape[-1])
    parameters = list(model.parameters())
    for draw in draws:
        total = [torch.zeros_like(p) for p in parameters]
        for z in (zone, *draw):
            batch = world.data.zones[z].train
            for p in parameters:
                p.grad = None
            loss = torch.dot(task.losses(model(batch.x, batch.context), batch.y), batch.weights)
            loss.backward()  # type: ignore[no-untyped-call]
            share = 1.0 if z == zone else 1.0 / len(draw)
            for summed, p in zip(total, parameters, strict=True):
                if p.grad is not None:
                    summed.add_(p.grad, alpha=share)
        with torch.no_grad():
            for summed, p in zip(total, parameters, strict=True):
                p.sub_(summed, alpha=1e-3)
    return model


def _by_turns(ours: Callable[[], object], bare: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of each, run in turns after one turn to warm up."""
    bare()
    seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(repeats):
        for name, side in (("ours", ours), ("bare", bare)):
            start = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - start)
    return statistics.median(seconds["ours"]), statistics.median(seconds["bare"])
