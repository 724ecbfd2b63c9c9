"""A zone's scores after a round, computed in this process (method 9, "Measures")."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from device.batch import Batch
from device.learner import Learner
from sgfusion.evaluation import Point, Score
from simulator.zone_data import ZoneData

Vector = npt.NDArray[np.float32]


def zone_point(learner: Learner, theta: Vector, zone: ZoneData, round: int, *, exact: bool) -> Point:
    """The model's scores on the zone's validation and test samples.

    `exact` judges device by device and adds in the order of their ids, as an edge does and with its bits.
    """
    validation = zone.device_validations if exact else (zone.validation,)
    test = zone.device_tests if exact else (zone.test,)
    return Point(round, {zone.name: _score(learner, theta, validation)}, {zone.name: _score(learner, theta, test)})


def _score(learner: Learner, theta: Vector, batches: Sequence[Batch | None]) -> Score:
    total, count = 0.0, 0
    for batch in batches:
        of_batch, labels = learner.evaluate(theta, batch)
        total, count = total + of_batch, count + labels
    return Score(total, count)
