"""A run file where a suite belongs, or the other way round, is named as what it is."""

from pathlib import Path

import pytest

from console.simulate import load_run
from sgfusion.errors import RunFileError
from simulator.suite import load_suite

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("method", [None, "fedavg"])
def test_a_suite_is_no_run(method: str | None) -> None:
    with pytest.raises(RunFileError, match=r"demo_suite.toml is a suite file: give it to sgfusion experiment"):
        load_run(EXPERIMENTS / "demo_suite.toml", (), method)


def test_a_run_is_no_suite() -> None:
    with pytest.raises(RunFileError, match=r"demo.toml is a run file: give it to sgfusion simulate"):
        load_suite(EXPERIMENTS / "demo.toml")
