"""What edges and devices say never reaches a terminal as more than text."""

import io
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum

import grpc
import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cloud.checks import check_report
from cloud.state import first_state
from console.live import live_view
from console.status import status_lines, status_table
from sgfusion.errors import InputError
from sgfusion.evaluation import Metric
from sgfusion.plan import ZoneState
from sgfusion.proto.v1 import cloud_pb2 as pb
from sgfusion.reports import Attendance, Event, RoundRecord, RunStatus, ZoneRecords, ZoneReport, ZoneStatus
from sgfusion.waiting import Waiting
from sgfusion.wire.attending import model_from_wire, model_to_wire
from sgfusion.wire.cloud_messages import records_from_wire, records_pieces, report_from_wire, report_to_wire
from sgfusion.wire.log_lines import escaped
from sgfusion.wire.status import from_rpc_error
from sgfusion.wire.status_messages import status_from_wire, status_to_wire
from sgfusion.wire.words import LONGEST_ID, LONGEST_TEXT, heard, heard_name
from tests.cloud.values import MODEL, NAMES, a_report, a_round, a_run

EVIL = "\x1b[2J\x1b]0;owned\x07 late\nash: done \u202egnp [/x]"
"""Clears the screen, renames the window, begins a line, turns the rest around and ends a style that nobody began."""
TAME = r"\u001b[2J\u001b]0;owned\u0007 late\nash: done \u202egnp [/x]"


def evil_round() -> RoundRecord:
    record = a_round(1, zone=-1)
    return replace(record, report=replace(record.report, left_out={3: EVIL}), devices_left_out={EVIL: EVIL})


def evil_report() -> ZoneReport:
    return a_report(
        "ash",
        round=1,
        rounds=(evil_round(),),
        attendance=Attendance(3, (EVIL,), {EVIL: EVIL}),
        overdue=EVIL,
        refusals={EVIL: 2},
        diverged=EVIL,
        version=EVIL,
        waiting=Waiting(1, 9.0, (), (EVIL,), 0),
    )


def texts(value: object) -> Iterator[str]:
    """Every text in it, also of keys."""
    if isinstance(value, Enum):
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (*texts(key), *texts(each))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from texts(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts(getattr(value, field.name))


def printed(status: RunStatus) -> str:
    """All that `sgfusion status` and `sgfusion up` print of it, to a terminal without colours."""
    file = io.StringIO()
    screen = Console(file=file, width=4000, force_terminal=False, color_system=None)
    screen.print(status_table(status, screen.width))
    for line in status_lines(status, time.time()):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)
    screen.print(live_view(status, seconds=1.0, doing="waits"))
    return file.getvalue()


def test_a_report_is_escaped_as_it_comes_off_the_wire() -> None:
    wire = pb.ReportRequest.FromString(report_to_wire(evil_report()).SerializeToString())
    report = report_from_wire(wire)
    found = [text for text in texts(report) if text not in ("", "ash")]
    assert found == [TAME] * 11  # in nine fields, two of which are tables by name
    assert all(text.isprintable() for text in found)
    check_report(first_state(a_run(), started=0.0), report)


def test_what_an_edge_says_moves_no_operators_cursor() -> None:
    """From a report, through the cloud's status and over the wire again, to what the console prints."""
    report = report_from_wire(report_to_wire(evil_report()))
    zone = ZoneStatus(
        0,
        "ash",
        "h:1",
        ZoneState.TRAINING,
        round=1,
        attendance=report.attendance,
        left_out=report.rounds[0].report.left_out,
        overdue=report.overdue,
        refusals=report.refusals,
        diverged=report.diverged,
        version=report.version,
        waiting=report.waiting,
    )
    event = Event(1.0, f"devices gone: {', '.join(report.attendance.missing)}")
    status = RunStatus("woods", 20, 1, "all", (zone,), finished=False, overdue=report.overdue, events=(event,))
    status = replace(status, metric=Metric("[/x]", "[min]", root=True, lower_is_better=True))
    shown = printed(status)
    assert not {*shown} & {"\x1b", "\x07", "\u202e"}
    assert not any(line.startswith("ash: done") for line in shown.splitlines())
    assert shown.count(TAME) >= 6
    assert printed(status_from_wire(status_to_wire(status))) == shown


def test_a_console_escapes_what_a_cloud_of_before_did_not() -> None:
    report = evil_report()
    zone = ZoneStatus(
        0,
        "ash",
        "h:1",
        ZoneState.TRAINING,
        attendance=report.attendance,
        left_out={3: EVIL},
        overdue=EVIL,
        refusals=report.refusals,
        diverged=EVIL,
        version=EVIL,
        waiting=report.waiting,
    )
    metric = Metric(EVIL, EVIL, root=True, lower_is_better=True)
    status = RunStatus("woods", 20, 1, EVIL, (zone,), finished=False, overdue=EVIL, refusals={EVIL: 1}, metric=metric)
    status = replace(status, events=(Event(1.0, EVIL),), version=EVIL)
    back = status_from_wire(status_to_wire(status))
    assert set(texts(back)) - {"", "ash", "h:1", "woods"} == {TAME}
    (piece,) = records_pieces(ZoneRecords("ash", (evil_round(),), (), 1, 1, EVIL))
    assert set(texts(records_from_wire(piece))) - {"ash"} == {TAME}


def test_nor_does_a_models_metric_or_an_error() -> None:
    model = replace(MODEL, metric=Metric(EVIL, EVIL, root=True, lower_is_better=True))
    metric = model_from_wire(model_to_wire(model)).metric
    assert (metric.name, metric.unit) == (TAME, TAME)
    metadata = grpc.aio.Metadata(("sgfusion-error", "InputError"))
    error = from_rpc_error(grpc.aio.AioRpcError(grpc.StatusCode.INVALID_ARGUMENT, grpc.aio.Metadata(), metadata, EVIL))
    assert isinstance(error, InputError)
    assert str(error) == TAME


def test_nobody_is_refused_for_what_escaping_adds() -> None:
    full = "\x1b" * LONGEST_ID
    report = a_report(
        "ash",
        attendance=Attendance(1, (full,), {full: "\x1b" * LONGEST_TEXT}),
        overdue="\x1b" * LONGEST_TEXT,
        refusals={full: 1},
        version=full,
        waiting=Waiting(0, 1.0, (), (full,), 0),
    )
    check_report(first_state(a_run(), started=0.0), report_from_wire(report_to_wire(report)))
    too_long = report_to_wire(replace(report, attendance=Attendance(1, (full + "\n",))))
    with pytest.raises(InputError, match=r"attendance\.attending has .* of 201 characters: send at most 200"):
        check_report(first_state(a_run(), started=0.0), report_from_wire(too_long))


@given(st.text())
def test_words_are_heard_as_they_are_unless_they_would_do_something(text: str) -> None:
    whole = escaped(text)
    assert heard(text, 10_000) == whole
    assert heard(text) == whole[: max(len(text), LONGEST_TEXT)]
    assert heard(heard(text)) == heard(text)
    assert heard_name(NAMES[0]) == NAMES[0]
