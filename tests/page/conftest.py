"""Fixtures of the tests that look at the page."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.page.browser import chromium, launched
from tests.page.runs import simulated, viewed


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Results of four zones, of 115, and of some whose labels are classes."""
    chromium()  # without it nobody needs them
    return simulated(tmp_path_factory.mktemp("page") / "runs")


@pytest.fixture(scope="session")
def sites(runs: tuple[Path, Path, Path]) -> Iterator[tuple[str, str, str]]:
    """Their pages."""
    with ExitStack() as stack:
        four, many, classes = (stack.enter_context(viewed(folder)) for folder in runs)
        yield four, many, classes


@pytest.fixture(scope="session")
def four(sites: tuple[str, str, str]) -> str:
    return sites[0]


@pytest.fixture(scope="session")
def many(sites: tuple[str, str, str]) -> str:
    return sites[1]


@pytest.fixture(scope="session")
def classes(sites: tuple[str, str, str]) -> str:
    return sites[2]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests of a file, and not for longer: tests of other files call `asyncio.run`."""
    with launched() as started:
        yield started
