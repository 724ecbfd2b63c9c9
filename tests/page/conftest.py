"""Fixtures of the tests that look at the page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import PATIENCE, Tab, chromium, launched, tab
from tests.page.runs import answer, simulate, viewed
from tests.sharing import made_once, of_all_workers

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of four zones, of 115, and of some whose labels are classes: nobody writes there any more."""
    chromium()  # without it nobody needs them
    return made_once(of_all_workers(tmp_path_factory), "page-runs", simulate)


@pytest.fixture(scope="session")
def four(runs: Path) -> Iterator[str]:
    """The page of four zones; likewise the others'."""
    with viewed(runs / "four") as url:
        yield url


@pytest.fixture(scope="session")
def many(runs: Path) -> Iterator[str]:
    with viewed(runs / "many") as url:
        yield url


@pytest.fixture(scope="session")
def classes(runs: Path) -> Iterator[str]:
    with viewed(runs / "classes") as url:
        yield url


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
