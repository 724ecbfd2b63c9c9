"""Rounds and evaluations of a zone as JSON, and back: what edges and the cloud keep on disk. Floats keep every bit."""

from collections.abc import Mapping
from typing import Any

from sgfusion.evaluation import Score
from sgfusion.reports import RoundRecord, ZoneEvaluation
from sgfusion.zone_trainer import RoundReport


def round_to_json(record: RoundRecord) -> dict[str, Any]:
    """The kernel's report, as a line of `rounds.jsonl` has it, and what only a cluster knows."""
    return {
        "report": record.report.to_record(),
        "devices_left_out": dict(record.devices_left_out),
        "device_gradients": record.device_gradients,
        "bytes_sent": record.bytes_sent,
        "loss": record.loss,
    }


def round_from_json(document: Mapping[str, Any]) -> RoundRecord:
    """Of `round_to_json`."""
    report = dict(document["report"])
    for name in ("attention", "left_out", "peer_norms"):
        report[name] = {int(zone): value for zone, value in report[name].items()}
    report["drawn"] = tuple(report["drawn"])
    return RoundRecord(
        RoundReport(**report),
        document["devices_left_out"],
        document["device_gradients"],
        document["bytes_sent"],
        document["loss"],
    )


def evaluation_to_json(evaluation: ZoneEvaluation) -> dict[str, Any]:
    """Scores as `[total, count]`."""
    return {
        "round": evaluation.round,
        "validation": [evaluation.validation.total, evaluation.validation.count],
        "test": [evaluation.test.total, evaluation.test.count],
        "best": evaluation.best,
    }


def evaluation_from_json(document: Mapping[str, Any]) -> ZoneEvaluation:
    """Of `evaluation_to_json`."""
    return ZoneEvaluation(document["round"], Score(*document["validation"]), Score(*document["test"]), document["best"])
