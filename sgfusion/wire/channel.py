"""Connections between tiers: TLS that proves both ends, keepalive, and retries within a budget (architecture, Faults).

A client verifies *which* server it speaks to by the DNS name of the certificate, whatever address it dialled; a server
verifies the client's certificate and reads the identity from it. Without keys everything stays on the loopback device
and a caller says in metadata who it is.
"""

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
from cryptography import x509

from sgfusion.errors import IdentityError, InputError, UnavailableError
from sgfusion.wire.boundary import Boundary
from sgfusion.wire.identity import METADATA, Identity, folder_of
from sgfusion.wire.measures import Traffic
from sgfusion.wire.status import Refusals

T = TypeVar("T")
MESSAGE_BYTES = 4 << 20
"""The largest message that either side takes; tensors come in chunks of a quarter of it."""

_ALIVE = [
    # NATs forget idle connections, many after a minute: ping before, also while nobody calls.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 20_000),  # what really ends a silent connection; 60 s by default
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # No probe of bandwidth by a ping with every message, which is half of the wake-ups of a small exchange. Instead a
    # window of fixed size: two largest messages may be under way before they are taken.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 2 * MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
]
_CLIENT = [
    *_ALIVE,
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 3_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # how long one attempt may take
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),  # a restarted container has another address
    ("grpc.use_local_subchannel_pool", 1),  # a connection of its own for each channel
]
_SERVER = [
    *_ALIVE,
    ("grpc.so_reuseport", 0),  # a taken port is an error, not half of the callers
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.server_handshake_timeout_ms", 10_000),  # who says nothing holds no socket for long
]
_SEES_OFF = "rpc_task"  # what gRPC calls its tasks that `stop_server` waits for


@dataclass(frozen=True)
class Keys:
    """What proves an identity: the CA that all trust, and a certificate of it with its private key (PEM)."""

    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)

    @classmethod
    def load(cls, folder: Path, whose: Identity | None = None, *, now: Callable[[], float] = time.time) -> "Keys":
        """From a folder that `sgfusion certs` made; refused if they are not `whose` they should be."""
        found = []
        for name in ("ca.crt", "tls.crt", "tls.key"):
            try:
                found.append((folder / name).read_bytes())
            except OSError as error:
                raise IdentityError(
                    f"{folder / name} cannot be read ({error.strerror}): `sgfusion certs` makes it from the run file"
                ) from error
        _refuse_unusable(folder)
        _refuse_untimely(folder / "tls.crt", found[1], now())
        if whose is not None:
            _refuse_anothers(folder / "tls.crt", found[1], whose)
        return cls(*found)


def _refuse_unusable(folder: Path) -> None:
    """Of files that it cannot use, gRPC says no more than that it cannot bind, or connect."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(folder / "ca.crt")
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key", password="")  # never ask on the terminal
    except ssl.SSLError as error:
        raise IdentityError(
            f"{folder} does not hold a CA, a certificate and its key ({error.reason or error}): "
            "`sgfusion certs` makes them anew"
        ) from error


def _refuse_anothers(path: Path, certificate: bytes, whose: Identity) -> None:
    """Found out at the start, not by every caller: they would only see that a host name does not match."""
    try:
        names = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
        uris = names.value.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    if whose.uri not in uris:
        raise IdentityError(
            f"{path} is the certificate of {', '.join(uris) or 'nobody'}, and {whose.uri} is needed:"
            f" give the folder that `sgfusion certs` made for it, {folder_of(Path('certs'), whose)} by default"
        )


def _refuse_untimely(path: Path, certificate: bytes, now: float) -> None:
    """The other side would just hang up, and "Socket closed" sends nobody to look at a date."""
    found = x509.load_pem_x509_certificate(certificate)
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    if ends.timestamp() <= now:
        raise IdentityError(f"{path} ended on {ends:%Y-%m-%d}: `sgfusion certs` makes it anew where the CA's key is")
    if begins.timestamp() > now:
        raise IdentityError(f"{path} is valid from {begins:%Y-%m-%d %H:%M} UTC on: this host's clock is behind")


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port"; an IPv6 host is in brackets."""
    host, colon, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InputError(f"address is {address!r}, expected host:port, as in 127.0.0.1:7400 or [::1]:7400")
    if ":" in bare and bare == host:
        raise InputError(f"address is {address!r}: put the IPv6 host into brackets, as in [::1]:7400")
    return bare, int(port)


def is_loopback(address: str) -> bool:
    """Whether "host:port" cannot be reached from, and does not lead to, another machine."""
    host, _ = split_address(address)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_channel(address: str, *, server: Identity, me: Identity, keys: Keys | None) -> grpc.aio.Channel:
    """A channel to a server that proves to be `server`; it connects when first used, and again whenever it broke."""
    split_address(address)
    if keys is None:
        _refuse_beyond_loopback(address, "dials")
        channel = grpc.aio.insecure_channel(address, [*_CLIENT, ("grpc.enable_http_proxy", 0)])
        for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
            setattr(channel, kind, _introducing(getattr(channel, kind), me))
        return channel
    credentials = grpc.ssl_channel_credentials(keys.ca, keys.key, keys.certificate)
    options = [*_CLIENT, ("grpc.ssl_target_name_override", server.server_name)]
    if is_loopback(address):  # a proxy of the environment is for other machines
        options.append(("grpc.enable_http_proxy", 0))
    return grpc.aio.secure_channel(address, credentials, options)


def _introducing(make: Callable[..., Callable[..., Any]], me: Identity) -> Callable[..., Callable[..., Any]]:
    """The channel's maker of calls, each of which says in metadata who calls.

    Not by gRPC's client interceptors: those put another class around streams, which ends and fails in its own ways,
    and insecure mode should differ from TLS in nothing else.
    """

    def made(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        call = make(*args, **kwargs)

        def introduced(*args: Any, metadata: Any = None, **kwargs: Any) -> Any:
            return call(*args, metadata=(*(metadata or ()), (METADATA, me.uri)), **kwargs)

        return introduced

    return made


async def start_server(
    register: Callable[[grpc.aio.Server], None],
    listen: str,
    *,
    me: Identity,
    keys: Keys | None,
    refusals: Refusals,
    traffic: Traffic | None = None,
) -> tuple[grpc.aio.Server, str]:
    """A server with the handlers that `register` adds, and where it listens: port 0 becomes the port it was given."""
    host, _ = split_address(listen)
    if keys is None:
        _refuse_beyond_loopback(listen, "listens on")
    server = grpc.aio.server(interceptors=[Boundary(me, refusals, traffic)], options=_SERVER)
    register(server)
    try:
        if keys is None:
            port = server.add_insecure_port(listen)
        else:
            pair = [(keys.key, keys.certificate)]
            port = server.add_secure_port(listen, grpc.ssl_server_credentials(pair, keys.ca, require_client_auth=True))
    except RuntimeError as error:
        raise UnavailableError(
            f"{me} cannot listen on {listen}: the port is taken, or the address is not this machine's"
        ) from error
    await server.start()
    return server, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def stop_server(server: grpc.aio.Server, grace: float) -> None:
    """Give calls under way so many seconds, then end them. A process does this last: others' calls are not told apart.

    gRPC sees each call off by a task of its own, which outlives `stop` by a moment. Whoever closes the event loop in
    that moment cancels it, and it prints a traceback.
    """
    await server.stop(grace)
    if left := {task for task in asyncio.all_tasks() if task.get_name() == _SEES_OFF}:
        await asyncio.wait(left, timeout=grace)


def _refuse_beyond_loopback(address: str, does: str) -> None:
    if not is_loopback(address):
        raise IdentityError(
            f"without certificates a tier {does} loopback addresses alone, not {address}: "
            "make certificates by `sgfusion certs`, or use 127.0.0.1"
        )


def backoff(attempt: int, random: Callable[[], float], *, first: float = 0.1, most: float = 5.0) -> float:
    """Seconds to wait after failure `attempt` (from 0): anywhere from 0 to a bound that doubles, so that those who
    failed together do not come back together.
    """
    return random() * min(most, first * 2.0 ** min(attempt, 60))


async def retrying(
    call: Callable[[], Awaitable[T]],
    *,
    budget_seconds: float,
    first: float = 0.1,
    most: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
    random: Callable[[], float] = random.random,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    failed: Callable[[int, UnavailableError], None] | None = None,
) -> T:
    """What `call` gives, tried anew while it is unavailable and the budget lasts; then its last error.

    `failed` hears of each failure. The budget does not interrupt a call: that has a timeout of its own.
    """
    end = clock() + budget_seconds
    attempt = 0
    while True:
        try:
            return await call()
        except UnavailableError as error:
            if failed is not None:
                failed(attempt, error)
            left = end - clock()
            if left <= 0:
                raise
            await sleep(min(left, backoff(attempt, random, first=first, most=most)))
            attempt += 1
