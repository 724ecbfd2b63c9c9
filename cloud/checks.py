"""What edges send, refused where it makes no sense in the run; a refusal names the value. Nothing is changed by it."""

import math
import re
from collections.abc import Iterable, Mapping

from cloud.state import State
from sgfusion.arrays import shown
from sgfusion.errors import HistogramError, InputError
from sgfusion.histogram import checked_histograms
from sgfusion.plan import ZoneState
from sgfusion.reports import RoundRecord, ZoneReport
from sgfusion.waiting import Waiting
from sgfusion.wire.channel import split_address
from sgfusion.wire.cloud_rpc import Submission
from sgfusion.wire.words import LONGEST_ID, LONGEST_TEXT

LONGEST_NAME = 100
LONGEST_ADDRESS = 300
MOST_RECORDS = 1000  # of one report, of rounds and of evaluations
MOST_DEVICES = 100_000  # of one zone
MOST_REASONS = 100
DIGEST_BYTES = 32
REPORTED = (ZoneState.GATHERING, ZoneState.WAITING, ZoneState.TRAINING, ZoneState.DONE, ZoneState.DIVERGED)


def check_enrolment(zone: str, address: str) -> None:
    """Names become parts of file names, and addresses are dialled by others."""
    if len(zone) > LONGEST_NAME or not re.fullmatch(r"\w[\w.-]*", zone):
        raise InputError(
            f"zone = {shown(zone)}: a name is letters, digits, '_', '-' and '.', at most {LONGEST_NAME} of them"
        )
    if len(address) > LONGEST_ADDRESS or not address.isprintable() or " " in address:
        raise InputError(f"address = {shown(address)}: give host:port, at most {LONGEST_ADDRESS} characters")
    _, port = split_address(address)
    if port == 0:
        raise InputError(f"address = {shown(address)}: port 0 cannot be dialled, give the one that the edge listens on")


def check_submission(submission: Submission) -> None:
    """A histogram is a share of the labels for each bin of the model."""
    zone, bins = submission.zone, submission.model.bins
    if len(submission.histogram) != bins:
        raise HistogramError(
            f"zone {zone!r}: its histogram has {len(submission.histogram)} bins, its model says {bins}"
        )
    (mass,) = checked_histograms([submission.histogram], "zone", [zone])
    if not 0.99 < mass.sum() < 1.01:
        raise HistogramError(f"zone {zone!r}: its histogram does not sum to 1: scale it")
    if not 1 <= submission.devices <= MOST_DEVICES:
        raise InputError(f"devices = {submission.devices}: a histogram is of 1 to {MOST_DEVICES} devices")
    if len(submission.initial) != DIGEST_BYTES:
        raise InputError(f"initial has {len(submission.initial)} bytes: give the {DIGEST_BYTES} of SHA-256 of θ⁰")


def check_report(state: State, report: ZoneReport) -> None:
    """Rounds of this run, of zones that there are, in numbers."""
    rounds = state.run.rounds
    if report.state not in REPORTED:
        known = ", ".join(one.name for one in REPORTED)
        raise InputError(f"report.state = {report.state.name}: a zone says of itself one of {known}")
    if not 0 <= report.round <= rounds:
        raise InputError(f"report.round = {report.round}: the run has {rounds} rounds")
    for what, records in (("rounds", report.rounds), ("evaluations", report.evaluations)):
        if len(records) > MOST_RECORDS:
            raise InputError(f"report.{what} holds {len(records)} records: send at most {MOST_RECORDS} at a time")
    for record in report.rounds:
        _check_round(record, rounds, len(state.zones))
    for point in report.evaluations:
        if not 0 <= point.round <= rounds:
            raise InputError(f"report.evaluations has round {point.round}: the run has {rounds} rounds")
    for what, texts in (
        ("attendance.attending", report.attendance.attending),
        ("attendance.missing", report.attendance.missing),
    ):
        _check_texts(f"report.{what}", texts, LONGEST_ID, MOST_DEVICES)
    _check_texts("report.attendance.missing", report.attendance.missing.values(), LONGEST_TEXT, MOST_DEVICES)
    _check_texts("report.refusals", report.refusals, LONGEST_ID, MOST_REASONS)
    _check_texts("report.version", (report.version,), LONGEST_ID, 1)
    if report.waiting is not None:
        _check_waiting(report.waiting, rounds, len(state.zones))
    _check_texts("report.overdue and report.diverged", (report.overdue, report.diverged), LONGEST_TEXT, 2)


def _check_waiting(waiting: Waiting, rounds: int, zones: int) -> None:
    if not 0 <= waiting.round <= rounds:
        raise InputError(f"report.waiting has round {waiting.round}: the run has {rounds} rounds")
    _check_numbers("report.waiting", {"seconds": waiting.seconds})
    if list(waiting.zones) != sorted(set(waiting.zones)) or (waiting.zones and waiting.zones[-1] >= zones):
        raise InputError(
            f"report.waiting.zones = {shown(list(waiting.zones))}: give numbers of zones, 0 to {zones - 1}, ascending"
        )
    _check_texts("report.waiting.devices", waiting.devices, LONGEST_ID, MOST_DEVICES)


def _check_round(record: RoundRecord, rounds: int, zones: int) -> None:
    report = record.report
    if not 1 <= report.round <= rounds:
        raise InputError(f"report.rounds has round {report.round}: the run's rounds are 1 to {rounds}")
    name = f"round {report.round}"
    if list(report.drawn) != sorted(set(report.drawn)) or (report.drawn and report.drawn[-1] >= zones):
        raise InputError(
            f"{name}: drawn = {shown(list(report.drawn))}: give numbers of zones, 0 to {zones - 1}, ascending"
        )
    if sorted([*report.attention, *report.left_out]) != list(report.drawn):
        raise InputError(
            f"{name}: attention of {shown(list(report.attention))} and left_out of {shown(list(report.left_out))} are"
            f" not together the drawn {shown(list(report.drawn))}: each drawn zone is in one of them"
        )
    if report.peer_norms.keys() != report.attention.keys():
        raise InputError(
            f"{name}: peer_norms of {shown(list(report.peer_norms))}, attention of {shown(list(report.attention))}:"
            " give both of those that answered"
        )
    norms = {"local_norm": report.local_norm, "direction_norm": report.direction_norm, "step_norm": report.step_norm}
    _check_numbers(name, {"rate": report.rate, **norms})
    _check_numbers(f"{name}: peer_norms", report.peer_norms)
    for zone, weight in report.attention.items():
        if not math.isfinite(weight):  # a method's weights may be negative
            raise InputError(f"{name}: attention[{zone}] = {weight}: give a finite number")
    _check_texts(f"{name}: left_out", report.left_out.values(), LONGEST_TEXT, zones)
    _check_texts(f"{name}: devices_left_out", record.devices_left_out, LONGEST_ID, MOST_DEVICES)
    _check_texts(f"{name}: devices_left_out", record.devices_left_out.values(), LONGEST_TEXT, MOST_DEVICES)


def _check_numbers(name: str, values: Mapping[str, float] | Mapping[int, float]) -> None:
    for key, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name}: {key} = {value}: give a finite number >= 0")


def _check_texts(name: str, texts: Iterable[str], longest: int, most: int) -> None:
    found = list(texts)
    if len(found) > most:
        raise InputError(f"{name} has {len(found)} entries: send at most {most}")
    for text in found:
        if len(text) > longest:
            raise InputError(f"{name} has {shown(text)} of {len(text)} characters: send at most {longest}")
