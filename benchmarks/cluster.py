"""A local cluster for a benchmark: real processes over TLS, in a folder that goes when it is done."""

import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from console.cluster import LocalCluster
from console.reach import Reached
from sgfusion.errors import UnavailableError
from sgfusion.runfile import RunFile
from sgfusion.wire.cloud_rpc import CloudClient
from simulator.resolve import devices_of, resolved

Result = TypeVar("Result")
LOOK_EVERY = 0.5
"""Seconds between two looks at a cluster that works: looking takes CPU from it."""


@contextmanager
def local_cluster(run: RunFile, *, hosts: int) -> Iterator[LocalCluster]:
    """Started, and stopped whatever happens."""
    whole = resolved(run)
    with tempfile.TemporaryDirectory(prefix="sgfusion-benchmark-") as folder:
        cluster = LocalCluster(Path(folder), whole, devices_of(whole), hosts=hosts)
        cluster.prepare()
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def ask(cluster: LocalCluster, question: Callable[[CloudClient], Awaitable[Result]]) -> Result:
    """The cloud's answer."""
    address = cluster.address("cloud")
    if address is None:
        raise UnavailableError("the cloud does not serve")
    return Reached(address, cluster.operator()).ask(question)


def wait_until(cluster: LocalCluster, holds: Callable[[], bool], *, within: float, every: float = LOOK_EVERY) -> None:
    """Until it holds; an error as soon as a process has ended, or when the time is over."""
    end = time.monotonic() + within
    while not holds():
        refuse_the_dead(cluster)
        if time.monotonic() > end:
            said = "\n".join(f"{service.name}: {service.last_words(2)}" for service in cluster.services.values())
            raise UnavailableError(f"the cluster is not where it should be within {within:.0f} s:\n{said}")
        time.sleep(every)


def refuse_the_dead(cluster: LocalCluster) -> None:
    """A figure of a cluster that lost a process is none."""
    for service in cluster.services.values():
        if service.wanted and not service.alive:
            raise UnavailableError(f"{service.name} has ended:\n{service.last_words(20)}")
