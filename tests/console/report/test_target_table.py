"""Rounds to a target, on curves of three rounds that were worked out by hand."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from console.report.suite_results import read_results
from console.report.tables import Table
from console.report.target_table import target_table
from simulator.outcome import Point, Score
from tests.console.report.fake_suite import ACCURACY, write
from tests.console.report.tiny_suite import outcome, write_tiny

ROUNDS = (0, 10, 20, 30)
Curves = Mapping[str, Sequence[Sequence[float]]]
"""By entry, for each seed: the validation metric after each round."""

# Means over the seeds: sgeofl 9, 6, 5, 5.5, so the target is 5; ours 9, 5, 4, 4; late 9, 8, 7, 5; far 9, 8, 7, 6.
CURVES: Curves = {
    "ours": [[9, 4, 4, 4], [9, 6, 4, 4]],
    "sgeofl": [[9, 7, 4, 5], [9, 5, 6, 6]],
    "late": [[9, 8, 7, 5], [9, 8, 7, 5]],
    "far": [[9, 4, 6, 6], [9, 12, 8, 6]],
}
MEAN = {"name": "MAE", "unit": "min", "root": False, "lower_is_better": True}


def table(folder: Path, curves: Curves, metric: Mapping[str, Any] = MEAN, labels: int = 4) -> Table | None:
    """Of a suite with these curves; the zones a and b differ, and are pooled to them. Tests would all say round 0."""
    write_tiny(folder, {name: {1: {"a": (0, 3), "b": (0, 1)}, 2: {"a": (0, 3), "b": (0, 1)}} for name in curves})
    description = json.loads((folder / "suite.json").read_text())
    for entry in description["entries"]:
        entry["method"] = entry["name"]
    write(folder / "suite.json", json.dumps({**description, "metric": metric}))
    for name, by_seed in curves.items():
        for seed, values in enumerate(by_seed, start=1):
            for zone, share in (("a", 0.25), ("b", 0.75)):  # of the sum of scores; a has most of the labels
                count = labels * 3 // 4 if zone == "a" else labels // 4
                points = tuple(
                    Point(t, {zone: Score(4 * value * share, count)}, {zone: Score(0.0, 1)})
                    for t, value in zip(ROUNDS, values, strict=True)
                )
                job = outcome(zone, seed, {zone: (0, 1)}, points=points, rounds=30)
                write(folder / "jobs/d" / name / str(seed) / f"{zone}.json", job.to_json())
    return target_table(read_results(folder), "d")


def shown(found: Table | None) -> dict[str, str]:
    assert found is not None
    return {row[0].text: f"**{row[1].text}**" if row[1].bold else row[1].text for row in found.rows}


def test_the_target_is_the_best_of_no_sharing_on_validation(tmp_path: Path) -> None:
    found = table(tmp_path, CURVES)
    assert shown(found) == {"Ours": "**10**", "Sgeofl": "20", "Late": "30", "Far": "never"}
    assert found is not None
    assert found.title == "d: rounds to a pooled validation MAE (min) of 5.000"
    assert "the best that Sgeofl reaches" in found.notes[0]
    ours, _, _, far = csv.DictReader(io.StringIO(found.to_csv()))
    assert ours == {
        "entry": "ours", "method": "ours", "rounds": "10", "reached": "True", "best": "4.0", "best_round": "20",
        "data": "d", "target": "5.0",
    }  # fmt: skip
    assert (far["rounds"], far["reached"], far["best"], far["best_round"]) == ("", "False", "6.0", "30")


def test_without_it_the_target_is_the_worst_entrys_best(tmp_path: Path) -> None:
    found = table(tmp_path, {name: curves for name, curves in CURVES.items() if name != "sgeofl"})
    assert shown(found) == {"Ours": "**10**", "Late": "30", "Far": "30"}  # the target is far's 6
    assert found is not None
    assert found.title.endswith("of 6.000")
    assert "whose best is the worst" in found.notes[0]


def test_where_higher_is_better_the_target_is_reached_from_below(tmp_path: Path) -> None:
    rising = {name: [[10 - value for value in seed] for seed in curves] for name, curves in CURVES.items()}
    assert shown(table(tmp_path, rising, ACCURACY)) == {
        "Ours": "**10**", "Sgeofl": "20", "Late": "30", "Far": "never",
    }  # fmt: skip


def test_values_that_are_not_finite_reach_nothing_and_set_no_target(tmp_path: Path) -> None:
    nan = float("nan")
    curves: Curves = {"ours": CURVES["ours"], "broken": [[nan] * 4, [1] * 4]}
    found = table(tmp_path, curves)
    assert shown(found) == {"Ours": "**20**", "Broken": "never"}
    assert found is not None
    assert [cell.text for cell in found.rows[1]][2:4] == ["–", "–"]


@pytest.mark.parametrize("curves", [CURVES, {"ours": CURVES["ours"]}])
def test_without_validation_labels_there_is_no_target(tmp_path: Path, curves: Curves) -> None:
    assert table(tmp_path, curves, labels=0) is None


def test_entries_with_different_numbers_of_rounds_have_no_rounds_to_a_target(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, {name: {1: {"a": (4, 1), "b": (4, 1)}} for name in ("ours", "sgeofl")})
    assert target_table(read_results(folder), "d") is not None
    for zone in ("a", "b"):
        short = outcome(zone, 1, {zone: (4, 1)})
        short = outcome(zone, 1, {zone: (4, 1)}, points=short.points[:1], chosen=0, rounds=0)
        write(folder / f"jobs/d/ours/1/{zone}.json", short.to_json())
    assert target_table(read_results(folder), "d") is None
