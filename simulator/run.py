"""Train one job: a zone's trajectory, or a whole run of a method with central models."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from device.batch import Batch, batch_of
from device.samples import Samples
from sgfusion.errors import DivergedError, RunFileError
from sgfusion.evaluation import Choice, Point, Score
from sgfusion.runfile import RunFile
from sgfusion.zone_trainer import RoundReport, ZoneState, ZoneTrainer
from simulator.cost import Cost
from simulator.directions import InProcess, simulate_round
from simulator.evaluation import zone_point
from simulator.methods.method import CentralMethod, Served, ZoneMethod
from simulator.methods.registry import method_named
from simulator.outcome import Outcome
from simulator.world import World, load_world

Vector = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with the rounds done and the rounds in all."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A job's outcome, the models it kept, and what happened in its rounds."""

    outcome: Outcome
    models: Mapping[str, Vector]
    """By zone; of a method with central models, by their own names."""
    reports: tuple[RoundReport, ...]


def train(run: RunFile, method: str, zone: str | None, progress: Progress | None = None) -> Trained:
    """Train the zone by the method, or all zones if the method does not train them apart."""
    chosen, world = method_named(method), load_world(run)
    report = progress or (lambda _done, _of: None)
    if isinstance(chosen, CentralMethod):
        return _train_central(world, chosen, report)
    if zone is None:
        raise RunFileError(f"method {method!r} trains zone by zone: name the zone")
    return _train_zone(world, chosen, world.number(zone), report)


def _train_zone(world: World, method: ZoneMethod, z: int, progress: Progress) -> Trained:
    run, zone = world.run, world.data.zones[z]
    optimiser, cost = run.optimiser.optimiser(run.rounds), Cost(world.learner.size)
    if method.uses_histograms:
        cost.histograms(len(zone.devices), len(world.task.edges) - 1)
    plan = method.plan(world, z, InProcess(world, z, cost))
    state = ZoneState.initial(z, world.theta, optimiser)
    trainer = ZoneTrainer(state, plan.sampler, optimiser, run.fusion.similarity, weigh=plan.weigh)
    choice: Choice[Vector] = Choice(world.task.metric)
    point = partial(zone_point, world.learner, zone=zone, exact=run.simulation.exact)
    choice.offer(point(world.theta, round=0), world.theta)
    reports: list[RoundReport] = []
    diverged = None
    for number in range(1, run.rounds + 1):
        try:
            reports.append(simulate_round(trainer, plan.source))
        except DivergedError as error:
            diverged = str(error)
            break
        if _is_evaluated(run, number):
            choice.offer(point(trainer.state.theta, round=number), trainer.state.theta)
        progress(number, run.rounds)
    drawn = [len(report.drawn) for report in reports]
    outcome = Outcome(
        method=method.name,
        seed=run.seed,
        zone=zone.name,
        points=tuple(choice.points),
        chosen=choice.round,
        rounds=len(reports),
        parameters=world.learner.size,
        device_gradients=cost.device_gradients,
        bytes_sent=cost.bytes_sent,
        drawn=float(np.mean(drawn)) if drawn else None,
        homophily=_homophily(world, z, reports),
        diverged=diverged,
    )
    return Trained(outcome, {zone.name: choice.kept}, tuple(reports))


def _train_central(world: World, method: CentralMethod, progress: Progress) -> Trained:
    run, cost = world.run, Cost(world.learner.size)
    choice: Choice[Served] = Choice(world.task.metric)
    state = method.init(world)
    served = method.serve(world, state)
    choice.offer(_served_point(world, served, 0), served)
    diverged, done, sound = None, 0, replace(cost)
    for number in range(1, run.rounds + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found out below
            state = method.apply(world, state, number, cost)
        done = number
        if _is_evaluated(run, number):
            served = method.serve(world, state)
            if not all(np.isfinite(model).all() for model in served.models):
                diverged = f"by round {number} the weights are no longer finite. Lower the learning rate"
                done, cost = choice.points[-1].round, sound  # the last that is known to be sound, and what it cost
                break
            sound = replace(cost)
            choice.offer(_served_point(world, served, number), served)
        progress(number, run.rounds)
    outcome = Outcome(
        method=method.name,
        seed=run.seed,
        zone=None,
        points=tuple(choice.points),
        chosen=choice.round,
        rounds=done,
        parameters=world.learner.size,
        device_gradients=cost.device_gradients,
        bytes_sent=cost.bytes_sent,
        drawn=None,
        homophily=None,
        diverged=diverged,
    )
    names = ["global"] if len(choice.kept.models) == 1 else [f"cluster-{j}" for j in range(len(choice.kept.models))]
    return Trained(outcome, dict(zip(names, choice.kept.models, strict=True)), ())


def _is_evaluated(run: RunFile, number: int) -> bool:
    return number % run.evaluation.every == 0 or number == run.rounds


def _homophily(world: World, z: int, reports: list[RoundReport]) -> float | None:
    """`1/T Σ_t 1/|N| Σ d(Y_z, Y_z')` over the rounds with a draw."""
    means = [world.tree.distances[z, list(report.drawn)].mean() for report in reports if report.drawn]
    return float(np.mean(means)) if means else None


def _served_point(world: World, served: Served, round: int) -> Point:
    """Every zone's scores, each device with the model that serves it."""
    splits: dict[str, dict[str, Score]] = {"validation": {}, "test": {}}
    start = 0
    for zone in world.data.zones:
        which = served.of_device[start : start + len(zone.devices)]
        start += len(zone.devices)
        for split, scores in splits.items():
            total, count = 0.0, 0
            for j in np.unique(which):
                batch = getattr(zone, split)
                if (which != j).any():
                    parts = [getattr(d, split) for d, model in zip(zone.devices, which, strict=True) if model == j]
                    batch = _batch(parts)
                part_total, part_count = world.learner.evaluate(served.models[j], batch)
                total, count = total + part_total, count + part_count
            scores[zone.name] = Score(total, count)
    return Point(round, splits["validation"], splits["test"])


def _batch(parts: list[Samples]) -> Batch | None:
    return batch_of(*parts) if any(len(part) for part in parts) else None
