"""Whether memory stays flat: a small cluster does rounds for minutes, and each process's resident memory is looked at.

A fifth of the time is for warming up: caches fill, allocators find their size. Over the rest a line is fitted to each
process's samples; its growth must stay below 3 MB or 3 % of what the process had, whichever is more. Rounds are as fast
as they come, and their records go to disk, at edges and at the cloud: nothing that is kept in memory may grow with
them. The exit code is 1 if a process grows, or ends.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import psutil
from rich.console import Console
from rich.table import Column, Table

from benchmarks import add_limits
from benchmarks.cluster import ask, local_cluster, refuse_the_dead, wait_until
from console.cluster import LocalCluster
from sgfusion.errors import SGFusionError
from sgfusion.reports import RunStatus
from sgfusion.runfile import RunFile, parse_run_file

MINUTES = 10.0
ZONES = 4
WARM_UP = 0.2
"""Of the time; what happens meanwhile does not count."""
EVERY = 2.0
"""Seconds between two samples."""
MOST_MB, MOST_SHARE = 3.0, 0.03
MB = 1 << 20
STARTED_WITHIN = 120.0
RUN = """
name = "soak"
seed = 3
rounds = 100_000_000
[task]
name = "linear"
[data]
source = "generated_zones"
devices = 3
samples = 6
features = 8
kinds = 2
contrast = 0.5
difference = 0.2
noise = 1.0
[histogram]
epsilon = "off"
[hrg]
sharpness = 5.0
[optimiser]
rate = 0.001
[evaluation]
every = 10
"""


@dataclass(frozen=True)
class Memory:
    """One process over the time that counts. Invariant: as many seconds as megabytes, at least two of them."""

    process: str
    seconds: tuple[float, ...]
    megabytes: tuple[float, ...]
    rounds: int = 0

    @property
    def line(self) -> tuple[float, float]:
        """Megabytes at the first sample, and those gained by the last, by least squares: single samples jump."""
        at = np.array(self.seconds) - self.seconds[0]
        slope, start = np.polyfit(at, self.megabytes, 1)
        return float(start), float(slope * at[-1])

    @property
    def flat(self) -> bool:
        """Whether it gained little."""
        start, gained = self.line
        return gained < max(MOST_MB, MOST_SHARE * start)

    def row(self) -> tuple[str, ...]:
        """Of the table."""
        start, gained = self.line
        per_hour = gained / (self.seconds[-1] - self.seconds[0]) * 3600
        figures = (f"{start:.1f}", f"{start + gained:.1f}", f"{gained:+.2f}", f"{per_hour:+.1f}")
        return self.process, *figures, f"{self.rounds:,}" if self.rounds else "", "flat" if self.flat else "grows"


def soak(run: RunFile, seconds: float, every: float = EVERY) -> list[Memory]:
    """Run the cluster for so long from its first round on, and look at its processes."""
    with local_cluster(run, hosts=1) as cluster:
        wait_until(cluster, lambda: all(z.round > 0 for z in _status(cluster).zones), within=STARTED_WITHIN)
        processes = {name: psutil.Process(pid) for name, pid in _pids(cluster).items()}
        began, samples = time.monotonic(), []
        while (now := time.monotonic() - began) < seconds:
            refuse_the_dead(cluster)
            samples.append((now, {name: process.memory_info().rss / MB for name, process in processes.items()}))
            time.sleep(every)
        rounds = {f"edge-{zone.zone}": zone.round for zone in _status(cluster).zones}
    return measured(samples, WARM_UP * seconds, rounds)


def measured(
    samples: Sequence[tuple[float, Mapping[str, float]]], warm: float, rounds: Mapping[str, int]
) -> list[Memory]:
    """What is said of each process by the samples after warming up."""
    counted = [sample for sample in samples if sample[0] >= warm]
    if len(counted) < 2:
        raise SystemExit(f"{len(samples)} samples, {len(counted)} of them after warming up: run for longer")
    times = tuple(at for at, _ in counted)
    return [
        Memory(name, times, tuple(megabytes[name] for _, megabytes in counted), rounds.get(name, 0))
        for name in counted[0][1]
    ]


def _pids(cluster: LocalCluster) -> dict[str, int]:
    return {name: service.process.pid for name, service in cluster.services.items() if service.process is not None}


def _status(cluster: LocalCluster) -> RunStatus:
    return ask(cluster, lambda cloud: cloud.status(timeout=30))


def soak_run(zones: int) -> RunFile:
    """So many zones of three devices each, with a model of a few weights."""
    names = ", ".join(f'"z{number:02}"' for number in range(zones))
    return parse_run_file(RUN, (f"zones.names=[{names}]",))


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, and print a table; the exit code, 1 if a process's memory is not flat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--zones", type=int, default=ZONES)
    parser.add_argument("--every", type=float, default=EVERY, help="seconds between two samples")
    add_limits(parser)
    given = parser.parse_args(arguments)
    screen = Console()
    screen.print(f"{given.zones} zones for {given.minutes:g} minutes ...", highlight=False)
    try:
        found = soak(soak_run(given.zones), 60 * given.minutes, given.every)
    except SGFusionError as error:
        screen.print(str(error), highlight=False, markup=False)
        return 1
    heads = [Column(head, justify="right") for head in ("MB, start", "MB, end", "gained", "MB an hour", "rounds")]
    table = Table("process", *heads, "memory", title=f"Resident memory over the last {1 - WARM_UP:.0%} of the time")
    for memory in found:
        table.add_row(*memory.row())
    screen.print(table)
    return 0 if all(memory.flat for memory in found) or not given.limits else 1


if __name__ == "__main__":
    sys.exit(main())
