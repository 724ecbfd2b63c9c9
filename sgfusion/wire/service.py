"""What every service process has in common: an address that others find, a calm end. Its log is in logs.py."""

import asyncio
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from sgfusion.durable import replace_file, sweep_unfinished
from sgfusion.errors import InputError

PARENT = "SGFUSION_PARENT"
"""The environment variable with the id of the process that a service must not outlive: `sgfusion up` sets it."""
ADDRESS = "address"
"""The file of a service's state folder that says where it serves."""
METRICS = "metrics"
"""The one that says where its metrics are: a URL."""
PAGE = "page"
"""The one that says where the cloud's page is: a URL."""
MOST_FILES = 65_536
PARENT_EVERY = 1.0  # seconds between two looks at who our parent is


def raise_file_limit() -> None:
    """A connection for each device, zone or peer: the 1024 files that many systems give are soon used up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def announce(state: Path, address: str, file: str = ADDRESS) -> None:
    """Say in the state folder where the service is reached, once it is: with port 0 nobody knows before."""
    replace_file(state / file, f"{address}\n".encode())


def retract(state: Path, file: str = ADDRESS) -> None:
    """Remove an earlier process's address before this one serves: whoever waits for the file then waits for us."""
    path = state / file
    sweep_unfinished(path)
    path.unlink(missing_ok=True)


def announced(state: Path, file: str = ADDRESS) -> str | None:
    """The address in the state folder; None if there is none yet."""
    try:
        return (state / file).read_text("utf-8").strip() or None
    except FileNotFoundError:
        return None


async def until_stopped() -> str:
    """Wait for SIGTERM, SIGINT or the end of the parent, and say which it was.

    Handlers are those of before when this returns, so a second signal ends a process that does not stop.
    """
    parent = expected_parent()
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[str] = loop.create_future()

    def stop(reason: str) -> None:
        if not stopped.done():
            stopped.set_result(reason)

    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        loop.add_signal_handler(number, stop, number.name)
    watch = asyncio.create_task(_until_orphaned(stop, parent))
    try:
        return await stopped
    finally:
        watch.cancel()
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def expected_parent() -> int | None:
    """The process that this one was told not to outlive."""
    said = os.environ.get(PARENT)
    if not said:
        return None
    if not said.isdecimal():
        raise InputError(f"{PARENT} = {said!r}: give the id of the process that starts the service, or leave it out")
    return int(said)


async def _until_orphaned(stop: Callable[[str], None], parent: int | None) -> None:
    """An orphan has another parent: a killed `sgfusion up` leaves no service behind."""
    while parent is not None and os.getppid() == parent:
        await asyncio.sleep(PARENT_EVERY)
    if parent is not None:
        stop(f"its parent, process {parent}, is gone")
