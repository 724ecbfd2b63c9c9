"""The edges of many zones in one process, as far as their cloud sees them: they enrol, submit, and report rounds."""

import asyncio
import hashlib
import time
from contextlib import AsyncExitStack
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from sgfusion.evaluation import Metric, Score
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance, Model, RoundRecord, ZoneEvaluation, ZoneReport
from sgfusion.wire.channel import open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity
from sgfusion.zone_trainer import RoundReport

ROUND_SECONDS = 1.0
"""Each zone's, spread evenly: zones do not go in step."""
DRAWN = 5
"""Zones that one draws a round, in the mean."""
EVALUATED = 5
"""Every so many rounds."""
DEVICES = 8
BINS = 16
WITHIN = 60.0
MODEL = Model("benchmark", 1000, Metric("RMSE", "bpm", root=True, lower_is_better=True), BINS)


def run_text(zones: int) -> str:
    """A run of so many zones, and more rounds than are reported."""
    names = [f"zone-{number:03}" for number in range(zones)]
    return (
        'name = "page"\nseed = 1\nrounds = 1000\n[task]\nname = "linear"\n[data]\nsource = "generated_zones"\n'
        f"[zones]\nnames = {names}\n[hrg]\nsharpness = 30.0\n[evaluation]\nevery = {EVALUATED}\n"
    )


class Reported(NamedTuple):
    """When a report was sent, and when answered, by the monotonic clock."""

    sent: float
    answered: float


class Edges:
    """Edges at one cloud, until the `async with` ends; each has a connection of its own."""

    def __init__(self, address: str, zones: int) -> None:
        self._address = address
        self._names = [f"zone-{number:03}" for number in range(zones)]
        self._random = np.random.default_rng(1)
        self._rounds = dict.fromkeys(self._names, 0)
        self._clients: dict[str, CloudClient] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for name in self._names:
            channel = open_channel(self._address, server=Identity("cloud"), me=Identity("edge", name), keys=None)
            self._clients[name] = CloudClient(await self._stack.enter_async_context(channel))
        await asyncio.gather(*map(self._arrive, self._names))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def report_for(self, seconds: float) -> dict[tuple[str, int], Reported]:
        """Report rounds for so long; when each was, by zone and round."""
        reported: dict[tuple[str, int], Reported] = {}
        began = time.monotonic()

        async def go(number: int, name: str) -> None:
            due = began + ROUND_SECONDS * number / len(self._names)
            while due < began + seconds:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                self._rounds[name] += 1
                report, sent = self._report(number, name), time.monotonic()
                await self._clients[name].report(report, timeout=WITHIN)
                reported[name, report.round] = Reported(sent, time.monotonic())
                due += ROUND_SECONDS

        await asyncio.gather(*(go(number, name) for number, name in enumerate(self._names)))
        return reported

    async def _arrive(self, name: str) -> None:
        client = self._clients[name]
        await client.enrol(name, "127.0.0.1:1", timeout=WITHIN)
        mass = self._random.dirichlet(np.ones(BINS))
        initial = hashlib.sha256(b"benchmark").digest()
        await client.submit_histogram(name, mass, devices=DEVICES, model=MODEL, initial=initial, timeout=WITHIN)

    def _report(self, number: int, name: str) -> ZoneReport:
        round = self._rounds[name]
        chance = self._random.random(len(self._names)) < DRAWN / len(self._names)
        drawn = tuple(int(other) for other in np.flatnonzero(chance) if other != number)
        weight = {other: 1.0 / len(drawn) for other in drawn}
        report = RoundReport(number, round, drawn, weight, {}, 0.01, 1.5, weight, 1.0, 0.01)
        score = Score(150.0 / round, 10)
        point = ZoneEvaluation(round, score, score, best=True)
        return ZoneReport(
            name,
            ZoneState.TRAINING,
            round,
            (RoundRecord(report, {}, DEVICES, 100_000, 1.0 / round),),
            (point,) if round % EVALUATED == 0 else (),
            Attendance(DEVICES, tuple(f"u{device}" for device in range(DEVICES))),
            plan=1,
        )
