"""Scores over the rounds, and the choice of a model by the validation split (method 9, "Measures").

The simulator and the edges choose by the same code. An edge has no torch: it knows a task's metric, not its model.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Models = TypeVar("Models")


@dataclass(frozen=True)
class Metric:
    """A measure over labels: the mean of their scores, or its root. `unit` is that of its value."""

    name: str
    unit: str
    root: bool
    lower_is_better: bool

    def value(self, total: float, count: int) -> float:
        """The measure from the sum of scores of `count` labels; NaN if there are none, or no root of it."""
        if not count or (self.root and total < 0):
            return math.nan
        return math.sqrt(total / count) if self.root else total / count


@dataclass(frozen=True)
class Score:
    """The metric's sum of scores over `count` labels (`Metric.value` makes a number of it)."""

    total: float
    count: int


@dataclass(frozen=True)
class Point:
    """The models after a round: each zone's scores on both splits. Round 0 is before training."""

    round: int
    validation: Mapping[str, Score]
    test: Mapping[str, Score]


def pooled(metric: Metric, scores: Mapping[str, Score]) -> float:
    """The metric over the labels of all zones; NaN if there are none."""
    return metric.value(sum(s.total for s in scores.values()), sum(s.count for s in scores.values()))


class Choice(Generic[Models]):
    """Keeps every point, and the models of the best one on the validation split, the earliest among equals.

    Without validation samples the last models are kept. The test split plays no part.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._best = math.inf
        self.points: list[Point] = []
        self.round = 0
        self.models: Models | None = None

    def offer(self, point: Point, models: Models) -> bool:
        """A point of the trajectory, in order of rounds; whether it is now the chosen one."""
        self.points.append(point)
        judged = any(score.count for score in point.validation.values())
        value = pooled(self._metric, point.validation)
        # A model on its way out has scores that are no numbers: it is worse than any other.
        worth = math.inf if math.isnan(value) else value if self._metric.lower_is_better else -value
        better = self.models is None or not judged or worth < self._best
        if better:
            self._best, self.round, self.models = worth, point.round, models
        return better

    @property
    def worth(self) -> float:
        """What the chosen models are judged by: lower is better, whatever the metric."""
        return self._best

    def resume(self, round: int, worth: float, models: Models) -> None:
        """Go on from what an earlier life had chosen."""
        self.round, self._best, self.models = round, worth, models

    @property
    def kept(self) -> Models:
        """The models that were chosen."""
        if self.models is None:
            raise AssertionError("nothing was offered: round 0 always is")
        return self.models
