"""A real Chromium that asks nobody but the page under test, and says what went wrong in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from benchmarks import page_browser
from benchmarks.page_browser import FLAGS, Manners

PATIENCE = 60_000.0
"""Milliseconds for what the page does at once on a calm machine."""
LAPTOP, PHONE = page_browser.LAPTOP, (390, 844)
CHARTS = ("curves", "drawn", "homophily", "histogram")


def chromium() -> str:
    """Where it is; without it the test is skipped, or fails if it is required."""
    found = page_browser.chromium()
    if found is None:
        reason = "there is no chromium on the PATH (Debian: apt install chromium)"
        if os.environ.get("SGFUSION_REQUIRE_CHROMIUM") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def launched() -> Iterator[Browser]:
    """The browser. While it is open `asyncio.run` cannot be called in this thread: Playwright has a loop of its own."""
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of one site: `outside` are requests to others, `problems` what the browser complained about."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.url = url
        manners = Manners(url)
        self.outside, self.problems, self.asked = manners.outside, manners.problems, manners.asked
        context.set_default_timeout(PATIENCE)
        context.on("request", lambda request: manners.request(request.url))
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: manners.console(message.type, message.text))
        self.page.on("pageerror", manners.error)

    def open(self, fragment: str = "") -> Page:
        """The page, once it has drawn the run."""
        self.page.goto(self.url + fragment)
        self.page.wait_for_selector("body.ready")
        return self.page

    def whole(self) -> Page:
        """As high as it is long, so that everything is in sight, and drawn."""
        height = self.page.evaluate("document.documentElement.scrollHeight")
        self.page.set_viewport_size({"width": self.page.viewport_size["width"], "height": height})  # type: ignore[index]
        self.drawn(*CHARTS)
        return self.page

    def drawn(self, *charts: str) -> None:
        """Until plotly has drawn these."""
        for chart in charts:
            self.page.wait_for_selector(f"#{chart} .main-svg")

    def fine(self) -> None:
        assert not self.outside
        assert not self.problems


def tab(browser: Browser, url: str, *, size: tuple[int, int] = LAPTOP, dark: bool = False, touch: bool = False) -> Tab:
    """A fresh one, with storage of its own."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        has_touch=touch,
        reduced_motion="reduce",
    )
    return Tab(context, url)


def artefacts() -> Path:
    """Where screenshots are kept, to be looked at."""
    named = os.environ.get("SGFUSION_ARTEFACTS")
    folder = Path(named) if named else Path(__file__).parents[2] / "results" / "page-screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
