"""Who has trained to the end: what becomes of a run when its cluster stops hangs on it."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from console.concluding import left_over
from sgfusion.plan import ZoneState
from sgfusion.runfile import load_run_file
from simulator.resolve import resolved
from tests.console.fetched import fetched_of
from tests.simulator.tiny_suite import write_suite


@pytest.mark.parametrize(
    ("state", "rounds_short", "model", "left"),
    [
        (ZoneState.DONE, 0, True, False),
        (ZoneState.TRAINING, 0, True, False),  # its edge was started again, and has not said yet that it is done
        (ZoneState.TRAINING, 1, True, True),
        (ZoneState.DIVERGED, 1, True, False),
        (ZoneState.DONE, 0, False, True),
    ],
)
def test_a_zone_has_trained_to_the_end(
    tmp_path: Path, state: ZoneState, rounds_short: int, model: bool, left: bool
) -> None:
    run = resolved(load_run_file(write_suite(tmp_path).with_name("tiny.toml"), ("histogram.epsilon=off",)))
    fetched = fetched_of(run)
    *others, last = fetched.status.zones
    zones = (*others, replace(last, state=state, round=run.rounds - rounds_short))
    models = {zone: found for zone, found in fetched.models.items() if model or zone != last.zone}
    told = replace(fetched, status=replace(fetched.status, zones=zones), models=models)
    said = io.StringIO()
    assert left_over(run, told, Console(file=said, width=80)) == ([last.zone] if left else [])
    assert (f"Not trained to the end: {last.zone}." in said.getvalue()) == left
