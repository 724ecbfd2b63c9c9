"""What services are called in a compose file, and where they are reached from outside."""

import re
from collections.abc import Sequence

from sgfusion.errors import InputError

PORT = 7070
"""Where every service listens, in its container."""
TAKEN = {7080: "the page's", 9090: "Prometheus'", 3000: "Grafana's"}
"""What the compose file publishes on the machine's loopback device, and whose it is."""
_SERVICE = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_HOST = re.compile(r"[\w.-]+|\[[0-9a-fA-F:.]+\]")


def service_names(zones: Sequence[str]) -> dict[str, str]:
    """What a zone's services are called: its name where that is a host's name too, else its number."""
    return {z: z if _SERVICE.fullmatch(z) and not z.startswith("zone-") else f"zone-{i}" for i, z in enumerate(zones)}


def published(said: str | None, zones: int) -> tuple[str | None, int]:
    """The host that others dial, and the cloud's port there; edges have those after it."""
    if said is None:
        return None, PORT
    host, colon, port = said.rpartition(":")
    if not colon:
        host, port = said, f"{PORT}"
    if not _HOST.fullmatch(host):
        raise InputError(
            f"--publish {said!r}: write HOST or HOST:PORT, with the name or address of this machine as HOST"
        )
    if not port.isdecimal() or not 0 < int(port) <= 65_535 - zones:
        raise InputError(f"--publish {said!r}: give a port from 1 to {65_535 - zones}: edges have the {zones} after it")
    for taken, use in TAKEN.items():
        if int(port) <= taken <= int(port) + zones:
            raise InputError(
                f"--publish {said!r}: the cloud and {zones} edges would have the ports {port} to {int(port) + zones},"
                f" and {taken} is {use}: give another, say --publish {host}:{taken + 1}"
            )
    return host, int(port)
