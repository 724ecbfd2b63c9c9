"""Fixtures of the tests that look at the page."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import PATIENCE, Tab, chromium, launched, tab
from tests.page.runs import answer, simulated, viewed

expect.set_options(timeout=PATIENCE)


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


@contextmanager
def _fine(browser: Browser, url: str) -> Iterator[Tab]:
    """The page on a laptop; it may not have complained in the end, nor asked others."""
    opened = tab(browser, url)
    opened.open()
    yield opened
    opened.fine()
    opened.page.context.close()


@pytest.fixture
def seen(browser: Browser, four: str) -> Iterator[Tab]:
    """Four zones."""
    with _fine(browser, four) as opened:
        yield opened


@pytest.fixture
def page(seen: Tab) -> Page:
    return seen.page


@pytest.fixture
def crowd(browser: Browser, many: str) -> Iterator[Page]:
    """115 zones."""
    with _fine(browser, many) as opened:
        yield opened.page


@pytest.fixture
def classy(browser: Browser, classes: str) -> Iterator[Page]:
    """Zones whose labels are classes."""
    with _fine(browser, classes) as opened:
        yield opened.page


@pytest.fixture(scope="session")
def run(four: str) -> dict[str, Any]:
    """All that the server says of the four zones."""
    found: dict[str, Any] = answer(four, "api/run")
    return found
