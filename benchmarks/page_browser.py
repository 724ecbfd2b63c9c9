"""A real Chromium before the page: when a round of a zone is in its table, and when an evaluation is on its curves."""

import asyncio
import shutil
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol, Self
from urllib.parse import urlsplit

from playwright.async_api import Page, async_playwright

from benchmarks.page_edges import EVALUATED
from sgfusion.errors import MissingDependencyError, ProtocolError, UnavailableError

# As root there is no sandbox; the rest keeps the browser itself from asking anybody.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAPTOP = (1440, 900)
WITHIN = 120.0
"""Seconds for the page to open, and for the last round to be on it."""
# Stamped in the frame after the one that shows it: by then it is painted. In milliseconds since 1970, as the machine's.
_NOTE = """() => {
  window.noted = { table: {}, curves: {} };
  const shown = new Map();
  const note = (where, keys) => requestAnimationFrame(() => {
    for (const key of keys) window.noted[where][key] ??= performance.timeOrigin + performance.now();
  });
  const read = () => {
    const keys = [];
    for (const row of document.querySelectorAll("#zones-body tr")) {
      const zone = row.dataset.zone;
      const round = Number(row.cells[2].textContent.replace(/\\D/g, ""));
      for (let next = (shown.get(zone) ?? round) + 1; next <= round; next += 1) keys.push(`${zone} ${next}`);
      shown.set(zone, round);
    }
    note("table", keys);
  };
  read();
  const what = { subtree: true, childList: true, characterData: true };
  new MutationObserver(read).observe(document.getElementById("zones-body"), what);
  const curves = document.getElementById("curves");
  curves.on("plotly_afterplot", () => {
    const { x, customdata } = curves.data.find((trace) => trace.name === "each zone");
    note("curves", x.map((round, i) => `${customdata[i]} ${round}`));
  });
  curves.scrollIntoView({ block: "center" });
}"""


class Seen(NamedTuple):
    """When a round has ended, by the monotonic clock, and how many seconds later it was to be seen."""

    ended: float
    late: float


@dataclass(frozen=True)
class Sight:
    """Each round, and each evaluation."""

    table: list[Seen]
    curves: list[Seen]


class Training(Protocol):
    """Edges that train for so many seconds, and say when each round of each zone has ended."""

    async def train_for(self, seconds: float) -> dict[tuple[str, int], float]:
        """By the monotonic clock."""


class Manners:
    """What a page asked, of whom, and what the browser complained about."""

    def __init__(self, url: str) -> None:
        self._home = urlsplit(url).netloc
        self.asked: list[str] = []
        self.outside: list[str] = []
        """Of these, what others were asked."""
        self.problems: list[str] = []

    def request(self, url: str) -> None:
        """Somebody is asked."""
        self.asked.append(url)
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self._home:
            self.outside.append(url)

    def console(self, kind: str, text: str) -> None:
        """The browser says something."""
        if kind in ("error", "warning"):
            self.problems.append(f"{kind}: {text}")

    def error(self, error: object) -> None:
        """A script has failed."""
        self.problems.append(f"{error}")


def chromium() -> str | None:
    """Where it is."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Looker:
    """A browser with the page open, until the `async with` ends. It looks at the page's manners too."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.manners = Manners(url)
        self._stack = AsyncExitStack()
        self._page: Page

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def _open(self, stack: AsyncExitStack) -> None:
        path = chromium()
        if path is None:
            raise MissingDependencyError("there is no chromium on the PATH (Debian: apt install chromium)")
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * WITHIN)
        stack.push_async_callback(browser.close)
        self._page = await browser.new_page(viewport={"width": LAPTOP[0], "height": LAPTOP[1]})
        self._page.set_default_timeout(1000 * WITHIN)
        self._page.on("request", lambda request: self.manners.request(request.url))
        self._page.on("console", lambda message: self.manners.console(message.type, message.text))
        self._page.on("pageerror", self.manners.error)
        await self._page.goto(self._url)
        await self._page.wait_for_selector("body.ready")
        await self._page.wait_for_selector("#curves .main-svg", state="attached")
        await self._page.evaluate(_NOTE)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def watch(self, edges: Training, seconds: float) -> Sight:
        """Rounds for so long, and how soon they were to be seen."""
        ended = {f"{zone} {round}": then for (zone, round), then in (await edges.train_for(seconds)).items()}
        table = await self._lateness("table", ended)
        evaluated = {key: then for key, then in ended.items() if int(key.split()[1]) % EVALUATED == 0}
        curves = await self._lateness("curves", evaluated)
        if wrong := self.manners.outside + self.manners.problems:
            raise ProtocolError(f"the page asked others, or the browser complained: {'; '.join(wrong)}")
        return Sight(table, curves)

    async def _lateness(self, where: str, ended: Mapping[str, float]) -> list[Seen]:
        since = time.time() - time.monotonic()
        end = time.monotonic() + WITHIN
        while missing := ended.keys() - (noted := await self._page.evaluate(f"window.noted.{where}")).keys():
            if time.monotonic() > end:
                raise UnavailableError(f"{len(missing)} rounds never came to the {where}, {min(missing)} among them")
            await asyncio.sleep(0.2)
        return [Seen(then, noted[key] / 1000 - since - then) for key, then in ended.items()]
