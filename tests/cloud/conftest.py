"""Fixtures of the tests of the cloud's decisions."""

import pytest

from tests.cloud.coordinated import Run
from tests.cloud.values import NAMES


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def planned(run: Run) -> Run:
    """All five zones are in the first plan."""
    run.arrive(*NAMES)
    run.fit()
    return run
