"""What one job of a suite comes to: a trajectory's scores over the rounds, and what it cost.

A job is one zone's trajectory, or a whole run of a method whose zones do not train apart (FedAvg and the like). An
outcome holds no times and no host names: run twice, it has the same bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sgfusion.errors import DataError
from sgfusion.evaluation import Point, Score

__all__ = ["Outcome", "Point", "Score"]


@dataclass(frozen=True)
class Outcome:
    """A finished job."""

    method: str
    seed: int
    zone: str | None
    """The zone whose trajectory it is; None if the job trained all zones."""
    points: tuple[Point, ...]
    """In order of rounds."""
    chosen: int
    """The round whose models were kept: the best on the validation split, never on the test split."""
    rounds: int
    parameters: int
    device_gradients: int
    """Gradients of one device on one set of weights that were computed; of local epochs, one for each step."""
    bytes_sent: int
    """What a real deployment would send for it, by `cost.py`."""
    drawn: float | None
    """Zones drawn a round, in the mean; None for methods with central models."""
    homophily: float | None
    """The mean distance `d(Y_z, Y_z')` to the zones drawn, over rounds with a draw (method 9); None without any."""
    diverged: str | None = None
    """What ended it before `rounds`, if something did; the models are those of before."""

    @property
    def best(self) -> Point:
        """The point of the models that were kept."""
        return next(point for point in self.points if point.round == self.chosen)

    def to_json(self) -> str:
        """One line of JSON; floats keep every bit."""
        return json.dumps(asdict(self), separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "Outcome":
        """The outcome of `to_json`."""
        try:
            document = json.loads(text)
            points = tuple(_point(point) for point in document.pop("points"))
            return cls(points=points, **document)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"not an outcome of a job: {error}. Remove the file, and the job is done again") from error


def _point(document: Mapping[str, Any]) -> Point:
    scores = {
        split: {zone: Score(**score) for zone, score in document[split].items()} for split in ("validation", "test")
    }
    return Point(document["round"], **scores)
