"""What a measured process says to the one that measures: by lines on stdin and stdout.

A server says its address, then "ready" when all devices are there. It is sent numbers of rounds, and answers each with
the seconds of its rounds, as JSON. Both servers and clients end when stdin does. Imports nothing but the standard
library: Flower's processes have another virtual environment.
"""

import json
import os
import sys
import threading
from collections.abc import Callable


def say(line: str) -> None:
    """To the parent."""
    print(line, flush=True)


def serve_rounds(rounds: Callable[[int], list[float]]) -> None:
    """Until stdin ends."""
    for line in sys.stdin:
        say(json.dumps(rounds(int(line))))


def end_with_parent() -> None:
    """For a client: whatever it does ends when stdin does."""

    def watch() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
