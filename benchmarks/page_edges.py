"""The edges of many zones in one process, as far as their cloud sees them: real links, and rounds that are made up."""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import numpy as np

from edge.cloud_link import CloudLink
from edge.memory import Memory, Roster
from edge.zone import Zone
from sgfusion.errors import UnavailableError
from sgfusion.evaluation import Metric, Score
from sgfusion.plan import ZonePlan, ZoneState
from sgfusion.records import evaluation_to_json, round_to_json
from sgfusion.reports import Attendance, Model, RoundRecord, ZoneEvaluation, ZoneReport
from sgfusion.wire.channel import open_channel
from sgfusion.wire.identity import Identity
from sgfusion.zone_trainer import RoundReport

ROUND_SECONDS = 1.0
"""In each of them every zone ends a round, at any time of it: now and then two so close that the link gathers them."""
DRAWN = 5
"""Zones that one draws a round, in the mean."""
EVALUATED = 5
"""Every so many rounds."""
DEVICES = tuple(f"u{device}" for device in range(8))
BINS = 16
WITHIN = 60.0
"""Seconds for all zones to have a plan, and for the last rounds to be told."""
MODEL = Model("benchmark", 1000, Metric("RMSE", "bpm", root=True, lower_is_better=True), BINS)


def run_text(zones: int) -> str:
    """A run of so many zones, and more rounds than are reported."""
    names = [f"zone-{number:03}" for number in range(zones)]
    return (
        'name = "page"\nseed = 1\nrounds = 1000\n[task]\nname = "linear"\n[data]\nsource = "generated_zones"\n'
        f"[zones]\nnames = {names}\n[hrg]\nsharpness = 30.0\n[evaluation]\nevery = {EVALUATED}\n"
    )


class Edge(Zone):
    """A zone whose rounds come from nowhere. Nobody dials it, and no device attends, whatever it says."""

    def __init__(self, name: str, number: int, folder: Path, random: np.random.Generator, zones: int) -> None:
        super().__init__(name, Memory(folder), keys=None, expected=len(DEVICES))
        mass = random.dirichlet(np.ones(BINS))
        self.roster = Roster(number, MODEL, "00" * 32, dict.fromkeys(DEVICES, mass), dict.fromkeys(DEVICES, 0.0))
        self.state = ZoneState.TRAINING
        self.planned = asyncio.Event()
        self._random, self._zones = random, zones

    def take_plan(self, plan: ZonePlan) -> None:
        """It draws as it likes."""
        if plan.version:
            self.plan_in_use = plan.version
            self.planned.set()

    def report(self) -> ZoneReport:
        """With devices."""
        return replace(super().report(), attendance=Attendance(len(DEVICES), DEVICES))

    def end_round(self) -> tuple[int, float]:
        """A round is on the edge's disk, with its evaluation if there is one; its number, and when that was."""
        self.round += 1
        chance = self._random.random(self._zones) < DRAWN / self._zones
        drawn = tuple(int(other) for other in np.flatnonzero(chance) if other != self.number)
        weight = {other: 1.0 / len(drawn) for other in drawn}
        report = RoundReport(self.number, self.round, drawn, weight, {}, 0.01, 1.5, weight, 1.0, 0.01)
        record = RoundRecord(report, {}, len(DEVICES), 100_000, 1.0 / self.round)
        records = [{"round": round_to_json(record)}]
        if self.round % EVALUATED == 0:
            score = Score(150.0 / self.round, 10)
            records.append({"evaluation": evaluation_to_json(ZoneEvaluation(self.round, score, score, best=True))})
        self.publish(records)
        return self.round, time.monotonic()


class Edges:
    """Edges at one cloud, until the `async with` ends; each has a connection of its own."""

    def __init__(self, address: str, zones: int) -> None:
        self._address = address
        self._names = [f"zone-{number:03}" for number in range(zones)]
        self._random = np.random.default_rng(1)
        self._edges: list[Edge] = []
        self._links: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="sgfusion-benchmark-")))
        for number, name in enumerate(self._names):
            (folder / name).mkdir()
            edge = Edge(name, number, folder / name, self._random, len(self._names))
            channel = open_channel(self._address, server=Identity("cloud"), me=Identity("edge", name), keys=None)
            link = CloudLink(edge, await self._stack.enter_async_context(channel), "127.0.0.1:1")
            self._edges.append(edge)
            self._links.append(asyncio.create_task(link.run()))
        self._stack.push_async_callback(self._end)
        async with asyncio.timeout(WITHIN):
            await asyncio.gather(*(edge.planned.wait() for edge in self._edges))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def train_for(self, seconds: float) -> dict[tuple[str, int], float]:
        """Rounds for so long, until the cloud has the last; when each ended, by zone and round (monotonic clock)."""
        ended: dict[tuple[str, int], float] = {}
        began = time.monotonic()

        async def train(edge: Edge) -> None:
            for second in range(round(seconds / ROUND_SECONDS)):
                due = began + ROUND_SECONDS * (second + self._random.random())
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                number, now = edge.end_round()
                ended[edge.zone, number] = now

        await asyncio.gather(*map(train, self._edges))
        until = time.monotonic() + WITHIN
        while untold := [edge.zone for edge in self._edges if edge.untold]:
            if time.monotonic() > until:
                raise UnavailableError(f"the cloud has not taken the last rounds of {len(untold)} zones")
            await asyncio.sleep(0.05)
        return ended

    async def _end(self) -> None:
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        for edge in self._edges:
            await edge.peers.close()
