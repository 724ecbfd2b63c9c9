"""A Ray cluster as the pool: the same work as remote tasks of one CPU each, the same results to the bit.

This process alone writes files, so the cluster's machines need no shared disk; they need this package and, at the same
path, the data files that the run file names.
"""

import os
import socket
import time
from collections.abc import Iterable
from typing import Any

from sgfusion.errors import MissingDependencyError, RunFileError, brought_by
from simulator.work import Queue, Watcher, Work, attempt

AHEAD = 2
"""Tasks handed to Ray beyond those that can run at once: a CPU that gets free has the next one waiting."""

PATIENCE = 20.0
"""Seconds for a cluster's address to answer."""
GLANCE = 10.0
"""Seconds between two looks at what the cluster has."""
IDLE = 600.0
"""Seconds that a cluster may be without any CPU: one that grows on demand needs some minutes for its first machine."""
TRIES = "3"
"""How often Ray asks a head before it gives up, of up to 40 seconds each; its own 20 are minutes of a silent screen."""
SETTINGS = 4
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, SETTINGS, 0, 0, 0, 0, 0))
"""How gRPC begins: HTTP/2's preface and no settings. A Ray head answers with settings of its own (RFC 9113, 3.4)."""

REMEDIES = {
    "authentication token": "the cluster asks for its token: set RAY_AUTH_MODE=token, and copy the head's "
    "~/.ray/auth_token to the same place here, or name a file that has it in RAY_AUTH_TOKEN_PATH",
    "version mismatch": "install the same versions of Ray and Python on all machines",
    "no node info found": "this machine is not of that cluster: run `ray start --address HOST:PORT` on it first",
    "any running ray instance": "no Ray runs on this machine: start one with `ray start --head`, or give HOST:PORT",
}
"""What to do, by what Ray says (in small letters)."""


class RayPool:
    """The cluster at `address`, or one started on this machine alone with `workers` CPUs."""

    def __init__(self, address: str | None, workers: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address is not None:  # not for a cluster of our own, which would inherit it
            os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", TRIES)
        else:  # as the process pool's: by default Ray's workers yield to all others, and start in minutes beside them
            os.environ.setdefault("RAY_worker_niceness", "0")
        try:
            import ray  # noqa: PLC0415 (an optional extra)
        except ImportError as error:
            raise MissingDependencyError(f"--backend ray needs ray: {brought_by('ray')}") from error
        self._ray: Any = ray
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address is None:
            settings |= {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        else:
            _check_answers(address, ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
        try:
            ray.init(address or "local", **settings)
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            asked = "--backend ray" if address is None else f"--address {address!r}"
            raise RunFileError(f"{asked}: {_refusal(error)}") from error
        self._remote = ray.remote(num_cpus=1, max_retries=0)(_attempt)

    def run(self, works: Iterable[Work], watcher: Watcher) -> None:
        """Do it all, group by group and the long ones first, as far as Ray keeps the order."""
        queue, under_way = Queue(works), dict[Any, Work]()
        group, could_work = "", time.monotonic()
        while True:
            cpus = int(self._ray.cluster_resources().get("CPU", 0))  # machines come and go
            while len(under_way) < cpus + AHEAD and (work := queue.take(group, set())) is not None:
                group = work.group
                under_way[self._remote.remote(work.function, work.text)] = work
                watcher.started(work)
            if not under_way:
                return
            ready, _ = self._ray.wait(list(under_way), num_returns=1, timeout=GLANCE)
            if cpus:
                could_work = time.monotonic()
            elif time.monotonic() - could_work > IDLE:
                raise RunFileError(f"the Ray cluster has had no CPU for {IDLE:.0f} s. Add a machine and start again")
            for reference in ready:
                self._hear(reference, under_way.pop(reference), watcher)

    def close(self) -> None:
        """Leave the cluster; a local one ends."""
        self._ray.shutdown()

    def _hear(self, reference: Any, work: Work, watcher: Watcher) -> None:
        try:
            result, reason = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            result, reason = None, f"its Ray worker is no more: {str(error).splitlines()[0]}"
        if result is None:
            watcher.failed(work, reason)
        else:
            watcher.finished(work, result)


def _check_answers(address: str, here: str) -> None:
    """Ray itself tries for minutes, and fills the screen. `auto` is left to it.

    Ray reads loopback as this machine's own address (`here`), so that is where to look.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        return
    host = host.strip("[]")
    host = here if host in {"localhost", "127.0.0.1", "::1"} else host
    try:
        with socket.create_connection((host, int(port)), PATIENCE) as connection:
            connection.sendall(HELLO)
            answer = connection.recv(9)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RunFileError(
            f"--address {address!r}: nothing answers there ({reason}). Give that of a Ray head (Ray looks at {host})"
        ) from error
    if answer[3:4] != bytes((SETTINGS,)):
        raise RunFileError(f"--address {address!r}: what answers there is not Ray. Give that of a Ray head")


def _refusal(error: Exception) -> str:
    """The first sentence of what Ray says, and what to do about it."""
    said = f"{error} {error.__cause__ or ''}".lower()
    remedy = next((remedy for sign, remedy in REMEDIES.items() if sign in said), "is Ray well there?")
    return f"{' '.join(str(error).split()).partition('. ')[0]}: {remedy}"


def _attempt(function: str, text: str) -> tuple[str | None, str]:
    return attempt(function, text, lambda _done, _of: None)
