"""A TLS handshake with a server of ours: who answers there, until when its certificate holds, whether it takes ours.

For roles that may not ask for a status, as an edge, and for what no status says, as the end of a server's certificate.
No call is made. The server's certificate is looked at here, and not by the handshake, which would end at the first
fault and not say of whom it is.
"""

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from cryptography import x509

from console.doctor.certificates import SOON, in_days, signed, uri_of
from console.doctor.findings import Finding, broken, look, ok
from sgfusion.errors import IdentityError
from sgfusion.wire.channel import split_address
from sgfusion.wire.identity import Identity

WITHIN = 3.5
"""Seconds for a server to answer."""
THERE = (
    "`sgfusion certs RUN.toml` makes it anew where ca.key is; bring the folder to that server's host and restart it"
    " (docs/operate.md, Rotate certificates)"
)
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How HTTP/2 begins: with TLS 1.3 a client hears only by the answer to it whether its certificate was taken."""


@dataclass(frozen=True)
class Shown:
    """A server's certificate."""

    uri: str
    names: frozenset[str]
    """Of type DNS: those that callers go by."""
    begins: datetime
    ends: datetime
    by_our_ca: bool


@dataclass(frozen=True)
class Met:
    """What became of a handshake. `error` is why there was none, `refused` why the server hung up on us after it."""

    address: str
    error: str = ""
    shown: Shown | None = None
    refused: str = ""
    seconds: float = 0.0
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def left(self) -> timedelta | None:
        """How long the server's certificate still holds, if it showed one of our CA's: a stranger's is not ours to
        renew.
        """
        return self.shown.ends - self.now if self.shown is not None and self.shown.by_our_ca else None


async def meet(address: str, keys: Path, within: float = WITHIN) -> Met:
    """With the certificate in the folder `keys`; never an error."""
    try:
        ca, context = _own(keys)
    except (OSError, ValueError) as error:
        return Met(address, f"the keys in {keys} cannot be used ({_why(error)})")
    began = time.monotonic()
    try:
        async with asyncio.timeout(within):
            met = await _meet(address, context, ca)
    except TimeoutError:
        return Met(address, f"no answer within {within:g} s")
    except socket.gaierror as error:
        return Met(address, f"its name is unknown here ({error.strerror})")
    except ssl.SSLError as error:
        return Met(address, f"it does not speak TLS as we do ({_why(error)})")
    except (OSError, ValueError) as error:  # a host that is no name, a certificate that is none; InputError is one too
        return Met(address, _why(error))
    return Met(address, shown=met[0], refused=met[1], seconds=time.monotonic() - began)


def _own(keys: Path) -> tuple[x509.Certificate, ssl.SSLContext]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # looked at below; nothing is sent but a hello
    context.load_cert_chain(keys / "tls.crt", keys / "tls.key", password="")
    context.set_alpn_protocols(["h2"])
    return x509.load_pem_x509_certificate((keys / "ca.crt").read_bytes()), context


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)


async def _meet(address: str, context: ssl.SSLContext, ca: x509.Certificate) -> tuple[Shown, str]:
    host, port = split_address(address)
    reader, writer = await _dial(await _resolved(host, port), port, host, context)
    try:
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        shown = _shown(x509.load_der_x509_certificate(found), ca)
        try:
            writer.write(_HELLO)
            heard = await reader.read(1)
        except (ssl.SSLError, ConnectionError) as error:
            return shown, _why(error)
        return shown, "" if heard else "it hung up"
    finally:
        writer.transport.abort()


async def _resolved(host: str, port: int) -> list[str]:
    """The host's addresses. By a thread that is left behind if a name server hangs: the event loop's own are waited for
    at its end.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def look() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            _tell(loop, answer, lambda: answer.set_result(list(dict.fromkeys(str(each[4][0]) for each in found))))
        except (OSError, ValueError) as error:
            _tell(loop, answer, partial(answer.set_exception, error))

    threading.Thread(target=look, daemon=True).start()
    return await answer


def _tell(loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[list[str]]", say: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended: nobody waits any more
        loop.call_soon_threadsafe(lambda: None if answer.done() else say())


async def _dial(
    addresses: list[str], port: int, host: str, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The first of a host's addresses that answers."""
    for address in addresses[:-1]:
        with suppress(OSError):
            return await asyncio.open_connection(address, port, ssl=context, server_hostname=host)
    return await asyncio.open_connection(addresses[-1], port, ssl=context, server_hostname=host)


def _shown(found: x509.Certificate, ca: x509.Certificate) -> Shown:
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        dns = frozenset(names.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        dns = frozenset()
    return Shown(uri_of(found), dns, found.not_valid_before_utc, found.not_valid_after_utc, signed(found, ca))


def met_findings(check: str, met: Met, server: Identity, me: Identity) -> list[Finding]:
    """Of the server that should be `server`; at least one."""
    faults = list(_faults(check, met, server, me))
    if any(finding.verdict == "broken" for finding in faults):
        return faults
    words = (
        f"the {server} at {met.address} answers in {1000 * met.seconds:.0f} ms, proves who it is and takes us for {me}"
    )
    return [ok(check, words), *faults]


def _faults(check: str, met: Met, server: Identity, me: Identity) -> Iterator[Finding]:
    who, shown = f"the {server} at {met.address}", met.shown
    if shown is None:
        yield broken(
            check, f"{who} is not reached: {met.error}", "start it, or correct its address; does a firewall drop it?"
        )
        return
    if not shown.by_our_ca:
        yield broken(
            check,
            f"who answers at {met.address} has a certificate of another CA than the ca.crt here",
            "correct the address, or bring the keys that were made where that server's CA is",
        )
        return  # and so nothing that it says of itself counts
    if server.server_name not in shown.names:
        yield broken(check, f"at {met.address} answers {_name(shown.uri)}, and not the {server}", "correct the address")
    yield from ending(check, who, shown.ends - met.now)
    if shown.begins > met.now:
        yield broken(
            "clock",
            f"the certificate of {who} is valid from {shown.begins:%Y-%m-%d %H:%M} UTC on, and it is"
            f" {met.now:%Y-%m-%d %H:%M} here",
            "set this host's clock; is its time kept by NTP?",
        )
    if met.refused:
        yield broken(
            check,
            f"{who} does not take our certificate, of {me} ({met.refused})",
            "it has ended, or is of another CA than that server's: bring keys that were made where its CA is",
        )


def ending(check: str, who: str, left: timedelta) -> Iterator[Finding]:
    """Of a server's certificate that has ended, or soon will."""
    if left <= timedelta():
        yield broken(check, f"the certificate of {who} ended {in_days(-left)} ago", THERE)
    elif left < SOON:
        yield look(check, f"the certificate of {who} ends in {in_days(left)}", THERE)


def _name(uri: str) -> str:
    try:
        return str(Identity.from_uri(uri))
    except IdentityError:
        return uri or "nobody that we know"
