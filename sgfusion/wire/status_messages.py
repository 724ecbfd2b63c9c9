"""How a run stands, to the wire and back (`Status` of `cloud.proto`).

Words come in escaped here too, though the cloud has them from edges so: a console may ask a cloud of before that.
"""

from typing import Any

from sgfusion.evaluation import Metric
from sgfusion.proto.v1 import cloud_pb2 as pb
from sgfusion.reports import Event, RunStatus, ZoneStatus
from sgfusion.wire.cloud_messages import (
    STATES,
    attendance_from_wire,
    attendance_to_wire,
    evaluation_from_wire,
    evaluation_to_wire,
    part_of,
    reasons_from_wire,
    refusals_from_wire,
    state_of,
    waiting_from_wire,
    waiting_to_wire,
)
from sgfusion.wire.words import heard, heard_name, short

STATUS_BYTES = 3 << 20
"""Where a status is cut to what fits a message."""
SHOWN = 10
"""Names of a list that is cut short."""


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
        heard(message.reason),
        tuple(_zone_from_wire(zone) for zone in message.zones),
        message.finished,
        heard(message.overdue),
        refusals_from_wire(message.refusals),
        tuple(Event(event.time, heard(event.text)) for event in message.events),
        _metric_from_wire(message.metric) if message.HasField("metric") else None,
        message.time,
        heard_name(message.version),
    )


def _zone_to_wire(zone: ZoneStatus) -> pb.ZoneStatus:
    points = {name: getattr(zone, name) for name in ("first", "last", "best")}
    return pb.ZoneStatus(
        number=zone.number,
        zone=zone.zone,
        address=zone.address,
        state=STATES[zone.state],
        round=zone.round,
        attendance=attendance_to_wire(zone.attendance),
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
        waiting=waiting_to_wire(zone.waiting),
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
        state=state_of(message.state, "status.zones.state"),
        round=message.round,
        attendance=attendance_from_wire(part_of(message, "status.zones", "attendance").attendance),
        drawn=tuple(message.drawn),
        left_out=reasons_from_wire(message.left_out),
        loss=message.loss,
        overdue=heard(message.overdue),
        refusals=refusals_from_wire(message.refusals),
        plan=message.plan,
        diverged=heard(message.diverged),
        leased=message.leased,
        attention=dict(sorted(message.attention.items())),
        epsilon=message.epsilon,
        version=heard_name(message.version),
        waiting=waiting_from_wire(message.waiting) if message.HasField("waiting") else None,
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


def _metric_to_wire(metric: Metric) -> pb.Metric:
    return pb.Metric(name=metric.name, unit=metric.unit, root=metric.root, lower_is_better=metric.lower_is_better)


def _metric_from_wire(message: pb.Metric) -> Metric:
    return Metric(heard_name(message.name), heard_name(message.unit), message.root, message.lower_is_better)
