"""The dashboard in Grafana's own words. Its server cannot be had where we test; its typed model of a dashboard can."""

import json
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.metrics.dashboard import dashboard

OF_DATA_SOURCES = {"definition", "step", "titleFormat"}
"""Keys that belong to Prometheus' plugin and not to the model of a dashboard."""


def understood(board: dict[str, Any]) -> dict[str, Any]:
    """What is left of it when Grafana's model has read and written it."""
    register_default_plugins()
    found: dict[str, Any] = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    return found


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Keys and values that the model does not know."""
    if isinstance(given, dict):
        for key, value in given.items():
            if key not in OF_DATA_SOURCES:
                yield from lost(value, kept.get(key) if isinstance(kept, dict) else None, f"{path}/{key}")
    elif isinstance(given, list):
        kept = kept if isinstance(kept, list) else []
        for place, value in enumerate(given):
            yield from lost(value, kept[place] if place < len(kept) else None, f"{path}/{place}")
    elif given != kept:
        yield f"{path}: {given!r} became {kept!r}"


def test_grafanas_model_of_a_dashboard_knows_every_key() -> None:
    board = dashboard()
    assert list(lost(board, understood(board))) == []


def test_a_key_that_grafana_does_not_know_is_seen() -> None:
    board = dashboard()
    panel = next(each for each in board["panels"] if each["type"] == "timeseries")
    panel["fieldConfig"]["defaults"]["units"] = "s"
    panel["targets"][0]["expression"] = "up"
    found = list(lost(board, understood(board)))
    assert {text.partition(":")[0].rpartition("/")[2] for text in found} == {"units", "expression"}
