"""A suite as a bag of jobs: zones train apart (method 6), so each trajectory is a job of its own.

First every world is surveyed, for the zones are in the data; then the jobs that have no outcome yet are done. Both are
work for a pool, and what is finished is on disk at once: a suite that was killed goes on where it was.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sgfusion.runfile import RunFile, parse_run_file
from simulator.methods.registry import METHODS
from simulator.methods.top_k_sgfusion import K
from simulator.suite import Suite
from simulator.suite_folder import Job, SuiteFolder, Survey, name_of
from simulator.work import Advance, Pool, Watcher, Work

WorldKey = tuple[str, int]
"""Data and seed."""
AnyKey = TypeVar("AnyKey")


@dataclass(frozen=True)
class Draws:
    """How many zones a zone draws in a round, in the mean over zones; a guess where no survey says it."""

    by_chance: float = 3.0
    """By the sharing probabilities (method 5)."""
    neighbours: float = 3.0

    @classmethod
    def of(cls, survey: Survey) -> "Draws":
        """As the reference has them: an entry with a dendrogram of its own draws another number."""
        world = json.loads(survey.world)
        by_chance = sum(map(sum, world["probabilities"])) / len(survey.zones)
        if world["neighbours"] is None:
            return cls(by_chance)
        return cls(by_chance, sum(map(len, world["neighbours"])) / len(survey.zones))


UNKNOWN = Draws()


class Observer(Watcher, Protocol):
    """Hears how a suite goes."""

    def stage(self, title: str, works: Sequence[Work], finished: int) -> None:
        """A stage begins, with this work to do; so many more pieces were finished before."""


def survey_suite(
    suite: Suite, book: SuiteFolder, pool: Pool, observer: Observer
) -> tuple[dict[WorldKey, Survey], dict[str, str]]:
    """The survey of every world, and why some have none. It is the reference's: all entries have the same zones."""
    keys = {(key[0], key[2]): key for key in suite.runs if key[1] == suite.reference}
    works = {
        key: Work(name_of(key), "simulator.jobs:survey", suite.runs[key].to_toml(), group_of(suite.runs[key]), 1.0)
        for key in keys.values()
        if book.survey(key) is None
    }
    keeper = _Keeper(observer, {work.name: key for key, work in works.items()}, book.keep_survey)
    if works:
        observer.stage("data and dendrograms", tuple(works.values()), len(keys) - len(works))
        pool.run(works.values(), keeper)
    surveys = {world: made for world, key in keys.items() if (made := book.survey(key)) is not None}
    for world, made in surveys.items():
        book.keep_world(*world, made.world)
    return surveys, keeper.failures


def train_suite(
    suite: Suite, surveys: Mapping[WorldKey, Survey], book: SuiteFolder, pool: Pool, observer: Observer
) -> dict[str, str]:
    """Do all jobs of the surveyed worlds that are not finished; why some still are not."""
    zones = {key: surveys[key[0], key[2]].zones for key in suite.runs if (key[0], key[2]) in surveys}
    jobs = [
        Job(key, zone)
        for key, names in zones.items()
        for zone in (names if METHODS[suite.method(key)].per_zone else (None,))
    ]
    left = [job for job in jobs if not book.is_finished(job)]
    draws = {world: Draws.of(made) for world, made in surveys.items()}
    works = [
        training(
            suite.runs[job.key],
            suite.method(job.key),
            job.zone,
            job.name,
            len(zones[job.key]),
            draws=draws[job.key[0], job.key[2]],
        )
        for job in left
    ]
    keeper = _Keeper(observer, {job.name: job for job in left}, book.keep_outcome)
    observer.stage("training", works, len(jobs) - len(left))
    pool.run(works, keeper)
    return keeper.failures


def training(
    run: RunFile,
    method: str,
    zone: str | None,
    name: str,
    zones: int,
    *,
    models: bool = False,
    draws: Draws = UNKNOWN,
) -> Work:
    """A job as work; its result is an outcome's JSON, or with `models` what `train_with_models` returns."""
    function = "simulator.jobs:" + ("train_with_models" if models else "train_one")
    text = json.dumps({"run": run.to_toml(), "method": method, "zone": zone})
    return Work(name, function, text, group_of(run), cost_of(method, run, zones, draws))


def group_of(run: RunFile) -> str:
    """Runs of one group have the same data and zones: a process loads them once for all."""
    parts = (str(run.seed), *(section.model_dump_json() for section in (run.task, run.data, run.zones)))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def cost_of(method: str, run: RunFile, zones: int, draws: Draws = UNKNOWN) -> float:
    """Gradients of a zone that a job takes, roughly: the long ones are begun first, and the time left is guessed."""
    drawn = {
        "sgeofl": 0,
        "all": zones - 1,
        "top-k-sgfusion": run.sampler.k or K,
        "chi-sgfusion": run.sampler.chi or draws.neighbours,
        "d-zgd": draws.neighbours,
        "delta-z": draws.neighbours,
    }
    per_round = 1 + min(drawn.get(method, draws.by_chance), zones - 1) if METHODS[method].per_zone else zones
    return float(per_round * run.rounds)


def survey(text: str, _advance: Advance) -> str:
    """Work for a pool: the survey of the world of a run file's text."""
    from simulator.world import load_world  # noqa: PLC0415 (loads data: for workers alone)

    world = load_world(parse_run_file(text))
    metric = vars(world.task.metric)
    return Survey(world.zones, world.notes, world.synthetic, metric, world.to_json()).to_json()


def train_one(text: str, advance: Advance) -> str:
    """Work for a pool: train one job; its outcome as JSON."""
    from simulator.run import train  # noqa: PLC0415 (as above)

    asked = json.loads(text)
    return train(parse_run_file(asked["run"]), asked["method"], asked["zone"], advance).outcome.to_json()


def train_with_models(text: str, advance: Advance) -> str:
    """Work for a pool: as `train_one`, with the models and the rounds' records besides."""
    from simulator.run import train  # noqa: PLC0415 (as above)

    asked = json.loads(text)
    trained = train(parse_run_file(asked["run"]), asked["method"], asked["zone"], advance)
    models = {name: base64.b64encode(theta.astype("<f4").tobytes()).decode() for name, theta in trained.models.items()}
    rounds = [report.to_record() for report in trained.reports]
    return json.dumps({"outcome": trained.outcome.to_json(), "models": models, "rounds": rounds})


class _Keeper(Generic[AnyKey]):
    """Writes results as they come, then tells the observer."""

    def __init__(self, observer: Observer, keys: Mapping[str, AnyKey], keep: Callable[[AnyKey, str], None]) -> None:
        self._observer = observer
        self._keys = keys
        self._keep = keep
        self.failures: dict[str, str] = {}
        self.started = observer.started
        self.advanced = observer.advanced

    def finished(self, work: Work, result: str) -> None:
        self._keep(self._keys[work.name], result)
        self._observer.finished(work, result)

    def failed(self, work: Work, reason: str) -> None:
        self.failures[work.name] = reason
        self._observer.failed(work, reason)
