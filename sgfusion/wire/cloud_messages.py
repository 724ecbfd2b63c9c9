"""`cloud.proto` and the words of the kernel (`plan.py`, `reports.py`): each message to the wire and back.

What comes in is refused where a part that must be there is not, or an enum was not set; whether its values make sense
in the run is for the cloud to say. A round's number of the zone is not on the wire: the reader knows whose it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.message import Message

from sgfusion.errors import InputError
from sgfusion.evaluation import Metric, Score
from sgfusion.plan import Branch, DrawKind, Draws, Peer, ZonePlan, ZoneState
from sgfusion.proto.v1 import cloud_pb2 as pb
from sgfusion.reports import (
    Attendance,
    Event,
    PlanVersion,
    RoundRecord,
    RunStatus,
    ZoneEvaluation,
    ZoneRecords,
    ZoneReport,
    ZoneStatus,
)
from sgfusion.waiting import Waiting
from sgfusion.zone_trainer import RoundReport

Key = TypeVar("Key")
PIECE_BYTES = 512 << 10
"""Where a piece of records is full: far below the limit of a message, whatever one more record adds."""
STATUS_BYTES = 3 << 20
"""Where a status is cut to what fits a message."""
MOST_PLANS = 500
"""Versions of the plan that are told, the last ones."""
SHOWN = 10
"""Names of a list that is cut short."""
LONGEST_TEXT = 1000
"""Characters of a reason: senders cut what is longer, for a round must not go unreported for its words."""
NOBODY = -1
"""The number of a zone that only its name says."""

_STATES = {state: pb.ZoneState.Value(f"ZONE_STATE_{state.name}") for state in ZoneState}
_STATE_OF = {number: state for state, number in _STATES.items()}
_KINDS: dict[DrawKind, "pb.DrawKind.ValueType"] = {
    "each": pb.DRAW_KIND_EACH,
    "chosen": pb.DRAW_KIND_CHOSEN,
    "fixed": pb.DRAW_KIND_FIXED,
}
_KIND_OF = {number: kind for kind, number in _KINDS.items()}


class Directories:
    """The directory of plans on the wire, made once for all zones that are sent the same."""

    def __init__(self) -> None:
        self._directory: tuple[Peer, ...] | None = None
        self._wire = pb.Plan()

    def add_to(self, message: pb.Plan, directory: tuple[Peer, ...]) -> pb.Plan:
        """The message with that directory."""
        if directory is not self._directory:
            peers = (
                pb.Peer(number=peer.number, zone=peer.zone, address=peer.address, state=_STATES[peer.state])
                for peer in directory
            )
            self._directory, self._wire = directory, pb.Plan(directory=peers)
        message.MergeFrom(self._wire)
        return message


def plan_to_wire(plan: ZonePlan, directories: Directories | None = None) -> pb.Plan:
    """A zone's plan."""
    draws = plan.draws
    message = pb.Plan(
        version=plan.version,
        number=plan.number,
        reason=short(plan.reason),
        draws=pb.Draws(
            branches=[pb.Branch(distance=b.distance, probability=b.probability, zones=b.zones) for b in draws.branches],
            kind=_KINDS[draws.kind],
            count=draws.count,
            zones=draws.zones,
        ),
    )
    return (directories or Directories()).add_to(message, plan.directory)


def plan_from_wire(message: pb.Plan) -> ZonePlan:
    """A zone's plan."""
    draws = _part(message, "plan", "draws").draws
    if draws.kind not in _KIND_OF:
        raise InputError(f"plan.draws.kind = {draws.kind}: it says not how to draw; one of each, chosen, fixed")
    branches = (Branch(b.distance, b.probability, tuple(b.zones)) for b in draws.branches)
    return ZonePlan(
        message.version,
        message.number,
        message.reason,
        Draws(_KIND_OF[draws.kind], tuple(branches), draws.count, tuple(draws.zones)),
        tuple(
            Peer(peer.number, peer.zone, peer.address, _state(peer.state, "plan.directory.state"))
            for peer in message.directory
        ),
    )


def report_to_wire(report: ZoneReport) -> pb.ReportRequest:
    """What an edge reports."""
    return pb.ReportRequest(
        zone=report.zone,
        state=_STATES[report.state],
        round=report.round,
        rounds=[round_to_wire(record) for record in report.rounds],
        evaluations=[evaluation_to_wire(point) for point in report.evaluations],
        attendance=_attendance_to_wire(report.attendance),
        overdue=short(report.overdue),
        refusals=report.refusals,
        plan=report.plan,
        diverged=short(report.diverged),
        version=report.version,
        waiting=_waiting_to_wire(report.waiting),
    )


def report_from_wire(message: pb.ReportRequest) -> ZoneReport:
    """What an edge reports; its rounds are NOBODY's yet."""
    return ZoneReport(
        message.zone,
        _state(message.state, "report.state"),
        message.round,
        tuple(round_from_wire(record, NOBODY) for record in message.rounds),
        tuple(evaluation_from_wire(point) for point in message.evaluations),
        _attendance_from_wire(_part(message, "report", "attendance").attendance),
        message.overdue,
        dict(message.refusals),
        message.plan,
        message.diverged,
        message.version,
        _waiting_from_wire(message.waiting) if message.HasField("waiting") else None,
    )


def round_to_wire(record: RoundRecord) -> pb.RoundRecord:
    """A round."""
    report = record.report
    return pb.RoundRecord(
        round=report.round,
        drawn=report.drawn,
        attention=report.attention,
        left_out=_short(report.left_out),
        rate=report.rate,
        local_norm=report.local_norm,
        peer_norms=report.peer_norms,
        direction_norm=report.direction_norm,
        step_norm=report.step_norm,
        devices_left_out=_short(record.devices_left_out),
        device_gradients=record.device_gradients,
        bytes_sent=record.bytes_sent,
        loss=record.loss,
    )


def round_from_wire(message: pb.RoundRecord, zone: int) -> RoundRecord:
    """A round of the zone of that number. Maps come in any order: by number here, as the kernel has them."""
    report = RoundReport(
        zone=zone,
        round=message.round,
        drawn=tuple(message.drawn),
        attention=dict(sorted(message.attention.items())),
        left_out=dict(sorted(message.left_out.items())),
        rate=message.rate,
        local_norm=message.local_norm,
        peer_norms=dict(sorted(message.peer_norms.items())),
        direction_norm=message.direction_norm,
        step_norm=message.step_norm,
    )
    left_out = dict(sorted(message.devices_left_out.items()))
    return RoundRecord(report, left_out, message.device_gradients, message.bytes_sent, message.loss)


def evaluation_to_wire(point: ZoneEvaluation) -> pb.Evaluation:
    """An evaluation."""
    validation, test = (pb.Score(total=score.total, count=score.count) for score in (point.validation, point.test))
    return pb.Evaluation(round=point.round, validation=validation, test=test, best=point.best)


def evaluation_from_wire(message: pb.Evaluation) -> ZoneEvaluation:
    """An evaluation."""
    _part(_part(message, "evaluation", "validation"), "evaluation", "test")
    validation, test = (Score(score.total, score.count) for score in (message.validation, message.test))
    return ZoneEvaluation(message.round, validation, test, message.best)


def status_to_wire(status: RunStatus) -> pb.Status:
    """How a run stands; in so large a run that it would not fit a message, long lists are cut and say so."""
    message = pb.Status(
        run=status.run,
        rounds=status.rounds,
        plan=status.plan,
        reason=short(status.reason),
        zones=[_zone_to_wire(zone) for zone in status.zones],
        finished=status.finished,
        overdue=short(status.overdue),
        refusals=status.refusals,
        events=[pb.Event(time=event.time, text=short(event.text)) for event in status.events],
        metric=None if status.metric is None else _metric_to_wire(status.metric),
        time=status.time,
        version=status.version,
    )
    if message.ByteSize() > STATUS_BYTES:
        for zone in message.zones:
            _cut(zone)
    return message


def status_from_wire(message: pb.Status) -> RunStatus:
    """How a run stands."""
    return RunStatus(
        message.run,
        message.rounds,
        message.plan,
        message.reason,
        tuple(_zone_from_wire(zone) for zone in message.zones),
        message.finished,
        message.overdue,
        dict(message.refusals),
        tuple(Event(event.time, event.text) for event in message.events),
        _metric_from_wire(message.metric) if message.HasField("metric") else None,
        message.time,
        message.version,
    )


def tree_pieces(text: str, plans: Sequence[PlanVersion] = ()) -> Iterator[pb.GetRecordsResponse]:
    """`dendrogram.json` in pieces, the first with the plans so far; one if it is short, also if there is none."""
    size = PIECE_BYTES // 4  # characters, of at most four bytes
    versions = [
        pb.PlanVersion(version=plan.version, reason=short(plan.reason), zones=plan.zones, time=plan.time)
        for plan in plans[-MOST_PLANS:]
    ]
    for start in range(0, max(len(text), 1), size):
        yield pb.GetRecordsResponse(dendrogram=text[start : start + size], plans=() if start else versions)


def plans_from_wire(message: pb.GetRecordsResponse) -> tuple[PlanVersion, ...]:
    """The plans that a piece has."""
    return tuple(PlanVersion(plan.version, plan.reason, plan.zones, plan.time) for plan in message.plans)


def records_pieces(records: ZoneRecords) -> Iterator[pb.GetRecordsResponse]:
    """A zone's records in pieces; at least one."""

    def empty() -> pb.GetRecordsResponse:
        return pb.GetRecordsResponse(
            zone=records.zone,
            parameters=records.parameters,
            devices=records.devices,
            diverged=records.diverged,
            histogram=records.histogram,
            epsilon=records.epsilon,
        )

    piece, size = empty(), 0
    converted: Iterator[Message] = (
        wire
        for part in (map(round_to_wire, records.rounds), map(evaluation_to_wire, records.evaluations))
        for wire in part
    )
    for message in converted:
        more = message.ByteSize()
        if size and size + more > PIECE_BYTES:
            yield piece
            piece, size = empty(), 0
        if isinstance(message, pb.RoundRecord):
            piece.rounds.append(message)
        elif isinstance(message, pb.Evaluation):
            piece.evaluations.append(message)
        size += more
    yield piece


def records_from_wire(message: pb.GetRecordsResponse) -> ZoneRecords:
    """A piece of a zone's records; its rounds are NOBODY's yet."""
    return ZoneRecords(
        message.zone,
        tuple(round_from_wire(record, NOBODY) for record in message.rounds),
        tuple(evaluation_from_wire(point) for point in message.evaluations),
        message.parameters,
        message.devices,
        message.diverged,
        tuple(message.histogram),
        message.epsilon,
    )


def _zone_to_wire(zone: ZoneStatus) -> pb.ZoneStatus:
    points = {name: getattr(zone, name) for name in ("first", "last", "best")}
    return pb.ZoneStatus(
        number=zone.number,
        zone=zone.zone,
        address=zone.address,
        state=_STATES[zone.state],
        round=zone.round,
        attendance=_attendance_to_wire(zone.attendance),
        drawn=zone.drawn,
        left_out=zone.left_out,
        loss=zone.loss,
        overdue=short(zone.overdue),
        refusals=zone.refusals,
        plan=zone.plan,
        diverged=zone.diverged,
        leased=zone.leased,
        attention=zone.attention,
        epsilon=zone.epsilon,
        version=zone.version,
        waiting=_waiting_to_wire(zone.waiting),
        unanswering=zone.unanswering,
        **{name: None if point is None else evaluation_to_wire(point) for name, point in points.items()},
    )


def _zone_from_wire(message: pb.ZoneStatus) -> ZoneStatus:
    points: dict[str, Any] = {
        name: evaluation_from_wire(getattr(message, name)) if message.HasField(name) else None
        for name in ("first", "last", "best")
    }
    return ZoneStatus(
        number=message.number,
        zone=message.zone,
        address=message.address,
        state=_state(message.state, "status.zones.state"),
        round=message.round,
        attendance=_attendance_from_wire(_part(message, "status.zones", "attendance").attendance),
        drawn=tuple(message.drawn),
        left_out=dict(sorted(message.left_out.items())),
        loss=message.loss,
        overdue=message.overdue,
        refusals=dict(message.refusals),
        plan=message.plan,
        diverged=message.diverged,
        leased=message.leased,
        attention=dict(sorted(message.attention.items())),
        epsilon=message.epsilon,
        version=message.version,
        waiting=_waiting_from_wire(message.waiting) if message.HasField("waiting") else None,
        unanswering=message.unanswering,
        **points,
    )


def _cut(zone: pb.ZoneStatus) -> None:
    """Keep what a console can show."""
    attending, missing = list(zone.attendance.attending), dict(zone.attendance.missing)
    if len(attending) > SHOWN:
        del zone.attendance.attending[SHOWN:]
        zone.attendance.attending.append(f"… {len(attending) - SHOWN} more")
    if len(missing) > SHOWN:
        for device in list(missing)[SHOWN:]:
            del zone.attendance.missing[device]
        zone.attendance.missing["…"] = f"{len(missing) - SHOWN} more"
    for number in list(zone.left_out)[SHOWN:]:
        del zone.left_out[number]
    for number in list(zone.attention)[SHOWN:]:
        del zone.attention[number]
    del zone.drawn[SHOWN:]
    if zone.HasField("waiting"):
        del zone.waiting.zones[SHOWN:]
        zone.waiting.more_devices += len(zone.waiting.devices[SHOWN:])
        del zone.waiting.devices[SHOWN:]


def _attendance_to_wire(attendance: Attendance) -> pb.Attendance:
    return pb.Attendance(
        expected=attendance.expected,
        attending=attendance.attending,
        missing=_short(attendance.missing),
        departures=attendance.departures,
    )


def _attendance_from_wire(message: pb.Attendance) -> Attendance:
    missing = dict(sorted(message.missing.items()))
    return Attendance(message.expected, tuple(message.attending), missing, message.departures)


def _waiting_to_wire(waiting: Waiting | None) -> pb.Waiting | None:
    if waiting is None:
        return None
    return pb.Waiting(
        round=waiting.round,
        seconds=waiting.seconds,
        zones=waiting.zones,
        devices=waiting.devices,
        more_devices=waiting.more_devices,
    )


def _waiting_from_wire(message: pb.Waiting) -> Waiting:
    zones, devices = tuple(message.zones), tuple(message.devices)
    return Waiting(message.round, message.seconds, zones, devices, message.more_devices)


def short(text: str) -> str:
    """As much of a text for people as goes on the wire: one that names zones grows with their number."""
    return text[:LONGEST_TEXT]


def _short(reasons: Mapping[Key, str]) -> dict[Key, str]:
    return {key: short(reason) for key, reason in reasons.items()}


def _metric_to_wire(metric: Metric) -> pb.Metric:
    return pb.Metric(name=metric.name, unit=metric.unit, root=metric.root, lower_is_better=metric.lower_is_better)


def _metric_from_wire(message: pb.Metric) -> Metric:
    return Metric(message.name, message.unit, message.root, message.lower_is_better)


def _state(number: int, field: str) -> ZoneState:
    if number not in _STATE_OF:
        known = ", ".join(state.name for state in ZoneState)
        raise InputError(f"{field} = {number}: it says not where the zone stands; one of {known}")
    return _STATE_OF[number]  # type: ignore[index]


def _part(message: Any, name: str, field: str) -> Any:
    """The message, if it has that part."""
    if not message.HasField(field):
        raise InputError(f"{name}.{field} is missing: send it, even if all its values are 0")
    return message
