"""Our errors as gRPC statuses, and back: one table.

The status code is for anybody's tools; the class itself travels as trailing metadata, so the caller gets the same kind
of error with the same message. What carries no class of ours was said by the transport.
"""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import grpc.aio

from sgfusion import errors
from sgfusion.errors import SGFusionError
from sgfusion.wire.words import heard

_UNREACHED = re.compile(r"failed to connect to all addresses; last error: \w+: (?:ipv[46]:)?(\S+): (.+)", re.DOTALL)
_UNPROVEN = {
    "unable to get local issuer certificate": (
        "its certificate is of another CA than the ca.crt here: bring the keys that were made where its CA is, anew if"
        " that CA was made anew"
    ),
    "certificate has expired": "its certificate has ended: `sgfusion certs` makes it anew where the CA's key is",
    "certificate is not yet valid": "its certificate is not valid yet: this host's clock is behind",
    "unsupported certificate purpose": "who answers there has no certificate of a server: it is a device's, say",
    "Hostname Verification Check failed": "who answers there is somebody else of this run: give the right address",
}
"""Why a server does not prove to be whom we dialled: gRPC's words, which only experts read, and ours."""
_SILENT = (
    "ping timeout",
    "keepalive watchdog timeout",
    "Handshake read failed (Endpoint closing)",
    "connection attempt timed out before receiving SETTINGS frame",
)
"""gRPC's words for a connection on which nothing comes back."""
METADATA = "sgfusion-error"
"""Where the name of the error's class is."""

CODES: dict[type[SGFusionError], grpc.StatusCode] = {
    SGFusionError: grpc.StatusCode.UNKNOWN,
    errors.InputError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.ProtocolError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.IdentityError: grpc.StatusCode.PERMISSION_DENIED,
    errors.ContractError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NotEnrolledError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.UnknownAskError: grpc.StatusCode.NOT_FOUND,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.DeadlineError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.StoreError: grpc.StatusCode.DATA_LOSS,
    errors.LedgerError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.RoundError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.PeerUnavailableError: grpc.StatusCode.ABORTED,
    errors.DivergedError: grpc.StatusCode.OUT_OF_RANGE,
    errors.MissingDependencyError: grpc.StatusCode.UNIMPLEMENTED,
}
"""The status of an error: that of the nearest class above it which is listed."""

_TRANSPORT: dict[grpc.StatusCode, type[SGFusionError]] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineError,
    grpc.StatusCode.PERMISSION_DENIED: errors.IdentityError,
    grpc.StatusCode.UNAUTHENTICATED: errors.IdentityError,
    grpc.StatusCode.INVALID_ARGUMENT: errors.InputError,
    grpc.StatusCode.UNIMPLEMENTED: errors.ProtocolError,  # no such RPC there: another version, or another service
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ProtocolError,  # a message above the limit
}  # all others (UNAVAILABLE, CANCELLED, INTERNAL for a reset stream): the connection broke, and may come back

_CLASSES = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SGFusionError)}
REASONS = (*sorted(_CLASSES), "internal")
"""All that `Refusals` may count: the kinds of our errors, and a failure of our own."""
_LONGEST = 1_000  # characters
_HEAVIEST = 6_000  # bytes: gRPC sends a message percent-encoded in a header, and refuses headers of 8 KiB


def to_status(error: SGFusionError) -> tuple[grpc.StatusCode, str]:
    """The code and the message of an error, without data: who hears it has a log too."""
    code = next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    return code, _cut(error.discreet)


def metadata_of(error: SGFusionError) -> tuple[tuple[str, str], ...]:
    """The trailing metadata that says which error it is: the nearest class that both sides have."""
    return ((METADATA, next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _CLASSES)),)


def from_rpc_error(error: grpc.aio.AioRpcError) -> SGFusionError:
    """What the other side raised, or what became of the connection."""
    name = next((value for key, value in error.trailing_metadata() or () if key == METADATA), None)
    message = heard(error.details() or "") or f"the call ended with {error.code().name} and no message"
    kind = _CLASSES.get(str(name)) if name is not None else None
    if kind is None and any(words in message for words in _SILENT):
        where = unreached.group(1) if (unreached := _UNREACHED.match(message)) else "there"
        return errors.SilentError(f"nobody answers at {where}: its process may be frozen, or its host be gone")
    if kind is None and (unreached := _UNREACHED.match(message)):
        address, why = unreached.groups()
        if ours := next((ours for grpcs, ours in _UNPROVEN.items() if grpcs in why), None):
            return errors.UnprovenError(f"no connection to {address}: {ours}")
        message = f"no connection to {address} ({why}): is the service up, and is that its address?"
    return (kind or _TRANSPORT.get(error.code(), errors.UnavailableError))(message)


def said_by_us(error: grpc.aio.AioRpcError) -> bool:
    """Whether a service of ours answered so, and not the transport."""
    return any(key == METADATA for key, _ in error.trailing_metadata() or ())


@contextmanager
def translated() -> Iterator[None]:
    """Around a client's calls: errors come out as ours."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from error


def _cut(message: str) -> str:
    message = message.encode("utf-8", "replace").decode()  # a lone surrogate cannot be sent
    short = message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"
    while 3 * len(short.encode()) > _HEAVIEST:  # at worst every byte is sent as %XX
        short = short[: len(short) * 2 // 3] + "…"
    return short


class Refusals:
    """How often a service refused, by the kind of error, since it started."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, reason: str) -> None:
        """One more."""
        self._counts[reason] += 1

    def counts(self) -> dict[str, int]:
        """By reason, in alphabetical order."""
        return dict(sorted(self._counts.items()))
