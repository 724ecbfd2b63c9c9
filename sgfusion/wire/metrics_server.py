"""`/metrics` over HTTP: the one page of a server that does nothing else (`--metrics HOST:PORT`).

On a loopback address in plain text, for callers that name a loopback host: a web page that has its own name point here
(DNS rebinding) reads nothing. Beyond it over mutual TLS by the service's own keys, for operators and monitors; a device
has no certificate of a server, so there plain text has to be asked for. A request is a few lines within a few seconds,
an answer is made in a thread, and a connection carries one of each: nobody here holds up the rounds.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from sgfusion.errors import IdentityError, UnavailableError
from sgfusion.wire.channel import is_loopback, split_address
from sgfusion.wire.endpoint import Endpoint, Shown
from sgfusion.wire.identity import MAY_READ_METRICS, certified
from sgfusion.wire.metrics import CONTENT_TYPE, Metrics
from sgfusion.wire.repeats import Repeats
from sgfusion.wire.service import METRICS, announce, retract
from sgfusion.wire.web import names_this_machine, server_context

PATH = "/metrics"
REQUEST_WITHIN = 5.0
"""Seconds for a caller to prove who it is, and again to say what it wants."""
ANSWER_WITHIN = 10.0
"""Seconds for a caller to take the answer."""
MOST_BYTES = 8 << 10
"""Of a request: Prometheus sends some three hundred."""
MOST_OPEN = 32
"""Connections at a time; further ones are hung up on."""
_log = logging.getLogger("sgfusion.metrics")


class _Refusal(NamedTuple):
    status: HTTPStatus
    why: str


class MetricsServer(Shown):
    """Serves one service's metrics until it is stopped."""

    def __init__(self, endpoint: Endpoint, metrics: Metrics, state: Path) -> None:
        self._endpoint = endpoint
        self._metrics = metrics
        self._file = endpoint.file or state / METRICS
        self._local = is_loopback(endpoint.listen)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._rendering = asyncio.Lock()  # one at a time, however many ask
        self._repeats = Repeats()
        self.url = ""

    async def start(self) -> None:
        """Listen, and say where: port 0 becomes the port that it was given."""
        host, port = split_address(self._endpoint.listen)
        keys = self._endpoint.keys if self._endpoint.secure else None
        context = server_context(keys, callers=ssl.CERT_REQUIRED) if keys else None
        limits = {"ssl_handshake_timeout": REQUEST_WITHIN, "ssl_shutdown_timeout": 1.0} if context else {}
        retract(self._file.parent, self._file.name)
        try:
            self._server = await asyncio.start_server(
                self._connected, host, port, limit=MOST_BYTES, ssl=context, **limits
            )
        except OSError as error:
            raise UnavailableError(
                f"--metrics {self._endpoint.listen}: cannot listen there ({error.strerror or error}):"
                " the port is taken, or the address is not this machine's"
            ) from error
        bound = self._server.sockets[0].getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'http' if context is None else 'https'}://{name}:{bound}{PATH}"
        announce(self._file.parent, self.url, self._file.name)
        _log.info("metrics at %s", self.url)

    async def stop(self) -> None:
        """At once: whoever is being answered asks again elsewhere."""
        if self._server is None:
            return
        retract(self._file.parent, self._file.name)
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MOST_OPEN:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            refusal = await self._refusal(reader, writer)
            if refusal is None:
                status, content = HTTPStatus.OK, await self._text()
            else:
                status, content = refusal.status, f"{refusal.why}\n".encode()
            async with asyncio.timeout(ANSWER_WITHIN):
                writer.write(_response(status, content))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, TimeoutError):  # it went away, says nothing, or takes nothing
            pass
        except Exception:  # noqa: BLE001 (whatever it is, the service goes on)
            _log.exception("metrics could not be shown")
        finally:
            writer.transport.abort()  # nothing to one that is closed

    async def _refusal(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Refusal | None:
        """Why the next request is not answered, if it is not."""
        try:
            async with asyncio.timeout(REQUEST_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a request has at most {MOST_BYTES} bytes")
        headers = _headers(head)
        return headers if isinstance(headers, _Refusal) else self._check(headers, writer)

    def _check(self, headers: Mapping[str, list[str]], writer: asyncio.StreamWriter) -> _Refusal | None:
        """Who may see it: whoever is on this machine and means it, or whose certificate says so."""
        if self._local and [names_this_machine(host) for host in headers.get("host", ())] != [True]:
            return _Refusal(
                HTTPStatus.FORBIDDEN, "the Host header does not name this machine: ask for 127.0.0.1 or localhost"
            )
        if not self._endpoint.secure:
            return None
        names = (writer.get_extra_info("peercert") or {}).get("subjectAltName", ())
        try:
            who = certified(value for kind, value in names if kind == "URI")
            if who.role not in MAY_READ_METRICS:
                may = " or ".join(sorted(MAY_READ_METRICS))
                raise IdentityError(f"{who} may not read metrics: {may} may")
        except IdentityError as error:
            if self._metrics.refusals is not None:
                self._metrics.refusals.count(type(error).__name__)
            more = self._repeats.told(str(error), time.monotonic())
            if more is not None:  # who has the wrong keys asks again every few seconds
                since = f"; {more} more of these since the last line" if more else ""
                _log.warning("refused %s: %s%s", PATH, error, since)
            return _Refusal(HTTPStatus.FORBIDDEN, str(error))
        return None

    async def _text(self) -> bytes:
        async with self._rendering:
            self._metrics.look()
            return await asyncio.to_thread(self._metrics.text)


def _headers(head: bytes) -> Mapping[str, list[str]] | _Refusal:
    """Those of a GET of our one page; others are refused."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _Refusal(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")
    method, target, _ = words
    if target.partition("?")[0] != PATH:
        return _Refusal(HTTPStatus.NOT_FOUND, f"there is nothing here but {PATH}")
    if method != "GET":
        return _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered")
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            return _Refusal(HTTPStatus.BAD_REQUEST, "a header is not written NAME: VALUE")
        headers.setdefault(name.lower(), []).append(value.strip())
    return headers


def _response(status: HTTPStatus, content: bytes) -> bytes:
    kind = CONTENT_TYPE if status is HTTPStatus.OK else "text/plain; charset=utf-8"
    allow = "Allow: GET\r\n" if status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{allow}"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content
