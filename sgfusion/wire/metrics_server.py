"""`/metrics` over HTTP: the one page of a server that does nothing else (`--metrics HOST:PORT`).

On a loopback address in plain text, for callers that name a loopback host: a web page that has its own name point here
(DNS rebinding) reads nothing. Beyond it over mutual TLS by the service's own keys, for operators and monitors; a device
has no certificate of a server, so there plain text has to be asked for. A request is a few lines within a few seconds,
an answer is made in a thread, and a connection carries one of each: nobody here holds up the rounds.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from sgfusion import errors
from sgfusion.errors import IdentityError, UnavailableError
from sgfusion.wire.channel import is_loopback, split_address
from sgfusion.wire.endpoint import PORT, Endpoint, Shown
from sgfusion.wire.identity import MAY_READ_METRICS, certified
from sgfusion.wire.metrics import CONTENT_TYPE, Metrics
from sgfusion.wire.service import METRICS, announce, retract

PATH = "/metrics"
REQUEST_WITHIN = 5.0
"""Seconds for a caller to prove who it is, and again to say what it wants."""
ANSWER_WITHIN = 10.0
"""Seconds for a caller to take the answer."""
MOST_BYTES = 8 << 10
"""Of a request: Prometheus sends some three hundred."""
MOST_OPEN = 32
"""Connections at a time; further ones are hung up on."""
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]]+)(:\d{0,5})?")
_log = logging.getLogger("sgfusion.metrics")


class _RefusedError(errors.ProtocolError):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


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
        self.url = ""

    async def start(self) -> None:
        """Listen, and say where: port 0 becomes the port that it was given."""
        host, port = split_address(self._endpoint.listen)
        context = _context(self._endpoint.keys) if self._endpoint.secure and self._endpoint.keys else None
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
            try:
                headers = await self._request(reader)
                self._check(headers, writer)
                status, content = HTTPStatus.OK, await self._text()
            except _RefusedError as refused:
                status, content = refused.status, f"{refused}\n".encode()
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

    async def _request(self, reader: asyncio.StreamReader) -> Mapping[str, list[str]]:
        """The headers of a GET of our one page; others are refused."""
        try:
            async with asyncio.timeout(REQUEST_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise _RefusedError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a request has at most {MOST_BYTES} bytes"
            ) from None
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")
        method, target, _ = words
        if target.partition("?")[0] != PATH:
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"there is nothing here but {PATH}")
        if method != "GET":
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered")
        headers: dict[str, list[str]] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise _RefusedError(HTTPStatus.BAD_REQUEST, "a header is not written NAME: VALUE")
            headers.setdefault(name.lower(), []).append(value.strip())
        return headers

    def _check(self, headers: Mapping[str, list[str]], writer: asyncio.StreamWriter) -> None:
        """Who may see it: whoever is on this machine and means it, or whose certificate says so."""
        if self._local and [_is_local(host) for host in headers.get("host", ())] != [True]:
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "the Host header does not name this machine: ask for 127.0.0.1 or localhost"
            )
        if self._endpoint.secure:
            names = (writer.get_extra_info("peercert") or {}).get("subjectAltName", ())
            try:
                who = certified(value for kind, value in names if kind == "URI")
                if who.role not in MAY_READ_METRICS:
                    may = " or ".join(sorted(MAY_READ_METRICS))
                    raise IdentityError(f"{who} may not read metrics: {may} may")
            except IdentityError as error:
                if self._metrics.refusals is not None:
                    self._metrics.refusals.count(type(error).__name__)
                _log.warning("refused %s: %s", PATH, error)
                raise _RefusedError(HTTPStatus.FORBIDDEN, str(error)) from error

    async def _text(self) -> bytes:
        async with self._rendering:
            self._metrics.look()
            return await asyncio.to_thread(self._metrics.text)


def _context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key", password="")  # never ask on the terminal
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _is_local(host: str) -> bool:
    """Whether a Host header names this machine."""
    found = _HOST.fullmatch(host)
    return found is not None and is_loopback(f"{found[1].lower()}:{PORT}")


def _response(status: HTTPStatus, content: bytes) -> bytes:
    kind = CONTENT_TYPE if status is HTTPStatus.OK else "text/plain; charset=utf-8"
    allow = "Allow: GET\r\n" if status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{allow}"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content
