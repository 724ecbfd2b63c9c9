"""A line between the browser and a cloud that a test can cut."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Relay:
    """Hands on what either side says, byte by byte."""

    def __init__(self, url: str) -> None:
        self._there = ("127.0.0.1", urlsplit(url).port or 0)
        self._door = socket.create_server(("127.0.0.1", 0))
        self._lines: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """All lines that there are; new ones may come."""
        lines, self._lines = self._lines, []
        for line in lines:
            with suppress(OSError):  # one that is closed already
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def close(self) -> None:
        """For good."""
        with suppress(OSError):  # closed already
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):  # until it is closed
            while True:
                here = self._door.accept()[0]
                there = socket.create_connection(self._there)
                self._lines += [here, there]
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=_hand_on, args=(one, other), daemon=True).start()


def _hand_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):  # until it is cut
        while said := one.recv(65536):
            other.sendall(said)
        other.shutdown(socket.SHUT_WR)


@contextmanager
def relayed(url: str) -> Iterator[Relay]:
    relay = Relay(url)
    try:
        yield relay
    finally:
        relay.close()
