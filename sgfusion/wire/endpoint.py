"""Where a service shows its metrics: `--metrics` and `--metrics-plain` of the command line."""

from dataclasses import dataclass
from pathlib import Path

from sgfusion.errors import IdentityError, InputError
from sgfusion.wire.channel import is_loopback

PORT = 9464
"""Where a service shows its metrics in a container."""


@dataclass(frozen=True)
class Endpoint:
    """Where a service shows its metrics, as the command line says; refused where anybody could read them unasked."""

    listen: str
    keys: Path | None = None
    """The folder of the service's own ca.crt, tls.crt and tls.key, if it has a certificate of a server."""
    plain: bool = False
    """Plain text beyond loopback addresses too: who can reach the port can read it."""
    file: Path | None = None
    """Where it says its address, if not in its state folder."""

    def __post_init__(self) -> None:
        if not (is_loopback(self.listen) or self.plain or self.keys):
            raise IdentityError(
                f"--metrics {self.listen}: beyond loopback addresses metrics are shown over mutual TLS, and this"
                f" service has no certificate of a server. Give a loopback address, as in 127.0.0.1:{PORT}, or"
                " --metrics-plain if all who can reach the port may read them"
            )

    @property
    def secure(self) -> bool:
        """Whether callers have to prove who they are."""
        return not (is_loopback(self.listen) or self.plain)


class Shown:
    """A service's metrics as others see them; this one shows none."""

    async def start(self) -> None:
        """Show them."""

    async def stop(self) -> None:
        """Show them no longer; at once."""


def endpoint_of(listen: str | None, keys: Path | None, *, plain: bool, file: Path | None = None) -> Endpoint | None:
    """As the command line says it; None if there are to be no metrics."""
    if listen is None:
        if plain or file is not None:
            raise InputError("--metrics-plain and --metrics-file are of --metrics HOST:PORT: say where to show them")
        return None
    return Endpoint(listen, keys, plain, file)
