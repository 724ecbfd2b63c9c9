"""Rounds a minute are one thing: the dashboard's are those of the page. By promtool, which knows PromQL."""

import subprocess
from pathlib import Path

import yaml

from cloud.page.history import Pace
from tests.metrics.dashboard import queries
from tests.metrics.prometheus import program

EVERY = 15
"""Seconds between two scrapes, and here between two reports."""
TEN_MINUTES = 40


def test_the_dashboards_rounds_a_minute_are_those_of_the_page(tmp_path: Path) -> None:
    """Of a run of six zones and one of two at once; and none of a run that is over, as there."""
    (expression,) = [expression for title, expression in queries() if title == "Rounds a minute"]
    runs = {"demo": (6, 18, 0), "small": (2, 5, 0), "over": (3, 0, 1), "coming": (0, 0, 0)}
    series: dict[str, str] = {}
    for run, (zones, rounds, finished) in runs.items():
        labels = f'run="{run}", instance="cloud"'
        series[f"sgfusion_cloud_rounds_reported_total{{{labels}}}"] = f"0+{rounds}x{TEN_MINUTES}"
        series[f"sgfusion_cloud_finished{{{labels}}}"] = f"{finished}x{TEN_MINUTES}"
        # One is done, one is lost: the page counts both. Not who has left, nor who is not in the plan yet.
        counts = {"training": max(0, zones - 2), "done": min(zones, 1), "lost": min(zones - 1, 1) if zones else 0}
        for state, count in {**counts, "not answering": 0, "left": 4, "gathering": 1}.items():
            series[f'sgfusion_cloud_zones{{{labels}, state="{state}"}}'] = f"{count}x{TEN_MINUTES}"
    expected = [
        {"labels": f'{{run="{run}"}}', "value": paced(rounds, zones)}
        for run, (zones, rounds, finished) in runs.items()
        if zones and not finished
    ]
    assert [each["value"] for each in expected] == [12.0, 10.0]
    asked = {"expr": expression, "eval_time": "10m", "exp_samples": expected}
    test = {
        "interval": f"{EVERY}s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [asked],
    }
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"tests": [test]}, width=1000), "utf-8")
    command = [program("promtool"), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def paced(rounds: int, zones: int) -> float | None:
    """What the page says after ten minutes in which so many rounds of that many zones ended every quarter of one."""
    pace = Pace()
    for number in range(TEN_MINUTES + 1):
        pace.add(EVERY * number + 0.5, rounds)
    return pace.per_minute(EVERY * TEN_MINUTES + 1.0, zones)
