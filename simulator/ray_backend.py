"""A Ray cluster as the pool: the same work as remote tasks of one CPU each, the same results to the bit.

This process alone writes files, so the cluster's machines need no shared disk; they need this package and, at the same
path, the data files that the run file names.
"""

import os
import socket
from collections.abc import Iterable
from typing import Any

from sgfusion.errors import MissingDependencyError, RunFileError
from simulator.work import Queue, Watcher, Work, attempt

AHEAD = 2
"""Tasks handed to Ray beyond those that can run at once: a CPU that gets free has the next one waiting."""

PATIENCE = 10.0
"""Seconds for a cluster's address to answer."""


class RayPool:
    """The cluster at `address`, or one started on this machine alone with `workers` CPUs."""

    def __init__(self, address: str | None, workers: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray  # noqa: PLC0415 (an optional extra)
        except ImportError as error:
            raise MissingDependencyError("--backend ray needs ray: pip install 'sgfusion[ray]'") from error
        if address is not None:
            _check_answers(address)
        self._ray: Any = ray
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address is None:
            settings |= {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        ray.init(address or "local", **settings)
        self._remote = ray.remote(num_cpus=1, max_retries=0)(_attempt)

    def run(self, works: Iterable[Work], watcher: Watcher) -> None:
        """Do it all, group by group and the long ones first, as far as Ray keeps the order."""
        queue, under_way = Queue(works), dict[Any, Work]()
        most = int(self._ray.cluster_resources().get("CPU", 1)) + AHEAD
        group = ""
        while True:
            while len(under_way) < most and (work := queue.take(group, set())) is not None:
                group = work.group
                under_way[self._remote.remote(work.function, work.text)] = work
                watcher.started(work)
            if not under_way:
                return
            ready, _ = self._ray.wait(list(under_way), num_returns=1)
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


def _check_answers(address: str) -> None:
    """Ray itself tries for minutes, and fills the screen. `auto` and `ray://…` are left to it."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except OSError as error:
        raise RunFileError(
            f"--address {address!r}: nothing answers there ({error.strerror or error}). Give that of a Ray head"
        ) from error


def _attempt(function: str, text: str) -> tuple[str | None, str]:
    return attempt(function, text, lambda _done, _of: None)
