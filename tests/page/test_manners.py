"""The browser of the benchmark does not only look at the clock: a page that asks others, or fails, is no good page."""

import asyncio
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.page_browser import Looker, Manners
from sgfusion.errors import ProtocolError
from tests.page.browser import chromium

PAGE = """<!doctype html><link rel=icon href="data:,"><body class=ready>
<table><tbody id=zones-body></tbody></table><div id=curves><svg class=main-svg></svg></div>
<script>document.getElementById("curves").on = () => {};</script>"""
"""As much of the page as is waited for."""
WRONG = {
    "outside": ('<img src="http://127.0.0.1:9/pixel.png">', r"http://127\.0\.0\.1:9/pixel\.png"),
    "error": ("<script>console.error('it has failed')</script>", "error: it has failed"),
    "warning": ("<script>console.warn('it is old')</script>", "warning: it is old"),
    "failure": ("<script>setTimeout(() => nobody.there())</script>", "nobody is not defined"),
}


class Still:
    """Edges that do nothing until the browser has complained, if it is going to."""

    def __init__(self, manners: Manners) -> None:
        self._manners = manners

    async def train_for(self, seconds: float) -> dict[tuple[str, int], float]:
        async with asyncio.timeout(seconds):
            while not (self._manners.outside or self._manners.problems):
                await asyncio.sleep(0.01)
        return {}


@contextmanager
def site(page: str) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("kind", WRONG)
def test_a_page_without_manners_is_told(kind: str) -> None:
    chromium()
    script, said = WRONG[kind]

    async def look(url: str) -> None:
        async with Looker(url) as looker:
            await looker.watch(Still(looker.manners), 60.0)

    with site(PAGE + script) as url, pytest.raises(ProtocolError, match=said):
        asyncio.run(look(url))


def test_what_a_page_asks_of_its_own_host_is_its_own_matter() -> None:
    manners = Manners("http://127.0.0.1:7080/")
    for url in ("http://127.0.0.1:7080/api/run", "data:image/png;base64,", "blob:x"):
        manners.request(url)
    manners.console("log", "hello")
    assert (len(manners.asked), manners.outside, manners.problems) == (3, [], [])
    manners.request("http://127.0.0.1:7081/api/run")
    assert manners.outside == ["http://127.0.0.1:7081/api/run"]
