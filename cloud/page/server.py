"""The page on a socket: HTTP inside the event loop that is there, by uvicorn without its signals and its clock."""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from cloud.page.access import Access, kept_token
from cloud.page.assets import plotly_path
from cloud.page.feed import Feed
from cloud.page.site import Site
from cloud.page.source import Kind, Source
from sgfusion.errors import IdentityError, UnavailableError
from sgfusion.wire.channel import is_loopback, split_address
from sgfusion.wire.web import server_context

USUAL = "127.0.0.1:7080"
"""Where the page is if nobody says otherwise, and that port is free."""
EVERY = 0.3
"""Seconds between two messages of a kind, at least."""
HURRY = 10.0
"""Seconds for a connection to ask for something, and between two looks at what it does."""
DEAF = 3
"""Looks on end at which a client has taken nothing of what is sent to it, after which it is let go."""
GRACE = 0.5
"""Seconds for answers under way when the page stops."""
HANDSHAKE = 5.0
"""Seconds for the whole of a TLS handshake, and for a farewell."""
MOST_CONNECTIONS = 256
"""Open at a time, those in their handshake too."""
MOST_HEADER_BYTES = 16 << 10
_log = logging.getLogger("sgfusion.cloud")


@dataclass(frozen=True, eq=False)
class Place:
    """Where a page is served, and to whom. The socket listens already: who comes early waits for the first answer."""

    socket: socket.socket
    url: str
    access: Access
    tls: ssl.SSLContext | None


def take_place(
    address: str | None, *, state: Path | None, certs: Path | None, plain: bool, or_any_port: bool = False
) -> Place:
    """A place at `host:port`; at the usual one, or on any free port if that is taken, if nobody says otherwise.
    `or_any_port`: nobody has asked for the port of `address`, so another will do.

    Beyond loopback it speaks TLS with the keys in `certs`, or plain text if it is told to, and asks for an operator's
    certificate or for the token in the folder `state`. `sgfusion view` has no such folder and stays on
    loopback; `sgfusion up` shows a finished run by its cloud's keys and token, wherever the cloud's page was.
    """
    plotly_path()  # missed now, and not by who looks
    asked = address or USUAL
    near = is_loopback(asked)
    if not near and not plain and certs is None:
        raise IdentityError(
            f"--page {asked} is reached from other machines, and there are no keys to prove who serves it: give"
            " --certs, or --page-plain if something before it speaks TLS or nobody else is on that network"
        )
    if not near and state is None:
        raise IdentityError(f"--page {asked}: without a cloud's state, which has a token, on loopback addresses alone")
    # A proxy on this machine looks like anybody on it: who says that there is one has the token asked for.
    token = None if state is None or (near and not plain) else kept_token(state)
    tls = None if near or plain or certs is None else server_context(certs, callers=ssl.CERT_OPTIONAL)
    # Last: nobody waits at the door of a page that does not come.
    bound = _bound(asked, or_any_port=or_any_port or address is None)
    host, _ = split_address(asked)
    shown = f"[{host}]" if ":" in host else host
    scheme = "http" if tls is None else "https"
    return Place(bound, f"{scheme}://{shown}:{bound.getsockname()[1]}/", Access(token), tls)


class Page:
    """A page that is being served."""

    def __init__(self, place: Place, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        self._place, self._source = place, source
        # Milliseconds since 1970 are more than all messages of an earlier life: who comes back from one fetches anew.
        self._feed = Feed(int(time.time() * 1000), clock)
        site = Site(source, self._feed, place.access, clock)
        self._config = uvicorn.Config(
            site.app,
            http=_Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        )
        self._config.load()
        self._state = ServerState()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._connections: dict[_Connection, asyncio.Task[None]] = {}
        """The longest open first."""

    @property
    def viewers(self) -> int:
        """Who watches now."""
        return self._feed.viewers

    async def start(self) -> None:
        """Serve from now on."""
        self._tasks = (asyncio.create_task(self._publish()), asyncio.create_task(self._accept()))

    async def stop(self, last: Sequence[tuple[Kind, str]] = ()) -> None:
        """End all streams and connections, soon: nobody waits for who only looks. `last` is told before."""
        for kind, text in last:
            self._feed.publish(kind, text)
        self._feed.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._place.socket.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if answering := set(self._state.tasks):
            await asyncio.wait(answering, timeout=GRACE)
        left = (*self._connections.values(), *self._state.tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _accept(self) -> None:
        """Let in who comes. If all places are taken, the one makes way that has asked for nothing for the longest, so
        that nobody keeps others out by silence; if all are at work, who comes is turned away.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._place.socket)
            except OSError as error:
                _log.warning("the page can let in nobody (%s): it tries again", error.strerror)
                await asyncio.sleep(1.0)
                continue
            if len(self._connections) >= MOST_CONNECTIONS:
                idle = next((each for each in self._connections if each.idle), None)
                if idle is not None:
                    self._connections.pop(idle).cancel()
            if len(self._connections) < MOST_CONNECTIONS:
                connection = _Connection(self._config, self._state, {})
                self._connections[connection] = asyncio.create_task(self._serve(connection, accepted))
            else:
                accepted.close()
            await asyncio.sleep(0)  # a crowd at the door does not hold up the cloud

    async def _serve(self, connection: "_Connection", accepted: socket.socket) -> None:
        """One connection, from its handshake to its end."""
        tls = self._place.tls
        within = {} if tls is None else {"ssl_handshake_timeout": HANDSHAKE, "ssl_shutdown_timeout": HANDSHAKE}
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted, ssl=tls, **within)
            await connection.gone.wait()
        except OSError:
            pass  # no handshake came of it
        finally:
            self._connections.pop(connection, None)
            connection.abort()

    async def _publish(self) -> None:
        """Tell the news, a few times a second at most; while nobody looks they are not even put into words."""
        while True:
            await self._source.changed()
            try:
                self._tell()
            except Exception:  # noqa: BLE001 - whatever it is, the next news are told
                _log.exception("the page could not tell what has changed: who looks fetches everything anew")
                self._feed.skip()
            await asyncio.sleep(EVERY)

    def _tell(self) -> None:
        if self._feed.watched:
            for kind, text in self._source.news():
                self._feed.publish(kind, text)
        else:
            self._source.forget()
            self._feed.skip()


class _Connection(H11Protocol):
    """Knows who the client has proved to be, and waits neither for one that asks nothing nor for one that reads
    nothing: places are few, and anybody who reaches the port could take them all.
    """

    def __init__(self, config: uvicorn.Config, state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, state, app_state)
        self.gone = asyncio.Event()

    @property
    def idle(self) -> bool:
        """Whether nothing is under way: it is in its handshake, has asked for nothing yet, or has taken its answer."""
        request: Any = self.cycle  # None before the first one, whatever its type says
        if request is None:
            return True
        return bool(request.response_complete) and not self.transport.get_write_buffer_size()

    def abort(self) -> None:
        """End it at once."""
        transport: Any = self.transport  # None before the handshake is done, whatever its type says
        if transport is not None:
            with suppress(RuntimeError):  # it may be half closed
                transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {"uris": _proved(transport)}
        self._timer = self.loop.call_later(HURRY, self._look, None, 0, 0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self.gone.set()
        super().connection_lost(exc)

    def _look(self, answered: object, unsent: int, deaf: int) -> None:
        """Let go who has asked for nothing, whole, since the last look, or has taken no byte since some looks."""
        request: Any = self.cycle
        waits = self.transport.get_write_buffer_size()
        deaf = deaf + 1 if 0 < unsent <= waits else 0
        if (self.idle and request is answered) or deaf >= DEAF:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(HURRY, self._look, request, waits, deaf)


def _proved(transport: asyncio.Transport) -> tuple[str, ...] | None:
    """The URIs of the client's certificate, which the handshake has verified; None if it showed none."""
    tls: Any = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert() if tls is not None else None
    if not certificate:
        return None
    return tuple(value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI")


def _bound(address: str, *, or_any_port: bool) -> socket.socket:
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = (port, 0) if or_any_port else (port,)
    for tried in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, tried))
            bound.listen(100)
        except OSError as error:
            bound.close()
            if tried == ports[-1]:
                raise UnavailableError(
                    f"the page cannot listen on {address} ({error.strerror}): give another --page HOST:PORT, or"
                    " --page off"
                ) from error
        else:
            bound.setblocking(False)  # noqa: FBT003 (Python's own)
            return bound
    raise AssertionError("one of the ports was tried last")
