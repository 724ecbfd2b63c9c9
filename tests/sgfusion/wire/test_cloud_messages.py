"""Every message of `cloud.proto` to the wire and back."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.errors import InputError
from sgfusion.evaluation import Score
from sgfusion.plan import Draws, Peer, ZonePlan, ZoneState
from sgfusion.proto.v1 import cloud_pb2 as pb
from sgfusion.reports import (
    Attendance,
    Event,
    Model,
    RoundRecord,
    RunStatus,
    ZoneEvaluation,
    ZoneRecords,
    ZoneReport,
    ZoneStatus,
)
from sgfusion.wire.cloud_messages import (
    PIECE_BYTES,
    Directories,
    evaluation_from_wire,
    evaluation_to_wire,
    plan_from_wire,
    plan_to_wire,
    records_from_wire,
    records_pieces,
    report_from_wire,
    report_to_wire,
    round_from_wire,
    round_to_wire,
    tree_pieces,
)
from sgfusion.wire.cloud_rpc import Submission, submission_from_wire, submission_to_wire
from sgfusion.wire.status_messages import STATUS_BYTES, status_from_wire, status_to_wire
from tests.cloud import values
from tests.cloud.values import MODEL, THETA, a_point, a_report, a_round


@given(values.plans)
def test_plans(plan: ZonePlan) -> None:
    assert plan_from_wire(pb.Plan.FromString(plan_to_wire(plan).SerializeToString())) == plan


@given(st.lists(values.plans, min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=6))
def test_plans_that_share_directories(plans: list[ZonePlan], order: list[int]) -> None:
    directories = Directories()
    for place in order:
        plan = plans[place % len(plans)]
        assert plan_from_wire(plan_to_wire(plan, directories)) == plan


@given(values.reports)
def test_reports(report: ZoneReport) -> None:
    assert report_from_wire(pb.ReportRequest.FromString(report_to_wire(report).SerializeToString())) == report


@given(values.round_records(st.just(3)))
def test_rounds(record: RoundRecord) -> None:
    assert round_from_wire(pb.RoundRecord.FromString(round_to_wire(record).SerializeToString()), 3) == record


@given(values.evaluations)
def test_evaluations(point: ZoneEvaluation) -> None:
    assert evaluation_from_wire(pb.Evaluation.FromString(evaluation_to_wire(point).SerializeToString())) == point


@given(values.statuses)
def test_statuses(status: RunStatus) -> None:
    assert status_from_wire(pb.Status.FromString(status_to_wire(status).SerializeToString())) == status


@given(values.models, st.lists(values.finite, max_size=5).map(tuple), values.uint32, st.binary(max_size=40))
def test_submissions(model: Model, histogram: tuple[float, ...], devices: int, initial: bytes) -> None:
    submission = Submission("ash", histogram, devices, model, initial, 0.5 * devices)
    wire = pb.SubmitHistogramRequest.FromString(submission_to_wire(submission).SerializeToString())
    back = submission_from_wire(wire)
    assert back == submission
    assert back.model.edges == model.edges  # which make no other model


@given(
    st.lists(values.round_records(st.just(-1)), max_size=3).map(tuple),
    st.lists(values.evaluations, max_size=3).map(tuple),
    values.uint64,
    values.uint32,
    values.words,
)
def test_records(
    rounds: tuple[RoundRecord, ...],
    evaluations: tuple[ZoneEvaluation, ...],
    parameters: int,
    devices: int,
    diverged: str,
) -> None:
    records = ZoneRecords("ash", rounds, evaluations, parameters, devices, diverged)
    (piece,) = records_pieces(records)
    assert records_from_wire(pb.GetRecordsResponse.FromString(piece.SerializeToString())) == records


def test_a_score_that_is_no_number_stays_one() -> None:
    point = ZoneEvaluation(3, Score(math.nan, 4), Score(math.inf, 4), best=False)
    back = evaluation_from_wire(evaluation_to_wire(point))
    assert math.isnan(back.validation.total)
    assert back.test == Score(math.inf, 4)


def test_many_records_come_in_pieces_far_below_the_limit_and_join_to_the_same() -> None:
    drawn = tuple(range(300))
    rounds = tuple(a_round(number, zone=-1, drawn=drawn) for number in range(1, 400))
    points = tuple(a_point(number) for number in range(400))
    pieces = list(records_pieces(ZoneRecords("ash", rounds, points, 100, 4)))
    assert len(pieces) > 3
    assert max(piece.ByteSize() for piece in pieces) < 2 * PIECE_BYTES <= 1 << 20
    parts = [records_from_wire(piece) for piece in pieces]
    assert tuple(record for part in parts for record in part.rounds) == rounds
    assert tuple(point for part in parts for point in part.evaluations) == points
    assert {(part.zone, part.parameters, part.devices) for part in parts} == {("ash", 100, 4)}


@pytest.mark.parametrize("text", ["", "{}", "ä" * 3_000_000])
def test_a_dendrogram_comes_in_pieces_too(text: str) -> None:
    pieces = list(tree_pieces(text))
    assert "".join(piece.dendrogram for piece in pieces) == text
    assert len(pieces) == max(1, -(-len(text) // (PIECE_BYTES // 4)))
    assert all(piece.ByteSize() < 1 << 20 for piece in pieces)


def test_a_status_that_would_not_fit_a_message_is_cut_and_says_so() -> None:
    attending = tuple(f"device-{number:06d}" for number in range(500))
    missing = {f"gone-{number}": "late" for number in range(30)}
    zone = ZoneStatus(0, "ash", "h:1", ZoneState.TRAINING, attendance=Attendance(600, attending, missing), round=7)
    zones = tuple(replace(zone, number=number, drawn=tuple(range(1000))) for number in range(1000))
    status = RunStatus("woods", 20, 1, "all", zones, finished=False)
    wire = status_to_wire(status)
    assert wire.ByteSize() < STATUS_BYTES
    back = status_from_wire(wire)
    assert len(back.zones) == 1000
    assert back.zones[3].attendance.attending == (*attending[:10], "… 490 more")
    assert back.zones[3].attendance.missing["…"] == "20 more"
    assert back.zones[3].round == 7


def test_long_reasons_are_cut_and_do_not_keep_a_round_from_being_reported() -> None:
    long = "x" * 5000
    record = a_round(1, zone=-1)
    record = replace(record, report=replace(record.report, left_out={3: long}), devices_left_out={"u3": long})
    attendance = Attendance(1, (), {"u3": long})
    report = a_report("ash", rounds=(record,), attendance=attendance, overdue=long, diverged=long)
    back = report_from_wire(report_to_wire(report))
    texts = (back.rounds[0].report.left_out[3], back.rounds[0].devices_left_out["u3"], back.attendance.missing["u3"])
    assert {*texts, back.overdue, back.diverged} == {"x" * 1000}


def _without(message: pb.ReportRequest | pb.Plan | pb.Evaluation, field: str) -> bytes:
    message.ClearField(field)  # type: ignore[arg-type]
    return message.SerializeToString()


def test_a_part_that_is_missing_is_named() -> None:
    plan = plan_to_wire(ZonePlan(1, 0, "all", Draws("each"), ()))
    with pytest.raises(InputError, match=r"plan\.draws is missing"):
        plan_from_wire(pb.Plan.FromString(_without(plan, "draws")))
    with pytest.raises(InputError, match=r"report\.attendance is missing"):
        report_from_wire(pb.ReportRequest.FromString(_without(report_to_wire(a_report("ash")), "attendance")))
    for field in ("validation", "test"):
        with pytest.raises(InputError, match=rf"evaluation\.{field} is missing"):
            evaluation_from_wire(pb.Evaluation.FromString(_without(evaluation_to_wire(a_point(1)), field)))
    with pytest.raises(InputError, match="model is missing"):
        submission_from_wire(pb.SubmitHistogramRequest(zone="ash", histogram=[1.0], devices=1, initial=THETA))


@pytest.mark.parametrize("number", [0, 99])
def test_an_enum_that_was_not_set_or_is_unknown_is_named(number: int) -> None:
    report = report_to_wire(a_report("ash"))
    report.state = number  # type: ignore[assignment]
    with pytest.raises(InputError, match=rf"report\.state = {number}: .* one of EXPECTED, GATHERING"):
        report_from_wire(pb.ReportRequest.FromString(report.SerializeToString()))
    plan = plan_to_wire(ZonePlan(1, 0, "all", Draws("each"), (Peer(0, "ash", "", ZoneState.DONE),)))
    plan.draws.kind = number  # type: ignore[assignment]
    with pytest.raises(InputError, match=rf"plan\.draws\.kind = {number}"):
        plan_from_wire(plan)
    plan = plan_to_wire(ZonePlan(1, 0, "all", Draws("each"), (Peer(0, "ash", "", ZoneState.DONE),)))
    plan.directory[0].state = number  # type: ignore[assignment]
    with pytest.raises(InputError, match=rf"plan\.directory\.state = {number}"):
        plan_from_wire(plan)


def test_the_model_of_a_submission_is_checked() -> None:
    wire = submission_to_wire(Submission("ash", (1.0,), 1, replace(MODEL, fingerprint=""), THETA))
    with pytest.raises(InputError, match=r"model\.fingerprint has 0 characters"):
        submission_from_wire(wire)


def test_what_names_zones_is_cut_in_a_status_and_a_plan_as_events_are() -> None:
    """Of ten thousand zones that joined, or are missing, all are named."""
    long = "zone ash joined, " * 600
    zone = ZoneStatus(0, "ash", "h:1", ZoneState.TRAINING, overdue=long)
    status = RunStatus("woods", 20, 1, long, (zone,), finished=False, overdue=long, events=(Event(1.0, long),))
    back = status_from_wire(status_to_wire(status))
    plan = plan_from_wire(plan_to_wire(ZonePlan(2, 0, long, Draws("each"), ())))
    assert {back.reason, back.overdue, back.zones[0].overdue, back.events[0].text, plan.reason} == {long[:1000]}
