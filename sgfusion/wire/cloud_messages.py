"""`cloud.proto` and the words of the kernel (`plan.py`, `reports.py`): each message to the wire and back.

What comes in is refused where a part that must be there is not, or an enum was not set; whether its values make sense
in the run is for the cloud to say. Words come in escaped (`words.py`). A round's number of the zone is not on the wire:
the reader knows whose it is. A run's status is in `status_messages.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.message import Message

from sgfusion.errors import InputError
from sgfusion.evaluation import Score
from sgfusion.plan import Branch, DrawKind, Draws, Peer, ZonePlan, ZoneState
from sgfusion.proto.v1 import cloud_pb2 as pb
from sgfusion.reports import (
    Attendance,
    PlanVersion,
    RoundRecord,
    ZoneEvaluation,
    ZoneRecords,
    ZoneReport,
)
from sgfusion.waiting import Waiting
from sgfusion.wire.words import heard, heard_name, short
from sgfusion.zone_trainer import RoundReport

Key = TypeVar("Key")
PIECE_BYTES = 512 << 10
"""Where a piece of records is full: far below the limit of a message, whatever one more record adds."""
MOST_PLANS = 500
"""Versions of the plan that are told, the last ones."""
NOBODY = -1
"""The number of a zone that only its name says."""

STATES = {state: pb.ZoneState.Value(f"ZONE_STATE_{state.name}") for state in ZoneState}
_STATE_OF = {number: state for state, number in STATES.items()}
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
                pb.Peer(number=peer.number, zone=peer.zone, address=peer.address, state=STATES[peer.state])
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
    draws = part_of(message, "plan", "draws").draws
    if draws.kind not in _KIND_OF:
        raise InputError(f"plan.draws.kind = {draws.kind}: it says not how to draw; one of each, chosen, fixed")
    branches = (Branch(b.distance, b.probability, tuple(b.zones)) for b in draws.branches)
    return ZonePlan(
        message.version,
        message.number,
        message.reason,
        Draws(_KIND_OF[draws.kind], tuple(branches), draws.count, tuple(draws.zones)),
        tuple(
            Peer(peer.number, peer.zone, peer.address, state_of(peer.state, "plan.directory.state"))
            for peer in message.directory
        ),
    )


def report_to_wire(report: ZoneReport) -> pb.ReportRequest:
    """What an edge reports."""
    return pb.ReportRequest(
        zone=report.zone,
        state=STATES[report.state],
        round=report.round,
        rounds=[round_to_wire(record) for record in report.rounds],
        evaluations=[evaluation_to_wire(point) for point in report.evaluations],
        attendance=attendance_to_wire(report.attendance),
        overdue=short(report.overdue),
        refusals=report.refusals,
        plan=report.plan,
        diverged=short(report.diverged),
        version=report.version,
        waiting=waiting_to_wire(report.waiting),
    )


def report_from_wire(message: pb.ReportRequest) -> ZoneReport:
    """What an edge reports; its rounds are NOBODY's yet."""
    return ZoneReport(
        message.zone,
        state_of(message.state, "report.state"),
        message.round,
        tuple(round_from_wire(record, NOBODY) for record in message.rounds),
        tuple(evaluation_from_wire(point) for point in message.evaluations),
        attendance_from_wire(part_of(message, "report", "attendance").attendance),
        heard(message.overdue),
        refusals_from_wire(message.refusals),
        message.plan,
        heard(message.diverged),
        heard_name(message.version),
        waiting_from_wire(message.waiting) if message.HasField("waiting") else None,
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
        left_out=reasons_from_wire(message.left_out),
        rate=message.rate,
        local_norm=message.local_norm,
        peer_norms=dict(sorted(message.peer_norms.items())),
        direction_norm=message.direction_norm,
        step_norm=message.step_norm,
    )
    left_out = _by_device(message.devices_left_out)
    return RoundRecord(report, left_out, message.device_gradients, message.bytes_sent, message.loss)


def evaluation_to_wire(point: ZoneEvaluation) -> pb.Evaluation:
    """An evaluation."""
    validation, test = (pb.Score(total=score.total, count=score.count) for score in (point.validation, point.test))
    return pb.Evaluation(round=point.round, validation=validation, test=test, best=point.best)


def evaluation_from_wire(message: pb.Evaluation) -> ZoneEvaluation:
    """An evaluation."""
    part_of(part_of(message, "evaluation", "validation"), "evaluation", "test")
    validation, test = (Score(score.total, score.count) for score in (message.validation, message.test))
    return ZoneEvaluation(message.round, validation, test, message.best)


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
    return tuple(PlanVersion(plan.version, heard(plan.reason), plan.zones, plan.time) for plan in message.plans)


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
        heard(message.diverged),
        tuple(message.histogram),
        message.epsilon,
    )


def attendance_to_wire(attendance: Attendance) -> pb.Attendance:
    """Who attends."""
    return pb.Attendance(
        expected=attendance.expected,
        attending=attendance.attending,
        missing=_short(attendance.missing),
        departures=attendance.departures,
        other_versions=attendance.other_versions,
    )


def attendance_from_wire(message: pb.Attendance) -> Attendance:
    """Who attends."""
    attending, missing = tuple(map(heard_name, message.attending)), _by_device(message.missing)
    return Attendance(message.expected, attending, missing, message.departures, message.other_versions)


def waiting_to_wire(waiting: Waiting | None) -> pb.Waiting | None:
    """Whom a zone waits for, if it does."""
    if waiting is None:
        return None
    return pb.Waiting(
        round=waiting.round,
        seconds=waiting.seconds,
        zones=waiting.zones,
        devices=waiting.devices,
        more_devices=waiting.more_devices,
    )


def waiting_from_wire(message: pb.Waiting) -> Waiting:
    """Whom a zone waits for."""
    zones, devices = tuple(message.zones), tuple(map(heard_name, message.devices))
    return Waiting(message.round, message.seconds, zones, devices, message.more_devices)


def refusals_from_wire(refusals: Mapping[str, int]) -> dict[str, int]:
    """How often what was refused."""
    return {heard_name(reason): count for reason, count in refusals.items()}


def reasons_from_wire(reasons: Mapping[int, str]) -> dict[int, str]:
    """Why zones were left out, by their numbers."""
    return {number: heard(reason) for number, reason in sorted(reasons.items())}


def _by_device(reasons: Mapping[str, str]) -> dict[str, str]:
    return {heard_name(device): heard(reason) for device, reason in sorted(reasons.items())}


def _short(reasons: Mapping[Key, str]) -> dict[Key, str]:
    return {key: short(reason) for key, reason in reasons.items()}


def state_of(number: int, field: str) -> ZoneState:
    """The state of that number; `field` is where it stands."""
    if number not in _STATE_OF:
        known = ", ".join(state.name for state in ZoneState)
        raise InputError(f"{field} = {number}: it says not where the zone stands; one of {known}")
    return _STATE_OF[number]  # type: ignore[index]


def part_of(message: Any, name: str, field: str) -> Any:
    """The message, if it has that part."""
    if not message.HasField(field):
        raise InputError(f"{name}.{field} is missing: send it, even if all its values are 0")
    return message
