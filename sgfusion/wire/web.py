"""What both servers of HTTP share, the page and `/metrics`: for whom they are on this machine, and their TLS."""

import re
import ssl
from pathlib import Path

from sgfusion.wire.channel import is_loopback

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]]+)(?::[0-9]{0,5})?")


def names_this_machine(host: str) -> bool:
    """Whether a request's Host header names the loopback device.

    A page of somebody else's in a browser here could have its own name lead to 127.0.0.1 (DNS rebinding): the browser
    then says that name, and is answered nothing.
    """
    found = _HOST.fullmatch(host)
    return found is not None and is_loopback(f"{found[1].lower()}:0")


def server_context(folder: Path, *, callers: ssl.VerifyMode) -> ssl.SSLContext:
    """A server's TLS by its own keys in the folder, as `sgfusion certs` makes it. `callers`: whether they may or have
    to show a certificate; it has to be of our CA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key", password="")  # never ask on the terminal
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = callers
    return context
