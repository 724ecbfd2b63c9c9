"""A cloud on a real TLS socket, and edges and an operator that call it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc.aio

from cloud.planner import MakeTree, make_tree
from cloud.service import CloudService, steady_clock
from cloud.store import Store
from sgfusion.plan import ZonePlan, ZoneState
from sgfusion.reports import RunStatus
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys
from sgfusion.wire.cloud_rpc import CloudClient, Enrolment, add_cloud
from sgfusion.wire.identity import Identity
from sgfusion.wire.status import Refusals
from tests.cloud.values import MASSES, MODEL, THETA, a_report
from tests.cluster.keys import CLOUD, OPERATOR, Issuer, dialled, serving

ISSUER = Issuer()


@dataclass
class Cluster:
    """The cloud, and who has dialled it."""

    address: str
    service: CloudService
    refusals: Refusals
    stack: AsyncExitStack
    keys: dict[Identity, Keys] = field(default_factory=dict)
    channels: dict[Identity, grpc.aio.Channel] = field(default_factory=dict)

    async def channel(self, who: Identity) -> grpc.aio.Channel:
        if who not in self.channels:
            opened = dialled(self.address, me=who, keys=ISSUER.keys(who))
            self.channels[who] = await self.stack.enter_async_context(opened)
        return self.channels[who]

    async def edge(self, zone: str) -> CloudClient:
        return CloudClient(await self.channel(Identity("edge", zone)))

    async def operator(self) -> CloudClient:
        return CloudClient(await self.channel(OPERATOR))

    async def enrol(self, zone: str, port: int = 1) -> Enrolment:
        return await (await self.edge(zone)).enrol(zone, f"{zone}:{port}")

    async def submit(self, zone: str, mass: tuple[float, ...] | None = None, *, epsilon: float = 0.0) -> bool:
        edge = await self.edge(zone)
        mass = MASSES[zone] if mass is None else mass
        return await edge.submit_histogram(zone, mass, devices=3, model=MODEL, initial=THETA, epsilon=epsilon)

    async def arrive(self, *zones: str) -> None:
        for zone in zones:
            await self.enrol(zone)
            await self.submit(zone)

    async def report(self, zone: str, state: ZoneState = ZoneState.TRAINING, round: int = 0, **rest: object) -> int:
        return await (await self.edge(zone)).report(a_report(zone, state, round, **rest))

    @asynccontextmanager
    async def plans(self, zone: str) -> AsyncIterator[AsyncGenerator[ZonePlan]]:
        """Plans with a dendrogram: before the first there is the directory alone."""
        stream = planned((await self.edge(zone)).watch_plan(zone))
        try:
            yield stream
        finally:
            await stream.aclose()

    async def status_when(self, holds: Callable[[RunStatus], bool]) -> RunStatus:
        stream = (await self.operator()).watch_status()
        try:
            async for status in stream:
                if holds(status):
                    return status
        finally:
            await stream.aclose()
        raise AssertionError("the watch has ended")


async def planned(stream: AsyncGenerator[ZonePlan]) -> AsyncGenerator[ZonePlan]:
    """The plans of the stream that have a dendrogram."""
    async with aclosing(stream):
        async for plan in stream:
            if plan.version:
                yield plan


@asynccontextmanager
async def a_cloud(
    folder: Path, run: RunFile, *, lease: float = 30.0, tree: MakeTree = make_tree
) -> AsyncIterator[Cluster]:
    """The cloud of the run; its store is in the folder."""
    refusals, clock = Refusals(), steady_clock()
    with Store(folder) as store:
        service = CloudService(store, store.load(run, clock(), lease), refusals=refusals, clock=clock, make_tree=tree)
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(
                serving(partial(add_cloud, handler=service), keys=ISSUER.keys(CLOUD), refusals=refusals)
            )
            working = asyncio.create_task(service.run())
            try:
                yield Cluster(address, service, refusals, stack)
            finally:
                service.stop()
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working
        service.close()
