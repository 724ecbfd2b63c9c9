"""Reports as JSON text in the store, and back; floats keep every bit, and a NaN score stays one."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from cloud.absences import Absence, gone_of
from cloud.state import Zone
from sgfusion.evaluation import Metric
from sgfusion.records import evaluation_from_json, evaluation_to_json, round_from_json, round_to_json
from sgfusion.reports import Attendance, Model, RoundRecord, ZoneEvaluation


def round_text(record: RoundRecord) -> str:
    """A round as text."""
    return json.dumps(round_to_json(record))


def round_of(text: str) -> RoundRecord:
    """The round of `round_text`."""
    return round_from_json(json.loads(text))


def evaluation_text(point: ZoneEvaluation) -> str:
    """An evaluation as text."""
    return json.dumps(evaluation_to_json(point))


def evaluation_of(text: str) -> ZoneEvaluation:
    """The evaluation of `evaluation_text`."""
    return evaluation_from_json(json.loads(text))


def model_text(model: Model) -> str:
    """A model as text."""
    return json.dumps(asdict(model))


def model_of(text: str) -> Model:
    """The model of `model_text`."""
    said = json.loads(text)
    return Model(**{**said, "metric": Metric(**said["metric"]), "edges": tuple(said.get("edges", ()))})


def standing_text(zone: Zone) -> str:
    """How the zone stands by its last report, as text."""
    points = {name: getattr(zone, name) for name in ("first", "last", "best")}
    return json.dumps(
        {
            "life": zone.life,
            "round": zone.round,
            "drawn": zone.drawn,
            "left_out": {str(number): why for number, why in zone.left_out.items()},
            "attention": {str(number): weight for number, weight in zone.attention.items()},
            "epsilon": zone.epsilon,
            "loss": zone.loss,
            **{name: None if point is None else evaluation_to_json(point) for name, point in points.items()},
            "attendance": asdict(zone.attendance),
            "told_gone": zone.absence.told,
            "overdue": zone.overdue,
            "refusals": dict(zone.refusals),
            "plan": zone.plan,
            "diverged": zone.diverged,
            "version": zone.version,
        }
    )


def with_standing(zone: Zone, text: str) -> Zone:
    """The zone as `standing_text` says that it stands."""
    said = json.loads(text)
    points = {
        name: None if said[name] is None else evaluation_from_json(said[name]) for name in ("first", "last", "best")
    }
    attended = said.pop("attendance")
    attendance = Attendance(**{**attended, "attending": tuple(attended["attending"])})
    told = said.pop("told_gone", 0)  # an earlier version did not keep it
    return replace(
        zone,
        **{
            **said,
            **points,
            "drawn": tuple(said["drawn"]),
            "left_out": _numbered(said["left_out"]),
            "attention": _numbered(said.get("attention", {})),  # nor this
            "attendance": attendance,
            "absence": Absence(gone=len(gone_of(attendance)), told=told),
        },
    )


def _numbered(said: Mapping[str, Any]) -> dict[int, Any]:
    return {int(number): value for number, value in said.items()}
