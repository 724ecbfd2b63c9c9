"""One entry of a suite on one data set with one seed: its jobs taken together."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from console.formats import mean
from console.report.measure import NO_LABELS, Measure, pool
from simulator.outcome import Outcome, Point, Score

Split = Literal["validation", "test"]
SPLITS: tuple[Split, Split] = ("test", "validation")


@dataclass(frozen=True)
class Run:
    """A finished run. Invariant: every zone is in exactly one of its outcomes."""

    seed: int
    outcomes: tuple[Outcome, ...]

    def outcome_of(self, zone: str) -> Outcome:
        """The job that trained the zone."""
        return self._by_zone[None] if None in self._by_zone else self._by_zone[zone]

    @cached_property
    def _by_zone(self) -> dict[str | None, Outcome]:
        return {outcome.zone: outcome for outcome in self.outcomes}

    def kept(self, zone: str, split: Split) -> Score:
        """The zone's scores by the models that were kept; no labels, if the zone was not evaluated."""
        return _scores(self.outcome_of(zone).best, split).get(zone, NO_LABELS)

    def values(self, measure: Measure, zones: Sequence[str], split: Split = "test") -> list[float]:
        """The kept models' value in each zone."""
        return [measure.value(self.kept(zone, split)) for zone in zones]

    def pooled(self, measure: Measure, zones: Sequence[str], split: Split = "test") -> float:
        """The kept models' value over the labels of all zones."""
        return measure.pooled(self.kept(zone, split) for zone in zones)

    @property
    def rounds(self) -> list[int]:
        """The rounds at which any of its models was evaluated, ascending."""
        return sorted({point.round for outcome in self.outcomes for point in outcome.points})

    def curve(self, measure: Measure, zones: Sequence[str], rounds: Sequence[int], split: Split) -> list[float]:
        """The pooled value after each round. A job that ended early stays at its last models."""
        jobs = {zone: self.outcome_of(zone) for zone in zones}
        at = {zone: [point.round for point in job.points] for zone, job in jobs.items()}
        return [
            measure.value(
                pool(
                    _scores(jobs[zone].points[max(0, bisect_right(at[zone], round) - 1)], split).get(zone, NO_LABELS)
                    for zone in zones
                )
            )
            for round in rounds
        ]

    @property
    def device_gradients(self) -> int:
        """Gradients of one device that all jobs computed."""
        return sum(outcome.device_gradients for outcome in self.outcomes)

    @property
    def bytes_sent(self) -> int:
        """What a real deployment would have sent for all jobs."""
        return sum(outcome.bytes_sent for outcome in self.outcomes)

    @property
    def chosen(self) -> float:
        """The mean of the rounds whose models were kept."""
        return mean([float(outcome.chosen) for outcome in self.outcomes])

    @property
    def drawn(self) -> float | None:
        """Zones drawn a round, in the mean over jobs; None for a method that draws none."""
        return _mean_of_known([outcome.drawn for outcome in self.outcomes])

    @property
    def homophily(self) -> float | None:
        """The mean label distance to the zones drawn (method 9); None without any draw."""
        return _mean_of_known([outcome.homophily for outcome in self.outcomes])

    @property
    def diverged(self) -> list[Outcome]:
        """The jobs that ended before their last round."""
        return [outcome for outcome in self.outcomes if outcome.diverged is not None]


def _scores(point: Point, split: Split) -> Mapping[str, Score]:
    return point.test if split == "test" else point.validation


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known else None
