"""`summary.json` of a results folder: what a run came to, whoever trained it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from device.tasks.task import Task
from sgfusion.evaluation import Metric
from simulator.methods.registry import METHODS
from simulator.outcome import Outcome, Score


class Known(Protocol):
    """What a summary says of the data that a run was trained on."""

    @property
    def task(self) -> Task:
        """The run's task."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the data, and why."""

    @property
    def synthetic(self) -> bool:
        """Whether it is made up."""


@dataclass(frozen=True)
class Elsewhere:
    """Data that only the devices have."""

    task: Task
    notes: tuple[str, ...] = ()
    synthetic: bool = False


def summarise(
    data: Known,
    *,
    method: str,
    seed: int,
    zones: Sequence[str],
    outcomes: Sequence[Outcome],
    models: Sequence[str],
    notes: Sequence[str],
    again: str,
) -> dict[str, Any]:
    """What each zone had before and has with the models that were kept, and what it cost.

    `outcomes` is one for each zone, or the one of a method whose zones do not train apart. `again` repeats the run from
    its results folder: a run file does not name a method that has no kind of sampler.
    """
    metric = data.task.metric
    of_zone = {zone: next(o for o in outcomes if o.zone in (zone, None)) for zone in zones}
    drawn = [o.drawn for o in outcomes if o.drawn is not None]
    homophily = [o.homophily for o in outcomes if o.homophily is not None]
    return {
        "method": method,
        "title": METHODS[method].title,
        "task": data.task.name,
        "synthetic": data.synthetic,
        "seed": seed,
        "again": again,
        "metric": vars(metric),
        "zones": {
            zone: {
                "before": value_of(metric, [outcome.points[0].test[zone]]),
                "test": value_of(metric, [outcome.best.test[zone]]),
                "validation": value_of(metric, [outcome.best.validation[zone]]),
                "round": outcome.chosen,
                "drawn": outcome.drawn,
                "diverged": outcome.diverged,
            }
            for zone, outcome in of_zone.items()
        },
        "pooled": {
            "before": value_of(metric, [outcome.points[0].test[zone] for zone, outcome in of_zone.items()]),
            "test": value_of(metric, [outcome.best.test[zone] for zone, outcome in of_zone.items()]),
        },
        "drawn": math.fsum(drawn) / len(drawn) if drawn else None,
        "homophily": math.fsum(homophily) / len(homophily) if homophily else None,
        "parameters": outcomes[0].parameters,
        "device_gradients": sum(o.device_gradients for o in outcomes),
        "bytes_sent": sum(o.bytes_sent for o in outcomes),
        "notes": list(notes),
        "models": list(models),
    }


def with_alone(summary: Mapping[str, Any], metric: Metric, alone: Mapping[str, Outcome]) -> dict[str, Any]:
    """The summary with what each zone comes to when it trains alone (SGeoFL) on the same data, and the round it keeps.

    A zone that joined a cluster has its data elsewhere: nobody here can train it alone, so nothing is pooled either.
    """
    scores = {zone: [alone[zone].best.test[zone]] if zone in alone else None for zone in summary["zones"]}
    zones = {
        zone: {
            **found,
            "alone": None if (score := scores[zone]) is None else value_of(metric, score),
            "alone_round": alone[zone].chosen if zone in alone else None,
        }
        for zone, found in summary["zones"].items()
    }
    all_scores = [one for score in scores.values() for one in score or ()]
    others = [zone for zone, score in scores.items() if score is None]
    pooled = None if others else value_of(metric, all_scores)
    notes = [f"joined later, so not trained alone, nor are all zones together compared: {', '.join(others)}"]
    return {
        **summary,
        "zones": zones,
        "pooled": {**summary["pooled"], "alone": pooled},
        "notes": [*summary["notes"], *(notes if others else ())],
    }


def value_of(metric: Metric, scores: Sequence[Score]) -> float | None:
    """The metric over the labels of all; None where there are none: JSON has no NaN."""
    value = metric.value(math.fsum(s.total for s in scores), sum(s.count for s in scores))
    return value if math.isfinite(value) else None
