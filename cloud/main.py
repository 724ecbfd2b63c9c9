"""The cloud as a process: its store, its server, and an orderly end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc.aio

from cloud.planner import warm_up
from cloud.service import CloudService, steady_clock
from cloud.state import LEASE
from cloud.store import Store
from sgfusion.errors import RunFileError, StoreError
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys, start_server, stop_server
from sgfusion.wire.cloud_rpc import add_cloud
from sgfusion.wire.endpoint import Endpoint, Shown
from sgfusion.wire.identity import Identity
from sgfusion.wire.server_rpc import add_description
from sgfusion.wire.service import ADDRESS, METRICS, PAGE, announce, raise_file_limit, retract, until_stopped
from sgfusion.wire.status import Refusals
from sgfusion.zone_tree import given_zone_tree

GRACE = 0.5
"""Seconds for calls under way when the cloud stops."""
_log = logging.getLogger("sgfusion.cloud")


async def run_cloud(
    run: RunFile,
    *,
    state: Path,
    listen: str,
    keys: Keys | None,
    lease: float = LEASE,
    metrics: Endpoint | None = None,
    page: Callable[[CloudService], Coroutine[Any, Any, None]] | None = None,
    serving: Callable[[str], None] = lambda _address: None,
) -> None:
    """Serve the run until SIGTERM or SIGINT; what it knows is in the folder `state`, so started again it goes on.

    `serving` is told the address once it serves; so is the file `address` in the folder. `page` shows the run to
    people, until it is cancelled.
    """
    check_zones(run)
    raise_file_limit()
    warm_up()
    refusals = Refusals()
    clock = steady_clock()
    with Store(state) as store:
        for file in (ADDRESS, METRICS, PAGE):
            retract(state, file)  # only now: before, it may be that of another cloud in this folder
        service = CloudService(store, store.load(run, clock(), lease), refusals=refusals, clock=clock)
        measured = _measured(metrics, service, refusals, keys, state)

        def register(server: grpc.aio.Server) -> None:
            add_cloud(server, service)
            add_description(server)

        me, traffic = Identity("cloud"), service.measures.traffic
        server, address = await start_server(register, listen, me=me, keys=keys, refusals=refusals, traffic=traffic)
        working = asyncio.create_task(service.run())
        stopped = asyncio.create_task(until_stopped())
        shown = asyncio.create_task(_nothing() if page is None else page(service))
        try:
            await measured.start()
            announce(state, address)
            _log.info("run %s: serves at %s, lease %g s", run.name, address, lease)
            serving(address)
            await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                _log.info("stops: %s", stopped.result())
        finally:
            retract(state)
            service.stop()
            await measured.stop()
            await asyncio.gather(stop_server(server, GRACE), _ended(shown))
            failure = await _ended(working)
            await _ended(stopped)
            service.close()
        if failure is not None:
            raise failure


def _measured(
    endpoint: Endpoint | None, service: CloudService, refusals: Refusals, keys: Keys | None, state: Path
) -> Shown:
    if endpoint is None:
        return Shown()
    from cloud.metrics import shown_at  # noqa: PLC0415 (Prometheus' client is for those who want it)

    return shown_at(endpoint, service, refusals=refusals, keys=keys, state=state)


def check_zones(run: RunFile) -> None:
    """A cloud must know whom it waits for; and a dendrogram that is given must be over them."""
    if not run.zones.names:
        raise RunFileError(
            "zones.names is empty: a cloud has no data to take the zones from. Name them in the run file"
            " (`sgfusion up` does it by itself)"
        )
    if run.hrg.from_ is not None:
        given_zone_tree(run.hrg.from_, run.zones.names)


async def _nothing() -> None:
    """A page that nobody wanted."""


async def _ended(task: "asyncio.Task[object]") -> Exception | None:
    """Cancel the task, and say what it failed of."""
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(outcome, BaseExceptionGroup):
        stores = outcome.subgroup(StoreError)
        outcome = outcome if stores is None else stores.exceptions[0]
    return outcome if isinstance(outcome, Exception) else None
