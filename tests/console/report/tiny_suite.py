"""A suite so small that its tables are computed by hand: two zones, two seeds, every value chosen by the test."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.outcome import Outcome, Point, Score
from tests.console.report.fake_suite import RMSE, world, write

Values = Mapping[str, Mapping[int, Mapping[str, tuple[float, int]]]]
"""By entry, seed and zone: the sum of scores on the test split, and the number of labels."""


def outcome(
    zone: str | None, seed: int, kept: Mapping[str, tuple[float, int]], *, method: str = "sgfusion", **changes: Any
) -> Outcome:
    """Round 0 is nine times worse than round 10, which is kept."""
    after = {name: Score(float(total), count) for name, (total, count) in kept.items()}
    before = {name: Score(9 * score.total, score.count) for name, score in after.items()}
    values: dict[str, Any] = {
        "points": (Point(0, before, before), Point(10, after, after)),
        "chosen": 10, "rounds": 10, "parameters": 5, "device_gradients": 30, "bytes_sent": 2000,
        "drawn": 2.0, "homophily": 0.25,
    }  # fmt: skip
    return Outcome(method, seed, zone, **{**values, **changes})


def write_tiny(
    folder: Path,
    values: Values,
    *,
    metric: Mapping[str, Any] = RMSE,
    whole: Sequence[str] = (),
    data: str = "d",
    reference: str = "ours",
) -> Path:
    """The suite of these values; the entries in `whole` have one job for all zones."""
    seeds = list(next(iter(values.values())))
    zones = list(next(iter(next(iter(values.values())).values())))
    entries = [{"name": name, "method": f"m-{name}", "set": {}, "title": name.title()} for name in values]
    description = {
        "name": "tiny", "task": "linear", "metric": metric, "data": [data], "seeds": seeds, "entries": entries,
        "reference": reference, "notes": {}, "synthetic": [], "command": "",
    }  # fmt: skip
    write(folder / "suite.json", json.dumps(description))
    for seed in seeds:
        write(folder / "worlds" / data / f"{seed}.json", json.dumps(world(zones, 1)))
        for name, by_seed in values.items():
            jobs = [outcome(None, seed, by_seed[seed])] if name in whole else []
            jobs = jobs or [outcome(zone, seed, {zone: by_seed[seed][zone]}) for zone in zones]
            for job in jobs:
                write(folder / "jobs" / data / name / str(seed) / f"{job.zone or '_all'}.json", job.to_json())
    return folder
