"""The cloud's metrics: how the run stands, zone by zone, and the cloud's own work (docs/metrics.md)."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from cloud.measures import CloudMeasures
from cloud.service import CloudService
from sgfusion.reports import STANDINGS, Attendance, RunStatus, ZoneEvaluation, ZoneStatus
from sgfusion.wire.channel import Keys
from sgfusion.wire.endpoint import Endpoint
from sgfusion.wire.metrics import Described, Metrics, Values, counter
from sgfusion.wire.metrics_server import MetricsServer
from sgfusion.wire.status import Refusals

ZONE = ("zone",)
RUN = Described(
    "sgfusion_cloud_run_info", "gauge", ("name", "task", "sampler", "metric", "unit"), "What is trained. Always 1."
)
ROUNDS = Described("sgfusion_cloud_rounds", "gauge", (), "Rounds that the run has.")
FINISHED = Described("sgfusion_cloud_finished", "gauge", (), "1 once all zones have ended.")
OVERDUE = Described(
    "sgfusion_cloud_overdue",
    "gauge",
    (),
    "1 while too few zones have come by the deadline, no first plan could be made, or all zones have left.",
)
PLAN = Described("sgfusion_cloud_plan_version", "gauge", (), "Version of the plan; 0 before the first.")
ZONES = Described("sgfusion_cloud_zones", "gauge", ("state",), "Zones by state.")
REPORTED = Described(
    "sgfusion_cloud_rounds_reported_total", "counter", (), "Rounds that zones reported since the cloud started."
)
DURATIONS = Described(
    "sgfusion_cloud_phase_duration_seconds",
    "histogram",
    ("phase",),
    "fit (a dendrogram), store (a batch of changes to disk), report (an edge's report, from call to answer).",
)
QUEUE = Described("sgfusion_cloud_journal_queue", "gauge", (), "Changes that wait to be written to disk.")
STORED = Described(
    "sgfusion_cloud_store_timestamp_seconds", "gauge", (), "When its last write to disk ended; a start is one."
)
STATE = Described("sgfusion_cloud_zone_state", "gauge", ("zone", "state"), "1 for the state that the zone is in.")
LOST = Described(
    "sgfusion_cloud_zone_lost",
    "gauge",
    ZONE,
    "1 while it is lost, or counts as left because of that; 0 if it left by its own word or had ended.",
)
ROUND = Described("sgfusion_cloud_zone_round", "gauge", ZONE, "The last round that the zone has reported.")
ZONE_PLAN = Described("sgfusion_cloud_zone_plan_version", "gauge", ZONE, "Version of the plan that it trains by.")
LOSS = Described("sgfusion_cloud_zone_loss", "gauge", ZONE, "Training loss of its last round.")
SCORE = Described(
    "sgfusion_cloud_zone_score",
    "gauge",
    ("zone", "split"),
    "The task's metric at the last evaluation, on validation or test samples. Which it is: sgfusion_cloud_run_info.",
)
BEST = Described(
    "sgfusion_cloud_zone_best_score", "gauge", ("zone", "split"), "The same, of the model that is best so far."
)
DEVICES = Described(
    "sgfusion_cloud_zone_devices",
    "gauge",
    ("zone", "state"),
    "Devices by state, as its edge says: attending, late (here, but did not answer in time), gone (was here once).",
)
EXPECTED = Described(
    "sgfusion_cloud_zone_devices_expected", "gauge", ZONE, "Devices that its edge was told to wait for."
)
ZONE_OVERDUE = Described(
    "sgfusion_cloud_zone_overdue", "gauge", ZONE, "1 while it waits for devices beyond a deadline."
)
EPSILON = Described(
    "sgfusion_cloud_zone_epsilon",
    "gauge",
    ZONE,
    "The largest ε that a device of its histogram has spent; 0: no noise. Not there before it has a histogram.",
)
DESCRIBED = (
    RUN, ROUNDS, FINISHED, OVERDUE, PLAN, ZONES, REPORTED, DURATIONS, QUEUE, STORED, STATE, LOST, ROUND, ZONE_PLAN,
    LOSS, SCORE, BEST, DEVICES, EXPECTED, ZONE_OVERDUE, EPSILON,
)  # fmt: skip


class CloudMetrics(CloudMeasures, Metrics):
    """What the cloud measures and shows."""

    def __init__(self, service: CloudService, *, refusals: Refusals, keys: Sequence[Keys], state: Path) -> None:
        super().__init__("cloud", durations=DURATIONS, refusals=refusals, keys=keys, state=state)
        self._service = service
        self._rounds = counter(REPORTED, self.registry)

    def reported(self, rounds: int) -> None:
        """So many more."""
        self._rounds.inc(rounds)

    def seen(self) -> Iterable[tuple[Described, Values]]:
        """How the run stands."""
        status, run = self._service.status(), self._service.shown.run
        metric = ("", "") if status.metric is None else (status.metric.name, status.metric.unit)
        yield RUN, {(run.name, run.task.name, run.sampler.kind, *metric): 1.0}
        yield ROUNDS, {(): status.rounds}
        yield FINISHED, {(): float(status.finished)}
        yield OVERDUE, {(): float(bool(status.overdue))}
        yield PLAN, {(): status.plan}
        yield QUEUE, {(): self._service.queued}
        yield STORED, {(): self._service.committed}
        yield from of_zones(status)
        zones = self._service.shown.zones.values()
        yield LOST, {(zone.name,): float(zone.missed) for zone in zones}
        yield EPSILON, {(zone.name,): zone.epsilon for zone in zones if zone.histogram}


def of_zones(status: RunStatus) -> Iterable[tuple[Described, Values]]:
    """Zone by zone."""
    counts = Counter(zone.standing for zone in status.zones)
    yield ZONES, {(standing,): counts[standing] for standing in STANDINGS}
    yield STATE, {(z.zone, standing): float(z.standing == standing) for z in status.zones for standing in STANDINGS}
    yield ROUND, {(z.zone,): z.round for z in status.zones}
    yield ZONE_PLAN, {(z.zone,): z.plan for z in status.zones}
    yield LOSS, {(z.zone,): z.loss for z in status.zones if z.round}
    yield SCORE, _scores(status, [(zone, zone.last) for zone in status.zones])
    yield BEST, _scores(status, [(zone, zone.best) for zone in status.zones])
    yield DEVICES, {(z.zone, state): count for z in status.zones for state, count in _census(z.attendance).items()}
    yield EXPECTED, {(z.zone,): z.attendance.expected for z in status.zones}
    yield ZONE_OVERDUE, {(z.zone,): float(bool(z.overdue)) for z in status.zones}


def _census(attendance: Attendance) -> dict[str, int]:
    """As the edge's own: each device is in one state."""
    here, missing = set(attendance.attending), set(attendance.missing)
    return {"attending": len(here - missing), "late": len(here & missing), "gone": len(missing - here)}


def _scores(status: RunStatus, points: Sequence[tuple[ZoneStatus, ZoneEvaluation | None]]) -> Values:
    """By zone and split; what nobody has evaluated is not there."""
    found: dict[tuple[str, ...], float] = {}
    for zone, point in points:
        if point is None or status.metric is None:
            continue
        for split, score in (("validation", point.validation), ("test", point.test)):
            value = status.metric.value(score.total, score.count)
            if not math.isnan(value):
                found[zone.zone, split] = value
    return found


def shown_at(
    endpoint: Endpoint, service: CloudService, *, refusals: Refusals, keys: Keys | None, state: Path
) -> MetricsServer:
    """The cloud's measures are kept from now on, and shown there once that is started."""
    service.measures = metrics = CloudMetrics(
        service, refusals=refusals, keys=() if keys is None else (keys,), state=state
    )
    return MetricsServer(endpoint, metrics, state)
