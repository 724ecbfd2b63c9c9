"""Scores over the rounds, and the choice of a model by the validation split (method 9, "Measures")."""

import math
from collections.abc import Mapping
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from device.learner import Learner
from device.tasks.task import Metric
from simulator.outcome import Point, Score
from simulator.zone_data import ZoneData

Vector = npt.NDArray[np.float32]
Models = TypeVar("Models")


def zone_point(learner: Learner, theta: Vector, zone: ZoneData, round: int) -> Point:
    """The model's scores on the zone's validation and test samples."""
    validation, test = learner.evaluate(theta, zone.validation), learner.evaluate(theta, zone.test)
    return Point(round, {zone.name: Score(*validation)}, {zone.name: Score(*test)})


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

    def offer(self, point: Point, models: Models) -> None:
        """A point of the trajectory, in order of rounds."""
        self.points.append(point)
        judged = any(score.count for score in point.validation.values())
        value = pooled(self._metric, point.validation)
        # A model on its way out has scores that are no numbers: it is worse than any other.
        worth = math.inf if math.isnan(value) else value if self._metric.lower_is_better else -value
        if self.models is None or not judged or worth < self._best:
            self._best, self.round, self.models = worth, point.round, models

    @property
    def kept(self) -> Models:
        """The models that were chosen."""
        if self.models is None:
            raise AssertionError("nothing was offered: round 0 always is")
        return self.models
