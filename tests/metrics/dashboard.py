"""The Grafana dashboard as its file says it: panels, and their queries as Prometheus takes them."""

import json
from collections.abc import Iterator
from typing import Any

from tests.metrics.prometheus import FOLDER

PATH = FOLDER / "grafana" / "dashboards" / "sgfusion.json"
VARIABLES = {"$run": ".*", "$zone": ".*", "$__rate_interval": "30s"}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text("utf-8"))
    return found


def panels() -> list[dict[str, Any]]:
    """Those that show something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    """The title and the expression of each, variables filled in as Grafana does for All."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], filled(target["expr"])
    for annotation in dashboard()["annotations"]["list"]:
        yield f"annotation {annotation['name']}", filled(annotation["expr"])


def filled(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression
