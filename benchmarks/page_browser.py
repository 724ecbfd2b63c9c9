"""A real Chromium before the page: when a round of a zone is in its table, and when an evaluation is on its curves."""

import asyncio
import shutil
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.async_api import Page, async_playwright

from benchmarks.page_edges import EVALUATED, Edges
from sgfusion.errors import MissingDependencyError, UnavailableError

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


@dataclass(frozen=True)
class Sight:
    """Seconds from the moment a report was sent until what it says was to be seen, of each round and evaluation."""

    table: list[float]
    curves: list[float]
    busy: float
    """The share of that time in which something on this machine waited for a core; 0 where the kernel does not tell."""


def chromium() -> str | None:
    """Where it is."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _waited() -> float:
    """Seconds since the machine's start in which something that could run had to wait for a core."""
    try:
        return int(Path("/proc/pressure/cpu").read_text("ascii").split()[4].removeprefix("total=")) / 1e6
    except OSError:
        return 0.0


class Looker:
    """A browser with the page open, until the `async with` ends."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stack = AsyncExitStack()
        self._page: Page

    async def __aenter__(self) -> Self:
        path = chromium()
        if path is None:
            raise MissingDependencyError("there is no chromium on the PATH (Debian: apt install chromium)")
        playwright = await self._stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * WITHIN)
        self._stack.push_async_callback(browser.close)
        self._page = await browser.new_page(viewport={"width": LAPTOP[0], "height": LAPTOP[1]})
        self._page.set_default_timeout(1000 * WITHIN)
        await self._page.goto(self._url)
        await self._page.wait_for_selector("body.ready")
        await self._page.wait_for_selector("#curves .main-svg", state="attached")
        await self._page.evaluate(_NOTE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def watch(self, edges: Edges, seconds: float) -> Sight:
        """Rounds for so long, and how soon they were to be seen."""
        waited, began = _waited(), time.monotonic()
        reported = await edges.report_for(seconds)
        sent = {f"{zone} {round}": times.sent for (zone, round), times in reported.items()}
        evaluated = {f"{zone} {round}" for zone, round in reported if round % EVALUATED == 0}
        table = await self._lateness("table", sent)
        curves = await self._lateness("curves", {key: then for key, then in sent.items() if key in evaluated})
        return Sight(table, curves, (_waited() - waited) / (time.monotonic() - began))

    async def _lateness(self, where: str, sent: Mapping[str, float]) -> list[float]:
        since = time.time() - time.monotonic()
        end = time.monotonic() + WITHIN
        while missing := sent.keys() - (noted := await self._page.evaluate(f"window.noted.{where}")).keys():
            if time.monotonic() > end:
                raise UnavailableError(f"{len(missing)} rounds never came to the {where}, {min(missing)} among them")
            await asyncio.sleep(0.2)
        return [noted[key] / 1000 - since - then for key, then in sent.items()]
