"""The suite's metric: from sums of scores to values, and what a value is worth beside another."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.outcome import Score

NO_LABELS = Score(0.0, 0)


@dataclass(frozen=True)
class Measure:
    """As `device.tasks.task.Metric`, without its torch: a report is written where no model is."""

    name: str
    unit: str
    root: bool
    lower_is_better: bool

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Measure":
        """The measure that `suite.json` describes."""
        return cls(**{key: document[key] for key in ("name", "unit", "root", "lower_is_better")})

    @property
    def label(self) -> str:
        """Name and unit, as on an axis: `RMSE (bpm)`."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def value(self, score: Score) -> float:
        """The mean of the scores or its root; NaN without labels."""
        if not score.count:
            return math.nan
        mean = score.total / score.count
        return math.sqrt(mean) if self.root else mean

    def pooled(self, scores: Iterable[Score]) -> float:
        """The value over all labels together, whatever zone they are of."""
        return self.value(pool(scores))

    def cost(self, value: float) -> float:
        """A number that is lower for a better value; what is not finite costs the most: it has lost."""
        if not math.isfinite(value):
            return math.inf
        return value if self.lower_is_better else -value

    def gain(self, ours: float, theirs: float) -> float:
        """By what share our value is better than theirs; negative if it is worse, NaN if that cannot be said."""
        if not (math.isfinite(ours) and math.isfinite(theirs) and theirs):
            return math.nan
        return (theirs - ours if self.lower_is_better else ours - theirs) / abs(theirs)


def pool(scores: Iterable[Score]) -> Score:
    """The scores added up, in the order given."""
    total, count = 0.0, 0
    for score in scores:
        total, count = total + score.total, count + score.count
    return Score(total, count)
