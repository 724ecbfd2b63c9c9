"""A page on a real socket, in a thread of its own, and a client that says exactly what a test wants said."""

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cloud.page.server import Page, Place, take_place
from cloud.page.source import Kind

PATIENCE = 30.0


class Talk:
    """A `Source` that tells what a test has it tell."""

    live = True

    def __init__(self) -> None:
        self._bell = asyncio.Event()
        self._news: list[tuple[Kind, str]] = []
        self.forgotten = 0
        self.broken = False

    def say(self, *news: tuple[Kind, str]) -> None:
        self._news += news
        self._bell.set()

    def picture(self) -> str:
        return json.dumps({"run": {"name": "talk"}, "padding": "x" * 2000})

    async def zone(self, name: str) -> str | None:
        return json.dumps({"rounds": []}) if name == "Łódź" else None

    async def round(self, number: int) -> str:
        if number == 13:
            raise RuntimeError("thirteen")
        return json.dumps({"number": number})

    async def changed(self) -> None:
        await self._bell.wait()

    def news(self) -> list[tuple[Kind, str]]:
        self._bell.clear()
        news, self._news = self._news, []
        if self.broken:
            raise RuntimeError("broken")
        return news

    def forget(self) -> None:
        self.forgotten += len(self.news())


@dataclass
class Served:
    """A page that is served."""

    place: Place
    source: Talk
    loop: asyncio.AbstractEventLoop
    page: Page

    @property
    def port(self) -> int:
        return urlsplit(self.place.url).port or 0

    def connect(self, tls: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
        if tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=tls)

    def ask(
        self, path: str, method: str = "GET", tls: ssl.SSLContext | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = self.connect(tls)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    @property
    def connections(self) -> int:
        return len(self.page._connections)

    def say(self, *news: tuple[Kind, str]) -> None:
        self.loop.call_soon_threadsafe(self.source.say, *news)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.page.stop(), self.loop).result(PATIENCE)


@contextmanager
def served(
    address: str = "127.0.0.1:0",
    *,
    state: Path | None = None,
    certs: Path | None = None,
    plain: bool = False,
    make: Callable[[], Talk] = Talk,
) -> Iterator[Served]:
    """A page of a `Talk`, stopped in the end if the test has not done it."""
    place = take_place(address, state=state, certs=certs, plain=plain)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> tuple[Talk, Page]:
        source = make()
        page = Page(place, source)
        await page.start()
        return source, page

    try:
        source, page = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE)
        made = Served(place, source, loop, page)
        try:
            yield made
        finally:
            made.stop()
            asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


class Stream:
    """A viewer's stream of events."""

    def __init__(self, site: Served, path: str = "/api/events", **headers: str) -> None:
        self._connection = site.connect()
        self._connection.request("GET", path, headers={name.replace("_", "-"): said for name, said in headers.items()})
        self.answer = self._connection.getresponse()

    def next(self) -> dict[str, str]:
        """The next message; what keeps a stream open is passed over."""
        found: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode()
            if not line:
                raise EOFError
            key, _, value = line.rstrip("\n").partition(": ")
            if key:
                found[key] = value
            elif "event" in found:
                return found
            else:
                found = {}

    def close(self) -> None:
        self._connection.close()
        self.answer.close()
