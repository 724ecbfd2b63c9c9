"""`zones.json` of a results folder: what only the page shows of a run (docs/simulator.md)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from console.summary import value_of
from sgfusion.evaluation import Choice, Metric, Score
from sgfusion.reports import Event, PlanVersion, RunStatus, ZoneEvaluation, ZoneRecords
from simulator.outcome import Outcome
from simulator.world import World

Document = dict[str, Any]


def zones_of_world(world: World, outcomes: Sequence[Outcome]) -> Document:
    """Of a simulated run: nobody's clock, one dendrogram, no bytes."""
    metric = world.task.metric
    epsilon = world.run.histogram.epsilon
    of_zone = {zone: outcome for outcome in outcomes for zone in outcome.points[0].test}
    return {
        "edges": world.task.edges.tolist(),
        "zones": {
            zone: {
                "number": number,
                "histogram": world.histograms[number].tolist(),
                "devices": len(world.data.zones[number].devices),
                "epsilon": 0.0 if epsilon == "off" else epsilon,
                "evaluations": _rows(metric, _evaluations(metric, of_zone[zone], zone)),
            }
            for number, zone in enumerate(world.zones)
        },
        "pooled": _pooled(metric, [_evaluations(metric, of_zone[zone], zone) for zone in world.zones]),
        "plans": [],
        "events": [],
    }


def zones_of_cluster(
    metric: Metric,
    edges: Sequence[float],
    status: RunStatus,
    records: Sequence[ZoneRecords],
    plans: Sequence[PlanVersion],
    *,
    others: Sequence[ZoneRecords] = (),
) -> Document:
    """Of a cluster's run, as its cloud tells it. Who has no results has a number all the same: others drew it; and a
    state that says why, with what is known of it until then.
    """
    known = {zone.zone: zone for zone in (*records, *others)}
    trained = {zone.zone for zone in records}
    return {
        "edges": list(edges),
        "zones": {
            zone.zone: {
                "number": zone.number,
                **({} if zone.zone in trained else {"state": zone.state.value}),
                **(_of_records(metric, known[zone.zone]) if zone.zone in known else {}),
            }
            for zone in status.zones
        },
        "pooled": _pooled(metric, [zone.evaluations for zone in records]),
        "plans": [vars(plan) for plan in plans],
        "events": [_event(event) for event in status.events],
    }


def _of_records(metric: Metric, zone: ZoneRecords) -> Document:
    return {
        "histogram": list(zone.histogram),
        "devices": zone.devices,
        "epsilon": zone.epsilon,
        "evaluations": _rows(metric, zone.evaluations),
        "rounds": [[record.report.round, record.loss, record.bytes_sent] for record in zone.rounds],
    }


def _evaluations(metric: Metric, outcome: Outcome, zone: str) -> list[ZoneEvaluation]:
    """A zone's part of the trajectory. Which was the best until then is told by all zones that share a model."""
    choice: Choice[str] = Choice(metric)
    return [
        ZoneEvaluation(point.round, point.validation[zone], point.test[zone], best=choice.offer(point, "kept"))
        for point in outcome.points
    ]


def _rows(metric: Metric, points: Iterable[ZoneEvaluation]) -> list[list[float | None]]:
    return [[p.round, value_of(metric, [p.validation]), value_of(metric, [p.test]), int(p.best)] for p in points]


def _pooled(metric: Metric, zones: Sequence[Sequence[ZoneEvaluation]]) -> list[list[float | None]]:
    """Over the labels of all zones, at rounds that all have evaluated."""
    by_round: dict[int, list[tuple[Score, Score]]] = {}
    for points in zones:
        for point in points:
            by_round.setdefault(point.round, []).append((point.validation, point.test))
    return [
        [round, value_of(metric, [v for v, _ in scores]), value_of(metric, [t for _, t in scores])]
        for round, scores in sorted(by_round.items())
        if len(scores) == len(zones)
    ]


def _event(event: Event) -> Mapping[str, Any]:
    return {"time": event.time, "text": event.text}
