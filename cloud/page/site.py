"""The page's addresses, as an ASGI application. It reads: GET and HEAD are all that it answers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloud.page.access import Access, Asker, Refusal, Welcome
from cloud.page.assets import Asset, Assets
from cloud.page.feed import Feed
from cloud.page.source import Source

MOST_VIEWERS = 100
STUCK = 30.0
"""Seconds after which a viewer that takes no bytes is let go."""
FRESH = 0.5
"""Seconds for which everybody gets the same picture: that of a large run takes a while to make."""
LONGEST_NUMBER = 18
_JSON = "application/json"
_log = logging.getLogger("sgfusion.cloud")
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; object-src 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Of every answer. The script that draws writes styles into elements and pictures into memory: two exceptions."""


class Site:
    """The routes, and what they share."""

    def __init__(self, source: Source, feed: Feed, access: Access, clock: Callable[[], float]) -> None:
        self._source, self._feed, self._clock = source, feed, clock
        self._assets = Assets()
        self._picture: tuple[float, Asset] | None = None
        routes = [
            Route("/", self._index),
            Route("/static/{name}", self._static),
            Route("/plotly.min.js", self._plotly),
            Route("/api/run", self._run),
            Route("/api/zone/{name}", self._zone),
            Route("/api/round/{number}", self._round),
            Route("/api/events", self._events),
        ]
        self.app: ASGIApp = Gate(Starlette(routes=routes), access)

    async def _index(self, request: Request) -> Response:
        return await _sent(request, self._assets.static("index.html"))

    async def _static(self, request: Request) -> Response:
        return await _sent(request, self._assets.static(request.path_params["name"]))

    async def _plotly(self, request: Request) -> Response:
        asset = await asyncio.to_thread(lambda: self._assets.plotly)
        return await _sent(request, asset)

    async def _run(self, request: Request) -> Response:
        """Numbered by the last message, and at least as new: a message that follows may say again what is in it."""
        self._feed.expect_viewer()
        now = self._clock()
        if self._picture is None or now - self._picture[0] > FRESH:
            text = f'{{"sequence":{self._feed.sequence},{self._source.picture()[1:]}'
            self._picture = (now, Asset(_JSON, text.encode()))
        return await _sent(request, self._picture[1], level=1)

    async def _zone(self, request: Request) -> Response:
        found = await self._source.zone(request.path_params["name"])
        return await _sent(request, None if found is None else Asset(_JSON, found.encode()), level=1)

    async def _round(self, request: Request) -> Response:
        number = _whole(request.path_params["number"])
        if number is None:
            return PlainTextResponse("give the number of a round", 400)
        return await _sent(request, Asset(_JSON, (await self._source.round(number)).encode()), level=1)

    async def _events(self, request: Request) -> Response:
        """From `Last-Event-ID` on, which a browser sends when it reconnects, or from `after` on."""
        said = request.headers.get("last-event-id") or request.query_params.get("after") or f"{self._feed.sequence}"
        number = _whole(said)
        if number is None:
            return PlainTextResponse("after is the number of a message, as /api/run has it", 400)
        if self._feed.viewers >= MOST_VIEWERS:
            return PlainTextResponse(f"{MOST_VIEWERS} others look already: come back later", 503)
        return EventStream(self._feed.watch(number))


class EventStream(Response):
    """A stream that ends when its reader goes, stops reading, or the feed is closed."""

    def __init__(self, pieces: AsyncGenerator[bytes]) -> None:
        super().__init__(media_type="text/event-stream", headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            sending = asyncio.create_task(self._send(send))
            gone = asyncio.create_task(_until_gone(receive))
            try:
                await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (sending, gone):
                    task.cancel()
                await asyncio.gather(sending, gone, return_exceptions=True)
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send) -> None:
        async with aclosing(self._pieces):
            async for piece in self._pieces:
                async with asyncio.timeout(STUCK):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})


class Gate:
    """Lets pass who may, and puts the headers of safety on every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            return

        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                safe = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *safe]
            await send(message)

        answer = self._answer(scope) or self._app
        try:
            await answer(scope, receive, guarded)
        except Exception:  # noqa: BLE001 - told in our own log; uvicorn would tell it past all logs
            _log.exception("the page could not answer %s", scope["path"][:200])
            if not begun:
                await PlainTextResponse("the page has failed: the log of the cloud says why\n", 500)(
                    scope, receive, guarded
                )

    def _answer(self, scope: Scope) -> ASGIApp | None:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("the page is to be looked at: GET and HEAD alone", 405, {"allow": "GET, HEAD"})
        verdict = self._access.check(_asker(scope))
        if isinstance(verdict, Welcome):
            headers = {"set-cookie": verdict.cookie, "cache-control": "no-store"}
            return RedirectResponse("/", 303, headers)
        if isinstance(verdict, Refusal):
            proof = {"www-authenticate": "Bearer"} if verdict.status == 401 else {}
            return PlainTextResponse(verdict.text + "\n", verdict.status, {"cache-control": "no-store", **proof})
        return None


def _asker(scope: Scope) -> Asker:
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    return Asker(
        host=headers.get(b"host", ""),
        query=scope["query_string"].decode("latin-1"),
        cookie=headers.get(b"cookie", ""),
        authorization=headers.get(b"authorization", ""),
        uris=scope.get("state", {}).get("uris"),
        secure=scope["scheme"] == "https",
    )


async def _sent(request: Request, asset: Asset | None, *, level: int | None = None) -> Response:
    """The asset, packed if the browser takes that, or that it has it already. With a `level`, it is not for keeping."""
    if asset is None:
        return PlainTextResponse("there is no such thing here\n", 404)
    headers = {"cache-control": "no-cache" if level is None else "no-store", "vary": "accept-encoding"}
    if level is None:
        headers["etag"] = asset.tag
        if asset.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
    content = asset.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        packed = await asyncio.to_thread(asset.packed_by, 6 if level is None else level)
        if packed is not None:
            headers["content-encoding"] = "gzip"
            content = packed
    return Response(content, headers=headers, media_type=asset.kind)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None
