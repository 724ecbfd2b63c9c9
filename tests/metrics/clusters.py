"""A local cluster of processes that show their metrics."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from console.targets import FILE
from sgfusion.runfile import RunFile
from simulator.resolve import devices_of
from tests.cluster.harness import Cluster


@contextmanager
def measured_cluster(run: RunFile, folder: Path, *, hosts: int = 2, lease: float | None = None) -> Iterator[Cluster]:
    """Started, its file of targets kept up to date as `sgfusion up` does; stopped whatever happens."""
    cluster = Cluster(folder, run, devices_of(run), hosts=hosts, metrics=True)
    if lease is not None:
        cluster.services["cloud"].command = _with(cluster.services["cloud"].command, "--lease", f"{lease:g}")
    cluster.prepare()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            assert cluster.targets is not None
            cluster.targets.look()

    looking = threading.Thread(target=look)
    try:
        cluster.start()
        looking.start()
        yield cluster
    finally:
        ended.set()
        if looking.ident is not None:
            looking.join()
        cluster.stop()


def targets_of(folder: Path) -> Path:
    return folder / FILE


def _with(command: Callable[[], Sequence[str]], *more: str) -> Callable[[], Sequence[str]]:
    return lambda: [*command(), *more]
