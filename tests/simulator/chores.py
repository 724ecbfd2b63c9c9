"""Work for pools to do in tests: a worker process imports it by name."""

import os
import signal
import threading
from pathlib import Path

from sgfusion.errors import DataError
from simulator.work import Advance

SEEN: list[str] = []


def echo(text: str, advance: Advance) -> str:
    advance(1, 1)
    return f"<{text}>"


def where(text: str, _advance: Advance) -> str:
    """The process, and what it was asked before."""
    SEEN.append(text)
    return f"{os.getpid()} {' '.join(SEEN)}"


def refuse(text: str, _advance: Advance) -> str:
    raise DataError(f"{text} has no data")


def stumble(_text: str, _advance: Advance) -> str:
    return str(1 // 0)


def be_killed(_text: str, _advance: Advance) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "still here"


def leave(text: str, _advance: Advance) -> str:
    os._exit(int(text))


def linger(text: str, _advance: Advance) -> str:
    """Say who it is in a file, then never end."""
    Path(text).with_suffix(".part").write_text(str(os.getpid()))
    Path(text).with_suffix(".part").replace(text)
    threading.Event().wait()
    return "never"


def threads(_text: str, _advance: Advance) -> str:
    return os.environ.get("OMP_NUM_THREADS", "")
