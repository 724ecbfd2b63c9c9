"""Who speaks, and who may call what (architecture, Identity).

A certificate's URI SAN says role and name: `spiffe://sgfusion/edge/lublin`. `ALLOWED` is the one table of roles by RPC;
what it does not list is refused. That an edge speaks for its own zone alone, and a device for itself, depends on the
message, so handlers ask for it with `require_edge_of` and `require_device`.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import quote, unquote

import grpc.aio

from sgfusion.errors import IdentityError

Role = Literal["cloud", "edge", "device", "operator", "monitor"]
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

ROLES: tuple[Role, ...] = get_args(Role)
METADATA = "sgfusion-identity"
"""Where the caller's URI is when there is no TLS to say it."""

_PREFIX = "spiffe://sgfusion/"
_NAMED = frozenset({"edge", "device"})
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_HASHED = re.compile(r"x-[0-9a-f]{20}")
_SAFE = re.compile(r"\w[\w.-]*")
_SHOWN = 120  # characters of a caller's claim that an error repeats: the caller chose them, and a log has to hold them

_EDGE: frozenset[Role] = frozenset({"edge"})
_DEVICE: frozenset[Role] = frozenset({"device"})
_OPERATOR: frozenset[Role] = frozenset({"operator"})

ALLOWED: Mapping[str, frozenset[Role]] = MappingProxyType(
    {
        "/sgfusion.v1.CloudService/Enrol": _EDGE,
        "/sgfusion.v1.CloudService/SubmitHistogram": _EDGE,
        "/sgfusion.v1.CloudService/WatchPlan": _EDGE,
        "/sgfusion.v1.CloudService/Report": _EDGE,
        "/sgfusion.v1.CloudService/Leave": _EDGE,
        "/sgfusion.v1.CloudService/GetStatus": _OPERATOR,
        "/sgfusion.v1.CloudService/WatchStatus": _OPERATOR,
        "/sgfusion.v1.CloudService/GetRecords": _OPERATOR,
        "/sgfusion.v1.EdgeService/Attend": _DEVICE,
        "/sgfusion.v1.EdgeService/FetchModel": _OPERATOR,
        "/sgfusion.v1.PeerService/Direction": _EDGE,
        "/sgfusion.v1.ServerService/Describe": _EDGE | _DEVICE | _OPERATOR,
    }
)
"""The roles that may call an RPC, by its full path. A monitor calls none."""
MAY_READ_METRICS: frozenset[Role] = frozenset({"operator", "monitor"})
"""Who may see `/metrics` where a certificate is asked for: Prometheus needs no more than this."""


@dataclass(frozen=True)
class Identity:
    """A role, and the name of the zone or the device; the cloud, operators and monitors have none."""

    role: Role
    name: str = ""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise IdentityError(f"role is {self.role!r}: there are {', '.join(ROLES)}")
        if (self.role in _NAMED) != bool(self.name):
            wanted = "needs a name" if self.role in _NAMED else f"has no name, got {self.name[:_SHOWN]!r}"
            raise IdentityError(f"an identity of role {self.role} {wanted}")

    def __str__(self) -> str:
        return f"{self.role} {self.name}" if self.name else self.role

    @property
    def uri(self) -> str:
        """As a certificate has it; the name percent-quoted."""
        return f"{_PREFIX}{self.role}/{quote(self.name, safe='')}" if self.name else f"{_PREFIX}{self.role}"

    @classmethod
    def from_uri(cls, text: str) -> "Identity":
        """The identity of that URI. An identity has one spelling: any other quoting of it is refused."""
        role, _, name = text.removeprefix(_PREFIX).partition("/")
        if text.startswith(_PREFIX) and role in ROLES and (role in _NAMED) == bool(name):
            found = cls(role, unquote(name))
            if found.uri == text:
                return found
        raise IdentityError(
            f"{text[:_SHOWN]!r} is no identity:"
            f" expected {_PREFIX}cloud, …/operator, …/monitor, …/edge/<zone> or …/device/<id>"
        )

    @property
    def server_name(self) -> str:
        """The DNS name of its certificate, which callers verify; only the cloud and edges have one."""
        if self.role == "cloud":
            return "cloud.sgfusion"
        if self.role == "edge":
            return f"{_slug(self.name)}.edge.sgfusion"
        raise IdentityError(f"{self} serves nothing: only the cloud and edges have a server name")


def _slug(name: str) -> str:
    # A name that looks like a hash is hashed too: else a zone could be named so that it passes for another.
    if _LABEL.fullmatch(name) and not _HASHED.fullmatch(name):
        return name
    return "x-" + hashlib.sha256(name.encode()).hexdigest()[:20]


def folder_of(root: Path, identity: Identity) -> Path:
    """Where `sgfusion certs` puts an identity's ca.crt, tls.crt and tls.key; no two identities share a folder."""
    if not identity.name:
        return root / identity.role
    name = identity.name if _SAFE.fullmatch(identity.name) else quote(identity.name, safe="")
    return root / f"{identity.role}-{name}"


def caller(context: Context) -> Identity:
    """Who calls: from the verified certificate, or from metadata if the server is insecure (loopback alone)."""
    found = context.auth_context()
    if b"ssl" not in found.get("transport_security_type", ()):
        return _introduced(context)
    # `peer_uri` has the SANs of type URI alone; `x509_subject_alternative_name` mixes in DNS names, which may be spelt
    # like a URI, and `peer_spiffe_id` is silently absent if there are two.
    return certified(raw.decode("utf-8", "replace") for raw in found.get("peer_uri", ()))


def certified(uris: Iterable[str]) -> Identity:
    """Whose certificate it is, by its SANs of type URI: exactly one of them is ours."""
    ours = [uri for uri in uris if uri.startswith(_PREFIX)]
    if len(ours) != 1:
        raise IdentityError(
            f"the certificate has {len(ours)} URIs that start with {_PREFIX}, expected one: make it by `sgfusion certs`"
        )
    return Identity.from_uri(ours[0])


def _introduced(context: Context) -> Identity:
    claims = [value for key, value in context.invocation_metadata() or () if key == METADATA]
    if len(claims) != 1:
        raise IdentityError(f"the call has {len(claims)} values of {METADATA}, expected one: say who calls")
    claim = claims[0]
    return Identity.from_uri(claim if isinstance(claim, str) else claim.decode("utf-8", "replace"))


def admit(context: Context, method: str) -> Identity:
    """Who calls, if the table lets that role call the method."""
    who = caller(context)
    roles = ALLOWED.get(method, frozenset())
    if who.role not in roles:
        raise IdentityError(f"{who} may not call {method}: {' or '.join(sorted(roles)) or 'nobody'} may")
    return who


def require_edge_of(context: Context, zone: str) -> Identity:
    """The caller, if it is the edge of that zone: an edge speaks for its own zone alone."""
    return _require(context, "edge", zone)


def require_device(context: Context, device: str) -> Identity:
    """The caller, if it is that device."""
    return _require(context, "device", device)


def _require(context: Context, role: Role, name: str) -> Identity:
    who = caller(context)
    if (who.role, who.name) != (role, name):
        raise IdentityError(f"{who} may not speak for {role} {name[:_SHOWN]}: each speaks for itself alone")
    return who
