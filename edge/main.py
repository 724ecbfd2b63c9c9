"""`sgfusion edge`: one zone's edge as a process."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import grpc.aio

from edge.cloud_link import CloudLink
from edge.memory import Memory
from edge.training import Training
from edge.zone import Zone
from sgfusion import heap
from sgfusion.errors import InputError
from sgfusion.wire.channel import Keys, open_channel, split_address, start_server, stop_server
from sgfusion.wire.edge_rpc import add_edge
from sgfusion.wire.endpoint import Endpoint, Shown
from sgfusion.wire.identity import Identity
from sgfusion.wire.peer_rpc import add_peer
from sgfusion.wire.server_rpc import add_description
from sgfusion.wire.service import METRICS, announce, raise_file_limit, retract, until_stopped

GRACE = 1.0
"""Seconds, when the edge stops, for who fetches a model or still sends; who waits for an answer hears at once."""
_log = logging.getLogger("sgfusion.edge")


async def run_edge(
    zone_name: str,
    *,
    cloud: str,
    state: Path,
    listen: str,
    advertise: str | None,
    keys: Keys | None,
    expected: int,
    metrics: Endpoint | None = None,
) -> None:
    """Serve the zone until SIGTERM or SIGINT; then the last finished round is on disk."""
    raise_file_limit()
    heap.keep_freed_memory(heap.EDGE)
    me = Identity("edge", zone_name)
    if advertise is None and split_address(listen)[0] in ("0.0.0.0", "::"):  # noqa: S104 (refused)
        raise InputError(
            f"--listen {listen}: nobody can dial that. Say with --advertise HOST:PORT where others reach it"
        )
    if advertise is not None:
        split_address(advertise)  # else the cloud would refuse it, again and again
    memory = Memory(state)
    memory.hold()
    retract(state)
    retract(state, METRICS)
    zone = Zone(zone_name, memory, keys=keys, expected=expected)
    shown = _shown(metrics, zone, keys, state)

    def register(server: grpc.aio.Server) -> None:
        add_edge(server, zone)
        add_peer(server, zone)
        add_description(server)

    channel = open_channel(cloud, server=Identity("cloud"), me=me, keys=keys)  # refuses an address before all else
    zone.measures.metered(channel)
    traffic = zone.measures.traffic
    server, bound = await start_server(register, listen, me=me, keys=keys, refusals=zone.refusals, traffic=traffic)
    if (known := memory.run()) is not None and zone.roster is not None:
        zone.take_run(known, zone.roster.number)
    announce(state, bound)
    _log.info("zone %s: serves at %s", zone_name, bound)
    link = CloudLink(zone, channel, advertise or bound)
    tasks = [asyncio.create_task(Training(zone).run()), asyncio.create_task(link.run())]
    stop = asyncio.create_task(until_stopped())
    try:
        await shown.start()
        waiting = {stop, *tasks}
        while stop in waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stop}:
                task.result()  # training ends when its rounds are done; an error ends the edge
        _log.info("zone %s: stops: %s", zone_name, stop.result())
    finally:
        for task in (*tasks, stop):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        await shown.stop()
        zone.stop()
        await stop_server(server, GRACE)
        if zone.enrolled.is_set():
            await zone.peers.close()
        await channel.close()


def _shown(endpoint: Endpoint | None, zone: Zone, keys: Keys | None, state: Path) -> Shown:
    if endpoint is None:
        return Shown()
    from edge.metrics import shown_at  # noqa: PLC0415 (Prometheus' client is for those who want it)

    return shown_at(endpoint, zone, keys=keys, state=state)
