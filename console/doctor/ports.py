"""The usual ports: whether a service could listen there, or who does."""

import errno
import os
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.doctor.findings import Finding, look, ok

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


def _option(use: str) -> str:
    return "--page HOST:PORT (by default it takes any free one)" if use == "the page" else "--listen HOST:PORT"


def _look(number: int, use: str) -> Port:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", number))
            tried.listen(1)
    except OSError as error:
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
