"""A real cluster of processes over TLS in a folder of the test's own, and what the simulator gives for the same run."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from console.cluster import LocalCluster
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import SGFusionError
from sgfusion.reports import RunStatus, ZoneRecords
from sgfusion.runfile import RunFile, parse_run_file
from sgfusion.wire.channel import open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.device_rpc import fetch_model
from sgfusion.wire.identity import Identity
from simulator.methods.registry import method_of
from simulator.resolve import devices_of, resolved
from simulator.run import train

Vector = npt.NDArray[np.float32]

PATIENCE = 150.0
"""Seconds for a small cluster to finish on a machine with much else to do."""
OPERATOR = Identity("operator")

RUN = """
name = "cluster"
seed = 3
rounds = 6
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
[zones]
names = ["ash", "birch", "cedar", "elm"]
[histogram]
epsilon = "off"
[hrg]
sharpness = 5.0
[optimiser]
rate = 0.05
[evaluation]
every = 2
[simulation]
exact = true
"""


def run_of(*overrides: str, text: str = RUN) -> RunFile:
    """The run of these tests with some keys set otherwise; zones and neighbours resolved."""
    return resolved(parse_run_file(text, overrides))


@dataclass(frozen=True, eq=False)
class Trained:
    """What came out: models and rounds by zone, and the dendrogram."""

    models: Mapping[str, Vector]
    rounds: Mapping[str, Sequence[dict[str, Any]]]
    chosen: Mapping[str, int]

    def same_as(self, other: "Trained") -> None:
        """To the bit, or a failure that says what differs."""
        assert list(self.models) == list(other.models)
        for zone in self.models:
            mine, theirs = self.rounds[zone], other.rounds[zone]
            assert [line["drawn"] for line in mine] == [line["drawn"] for line in theirs], zone
            assert mine == theirs, zone
            assert self.chosen[zone] == other.chosen[zone]
            assert self.models[zone].tobytes() == other.models[zone].tobytes(), zone


def simulated(run: RunFile) -> Trained:
    """What the simulator gives, device by device."""
    assert run.simulation.exact
    trained = {zone: train(run, method_of(run), zone) for zone in run.zones.names}
    return Trained(
        {zone: t.models[zone] for zone, t in trained.items()},
        {zone: [report.to_record() for report in t.reports] for zone, t in trained.items()},
        {zone: t.outcome.chosen for zone, t in trained.items()},
    )


class NotThereError(Exception):
    """The cloud says nowhere that it serves."""


class Cluster(LocalCluster):
    """A cluster under a test's hand."""

    def pid(self, name: str) -> int:
        process = self.services[name].process
        assert process is not None
        return process.pid

    def kill(self, name: str) -> None:
        """SIGKILL, and wait until it is gone."""
        self.services[name].wanted = False
        process = self.services[name].process
        assert process is not None
        process.kill()
        process.wait(30)

    def restart(self, name: str) -> None:
        self.kill(name)
        self.start_service(name)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        os.kill(self.pid(name), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid(name), signal.SIGCONT)

    def host(
        self,
        name: str,
        *,
        zones: Sequence[str] = (),
        devices: Sequence[str] = (),
        knows: Sequence[str] = (),
        threads: int = 1,
    ) -> None:
        """Start a host of some devices of some zones, which knows the edges of some; of all, if nothing is said."""

        def command() -> list[str]:
            edges = [f"{zone}={self._place(f'edge-{zone}')}" for zone in knows or zones or self.devices]
            named = {"--edge": edges, "--zone": zones, "--device": devices}
            options = [part for option, values in named.items() for value in values for part in (option, value)]
            keys = ["--certs", str(self.folder / "certs")] if self.secure else ["--insecure"]
            place = ["--state", str(self.folder / "devices"), "--threads", str(threads)]
            return ["device", str(self.folder / "run.toml"), *options, *place, *keys]

        self._add(name, command)
        self.start_service(name)

    def start_edges(self, *zones: str) -> None:
        """The cloud, and these zones' edges."""
        if not self.services["cloud"].alive:
            self.start_service("cloud")
            self.wait_for(["cloud"])
        for zone in zones:
            self.start_service(f"edge-{zone}")
        self.wait_for([f"edge-{zone}" for zone in zones])

    def status(self) -> RunStatus:
        """As `sgfusion status` sees it."""
        return asyncio.run(self._status())

    async def _status(self) -> RunStatus:
        async with self._to_cloud() as cloud:
            return await cloud.status(timeout=30)

    @asynccontextmanager
    async def _to_cloud(self) -> AsyncIterator[CloudClient]:
        address = self.address("cloud")
        if address is None:
            raise NotThereError
        async with open_channel(address, server=Identity("cloud"), me=OPERATOR, keys=self.operator()) as channel:
            yield CloudClient(channel)

    def until(self, holds: Callable[[RunStatus], bool], patience: float = PATIENCE) -> RunStatus:
        """The first status of which it holds; what the processes said if none comes in time."""
        return asyncio.run(self._until(holds, patience))

    async def _until(self, holds: Callable[[RunStatus], bool], patience: float) -> RunStatus:
        """By one connection while it lasts: twenty handshakes a second are much of what a small cluster does."""
        end = time.monotonic() + patience
        seen = None
        while time.monotonic() < end:
            self.refuse_the_dead()
            try:
                async with self._to_cloud() as cloud:
                    while time.monotonic() < end:
                        seen = await cloud.status(timeout=30)
                        if holds(seen):
                            return seen
                        await asyncio.sleep(0.05)
                        self.refuse_the_dead()
            except (SGFusionError, NotThereError):
                await asyncio.sleep(0.1)
        raise AssertionError(f"not within {patience:.0f} s; the last status was {seen}\n{self.said()}")

    def until_round(self, round: int, zone: str | None = None) -> RunStatus:
        """Until that zone (or the first of all) has finished that round."""
        return self.until(lambda s: any(z.round >= round for z in s.zones if zone in (None, z.zone)))

    def refuse_the_dead(self) -> None:
        """A process that ends by itself fails the test at once."""
        dead = [service for service in self.services.values() if service.wanted and not service.alive]
        assert not dead, f"{dead[0].name} has ended:\n{dead[0].last_words(40)}"

    def said(self) -> str:
        return "\n".join(f"--- {s.name}\n{s.last_words(12)}" for s in self.services.values())

    def log(self, name: str) -> str:
        return self.services[name].log.read_text("utf-8", "replace")

    def finish(self, patience: float = PATIENCE) -> Trained:
        """Wait for the end, and fetch what came out."""
        self.until(lambda status: status.finished, patience)
        _, records = self.records()
        return Trained(
            {zone.zone: self.model(zone.zone) for zone in records},
            {zone.zone: [r.report.to_record() for r in zone.rounds] for zone in records},
            {zone.zone: max(e.round for e in zone.evaluations if e.best) for zone in records},
        )

    def records(self) -> tuple[str, list[ZoneRecords]]:
        async def fetch() -> tuple[str, list[ZoneRecords]]:
            async with self._to_cloud() as cloud:
                return await cloud.records(timeout=60)

        return asyncio.run(fetch())

    def tree(self) -> ZoneTree:
        return ZoneTree.from_json(self.records()[0].encode())

    def model(self, zone: str, kind: str = "best") -> Vector:
        async def fetch() -> Vector:
            address = self.address(f"edge-{zone}")
            assert address is not None
            server = Identity("edge", zone)
            async with open_channel(address, server=server, me=OPERATOR, keys=self.operator()) as channel:
                return (await fetch_model(channel, zone, kind, timeout=60))[2]

        return asyncio.run(fetch())


@contextmanager
def cluster_of(
    run: RunFile, folder: Path, *, hosts: int = 1, secure: bool = True, start: bool = True
) -> Iterator[Cluster]:
    """A cluster that is stopped whatever happens."""
    cluster = Cluster(folder, run, devices_of(run), hosts=hosts, secure=secure)
    cluster.prepare()
    try:
        if start:
            cluster.start()
        yield cluster
    finally:
        cluster.stop()
