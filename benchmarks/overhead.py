"""What a cluster takes beside the bare compute of the same gradients and evaluations.

The cluster's time is that from the first plan that an edge has to the end of the last zone, by the edges' own logs:
rounds, evaluations, all questions to devices and peers over TLS, attention, steps, checkpoints, reports to the cloud.
Its start and the dendrogram are before it. The bare side is as many processes as the cluster has device hosts, each
with the same devices, one torch thread and nothing to wait for: the gradients that its devices computed in that very
run, and the evaluations, one after the other, at weights that are there already. The slower process counts.

Beside wall time, CPU seconds of all processes of either side: they say on a busy machine, too, what the cluster adds.
"""

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context, parent_process

import psutil

from benchmarks.cluster import ask, local_cluster, wait_until
from benchmarks.simulator import Ratio
from console.cluster import LocalCluster
from device.batch import Batch, batch_of
from device.direction import device_direction
from device.learner import Learner
from device.main import Hosted, load_devices
from device.tasks.task import load_task
from sgfusion.errors import UnavailableError
from sgfusion.reports import ZoneRecords
from sgfusion.runfile import RunFile
from simulator.resolve import resolved

HOSTS = 2
WITHIN = 600.0
"""Seconds for a cluster to finish."""
_BEGINS = re.compile(r"^(\S+)Z INFO +sgfusion\.edge: zone .*: plan \d+", re.MULTILINE)
_ENDS = re.compile(r"^(\S+)Z INFO +sgfusion\.edge: zone .*: (?:done|diverged) after round \d+", re.MULTILINE)


@dataclass(frozen=True)
class Work:
    """How often each zone's devices were asked for a direction, and for an evaluation."""

    directions: Mapping[str, int]
    evaluations: Mapping[str, int]


@dataclass(frozen=True)
class Took:
    """Seconds by the clock, and those that all processes worked."""

    wall: float
    cpu: float


def overhead(run: RunFile, turns: int) -> tuple[Ratio, Ratio]:
    """Wall time, and CPU; in each turn the bare side does what the cluster has just done."""
    run = resolved(run)
    ours, bare = [], []
    with bare_hosts(run) as hosts:
        for _ in range(turns):
            took, work = cluster_turn(run)
            ours.append(took)
            bare.append(bare_turn(hosts, work))
    wall = Ratio("cluster / bare compute", tuple(t.wall for t in ours), tuple(t.wall for t in bare))
    return wall, Ratio("the same, CPU", tuple(t.cpu for t in ours), tuple(t.cpu for t in bare))


def cluster_turn(run: RunFile) -> tuple[Took, Work]:
    """One whole run: what it took, and what was computed in it."""
    with local_cluster(run, hosts=HOSTS) as cluster:
        wait_until(cluster, lambda: bool(_times(cluster, _BEGINS)), within=WITHIN, every=0.05)
        before = cpu_of(cluster)
        wait_until(cluster, lambda: len(_times(cluster, _ENDS)) == len(cluster.devices), within=WITHIN)
        took = Took(max(_times(cluster, _ENDS)) - min(_times(cluster, _BEGINS)), cpu_of(cluster) - before)
        _, records = ask(cluster, lambda cloud: cloud.records(timeout=60))
        return took, work_of(records)


def cpu_of(cluster: LocalCluster) -> float:
    """Seconds that its processes have worked up to now."""
    times = [psutil.Process(s.process.pid).cpu_times() for s in cluster.services.values() if s.process is not None]
    return float(sum(worked.user + worked.system for worked in times))


def work_of(records: Sequence[ZoneRecords]) -> Work:
    """Of a run in which nobody was left out: else there is less to compute than the draws say."""
    names = [zone.zone for zone in records]
    directions, evaluations = Counter[str](), Counter[str]()
    for zone in records:
        evaluations[zone.zone] += len(zone.evaluations)
        for record in zone.rounds:
            if record.report.left_out or record.devices_left_out:
                raise UnavailableError(f"round {record.report.round} of {zone.zone} left somebody out: measure again")
            directions.update((zone.zone, *(names[number] for number in record.report.drawn)))
    return Work(directions, evaluations)


def _times(cluster: LocalCluster, line: re.Pattern[str]) -> list[float]:
    found = []
    for zone in cluster.devices:
        log = cluster.services[f"edge-{zone}"].log
        said = line.search(log.read_text("utf-8", "replace")) if log.exists() else None
        if said is not None:
            found.append(datetime.fromisoformat(said[1]).replace(tzinfo=UTC).timestamp())
    return found


# The bare side


class Host:
    """The devices of some zones, with nothing between them and torch."""

    def __init__(self, run: RunFile, zones: Sequence[str]) -> None:
        task = load_task(run)
        data = load_devices(run, task, Hosted(zones))
        self._update = run.update
        self._learner = Learner(task, data[0].train)
        self._theta = self._learner.initial(run.seed)
        self._devices: dict[str, list[tuple[Batch, list[Batch]]]] = {zone: [] for zone in zones}
        for part in data:
            held_out = [batch_of(samples) for samples in (part.validation, part.test) if len(samples)]
            self._devices[part.zone].append((batch_of(part.train), held_out))
        self.do(Work(dict.fromkeys(zones, 1), dict.fromkeys(zones, 1)))  # and warms everything up

    def do(self, work: Work) -> None:
        """All that these devices are asked for."""
        for zone, devices in self._devices.items():
            for _ in range(work.directions.get(zone, 0)):
                for train, _ in devices:
                    device_direction(self._learner, self._theta, train, self._update)
            for _ in range(work.evaluations.get(zone, 0)):
                for _, held_out in devices:
                    for batch in held_out:
                        self._learner.evaluate(self._theta, batch)


_host: Host | None = None  # of a process of the bare side


def _begin(run: RunFile, zones: Sequence[str]) -> None:
    global _host  # noqa: PLW0603 (a process has one)
    os.setsid()  # as the cluster's: a scheduler may share a busy machine among sessions
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _host = Host(run, zones)


def _end_with_parent() -> None:
    """A pool's process waits for ever if its parent is killed."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _do(work: Work) -> float:
    if _host is None:
        raise RuntimeError("a bare process has no devices")
    began = time.process_time()
    _host.do(work)
    return time.process_time() - began


@contextmanager
def bare_hosts(run: RunFile) -> Iterator[list[ProcessPoolExecutor]]:
    """A process for each host of the cluster, with the same zones; loaded and warm."""
    zones = list(run.zones.names or ())
    with ExitStack() as stack:
        hosts = [
            stack.enter_context(
                ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=(run, zones[number::HOSTS]))
            )
            for number in range(min(HOSTS, len(zones)))
        ]
        bare_turn(hosts, Work({}, {}))
        yield hosts


def bare_turn(hosts: Sequence[ProcessPoolExecutor], work: Work) -> Took:
    """Until all have done their part."""
    began = time.perf_counter()
    cpu = sum(done.result() for done in [host.submit(_do, work) for host in hosts])
    return Took(time.perf_counter() - began, cpu)
