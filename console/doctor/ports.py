"""The usual ports, or the addresses that are named: whether a service could listen there, or who does."""

import errno
import os
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.doctor.findings import Finding, broken, look, ok
from sgfusion.wire.channel import split_address

USUAL = {7070: "the cloud", 7080: "the page"}
"""What `sgfusion cloud` takes unless it is told otherwise. Edges are given theirs, and
`sgfusion up` takes free ones.
"""
_LISTENS = "0A"
LONGEST = 60
"""Characters of a command line."""


@dataclass(frozen=True)
class Port:
    """One of this host's: `taken` is why it cannot be had, `owner` who has it, as far as we may see."""

    number: int
    use: str
    taken: str = ""
    owner: str = ""


@dataclass(frozen=True)
class Place:
    """An address to listen on: `error` is why that cannot be, `owner` who has it, as far as we may see."""

    address: str
    error: OSError | ValueError | None = None
    owner: str = ""


def look_at_ports(ports: Iterable[tuple[int, str]] = tuple(USUAL.items())) -> list[Port]:
    """By trying to listen on loopback."""
    return [_look(number, use) for number, use in ports]


def port_findings(seen: Iterable[Port], ours: Collection[int] = ()) -> list[Finding]:
    """`ours` are those of the cluster that we look at: they should be taken."""
    found = []
    for port in seen:
        who = f" by {port.owner}" if port.owner else ""
        if not port.taken:
            found.append(ok("ports", f"{port.number}, where {port.use} is by default: free"))
        elif port.number in ours:
            found.append(ok("ports", f"{port.number}, {port.use}: in use{who}, as it should be"))
        else:
            found.append(
                look(
                    "ports",
                    f"{port.number}, {port.use}: {port.taken}{who}",
                    f"stop that, or give {port.use} another: {_option(port.use)}",
                )
            )
    return found


def look_at_places(addresses: Iterable[str]) -> list[Place]:
    """By trying to listen there. One after the other: two may be the same port."""
    found = []
    for address in addresses:
        host, port = split_address(address)
        error = _refusal(host, port)
        found.append(Place(address, error, _owner(port) if _code(error) == errno.EADDRINUSE else ""))
    return found


def place_findings(seen: Iterable[Place], ours: Collection[int] = ()) -> list[Finding]:
    """`ours` as above."""
    found = []
    for place in seen:
        address = place.address
        who = f" by {place.owner}" if place.owner else ""
        if place.error is None:
            found.append(ok("ports", f"{address}: free"))
        elif _code(place.error) != errno.EADDRINUSE:
            found.append(broken("ports", *_unfit(address, place.error)))
        elif split_address(address)[1] in ours:
            found.append(ok("ports", f"{address}: in use{who}, as it should be"))
        else:
            remedy = "if that is the service itself, all is well; else stop it, or give the service another address"
            found.append(look("ports", f"{address}: taken{who}", remedy))
    return found


def _unfit(address: str, error: OSError | ValueError) -> tuple[str, str]:
    """Why nobody could listen there, and what to do."""
    code = _code(error)
    if code == errno.EADDRNOTAVAIL:
        return (
            f"{address}: this host has no such address",
            "listen on one of its own (`ip address` lists them), or on 0.0.0.0 for all of them; --advertise of an edge"
            " says where others reach it",
        )
    if code == errno.EACCES:
        return (
            f"{address}: this user may not listen there",
            "give a port from 1024 on: those below need root, or the capability CAP_NET_BIND_SERVICE",
        )
    if isinstance(error, socket.gaierror | ValueError):
        return f"{address}: its name is unknown here", "correct it, or give an address of this host by its number"
    return f"{address}: {error.strerror or error}", "give the service another address"


def _code(error: Exception | None) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _refusal(host: str, port: int) -> OSError | ValueError | None:
    """Of a name with several addresses one will do, as where there is no IPv6; but nobody else may have any of them."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # the latter if it cannot be a name
        return error
    tried = [_tried(family, address) for family, _, _, _, address in found]
    taken = next((error for error in tried if _code(error) == errno.EADDRINUSE), None)
    return taken or (None if None in tried else tried[0])


def _tried(family: int, address: tuple[Any, ...]) -> OSError | None:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # who has just left does not count
            tried.bind(address)
            tried.listen(1)
    except OSError as error:
        return error
    return None


def _option(use: str) -> str:
    return "--page HOST:PORT (by default it takes any free one)" if use == "the page" else "--listen HOST:PORT"


def _look(number: int, use: str) -> Port:
    error = _tried(socket.AF_INET, ("127.0.0.1", number))
    if error is not None:
        taken = "taken" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
        return Port(number, use, taken, _owner(number))
    return Port(number, use)


def _owner(number: int) -> str:
    """The process that listens there, by Linux's own tables; others' processes may be hidden from us."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(number)}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208 (thousands of them)
                with suppress(OSError):
                    if os.readlink(f"{folder}/{name}") in sockets:  # noqa: PTH115 (as above)
                        return f"process {folder.parent.name} ({_command(folder.parent)})"
    return ""


def _inodes(number: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == number:
                    found.add(fields[9])
    return found


def _command(process: Path) -> str:
    words = (process / "cmdline").read_bytes().split(b"\0")
    line = b" ".join(words).decode("utf-8", "replace").strip()
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
