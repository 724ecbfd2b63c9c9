"""A deployment as an edge or a device sees it: by its own keys, for an operator's are not on its host.

Neither may ask for a status. What can be told is whether those whom they call are reached from here, prove who they
are, take this certificate, and have this host's time and version: of an edge the cloud and the peers of its last plan;
of a device edges, and never the cloud, which the networks of Compose and Kubernetes keep from it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console.doctor.comparison import Told, ask, comparison_findings
from console.doctor.findings import Finding, broken, look, ok
from console.doctor.handshake import WITHIN, Met, meet, met_findings
from edge.memory import Memory
from sgfusion.errors import SGFusionError
from sgfusion.plan import Peer, ZoneState
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.identity import Identity
from sgfusion.wire.version import version

GONE = {ZoneState.LEFT, ZoneState.EXPECTED, ZoneState.LOST}
"""Peers that nobody should reach, by the cloud's own words."""


@dataclass(frozen=True)
class Vantage:
    """Who looks, and at whom: an edge at the cloud, a device at edges, each with its address.

    `state` is the folder of an edge, if its peers are to be looked at.
    """

    servers: tuple[tuple[Identity, str], ...]
    keys: Path
    me: Identity
    state: Path | None = None


@dataclass(frozen=True)
class View:
    """What is seen from there."""

    me: Identity
    servers: tuple[tuple[Identity, Met], ...]
    state: Path | None = None
    zone: str = ""
    """Whose the state is, by its plan; empty if there is none."""
    fault: str = ""
    """Why the plan cannot be read."""
    peers: tuple[tuple[Identity, Met], ...] = ()
    told: Mapping[Identity, Told] = field(default_factory=dict)
    """What servers and peers say of themselves; who does not answer is not there."""
    here: str = ""
    """This host's version."""


def look_from(vantage: Vantage, *, clock: Callable[[], float] = time.time) -> View:
    """All of them at once, and all peers; `clock` is this host's."""
    return asyncio.run(_look(vantage, clock))


async def _look(vantage: Vantage, clock: Callable[[], float]) -> View:
    try:
        plan = None if vantage.state is None else Memory(vantage.state).plan()
        fault = ""
    except (SGFusionError, OSError, KeyError, TypeError, ValueError) as error:
        plan, fault = None, str(error)
    directory: tuple[Peer, ...] = () if plan is None else plan.directory
    zone = next((peer.zone for peer in directory if plan is not None and peer.number == plan.number), "")
    dialled = [peer for peer in directory if peer.zone != zone and peer.address and peer.state not in GONE]
    peers = [(Identity("edge", peer.zone), peer.address) for peer in dialled]
    met, met_peers, told = await asyncio.gather(
        _meet_all(vantage.servers, vantage.keys),
        _meet_all(peers, vantage.keys),
        _ask_all([*vantage.servers, *peers], vantage, clock),
    )
    return View(vantage.me, met, vantage.state, zone, fault, met_peers, told, version())


async def _meet_all(servers: Sequence[tuple[Identity, str]], keys: Path) -> tuple[tuple[Identity, Met], ...]:
    met = await asyncio.gather(*(meet(address, keys) for _, address in servers))
    return tuple((server, one) for (server, _), one in zip(servers, met, strict=True))


async def _ask_all(
    servers: Sequence[tuple[Identity, str]], vantage: Vantage, clock: Callable[[], float]
) -> dict[Identity, Told]:
    async def asked(server: Identity, address: str) -> Told | None:
        try:
            async with open_channel(address, server=server, me=vantage.me, keys=Keys.load(vantage.keys)) as channel:
                return await ask(channel, within=WITHIN, clock=clock)
        except SGFusionError:  # keys that cannot be used, which the handshake tells
            return None

    told = await asyncio.gather(*(asked(*server) for server in servers))
    return {server: said for (server, _), said in zip(servers, told, strict=True) if said is not None}


def view_findings(seen: View) -> list[Finding]:
    """Whom the role calls, the clocks and versions of all who answer, then what it does not call, then peers."""
    found = [finding for server, met in seen.servers for finding in met_findings(str(server), met, server, seen.me)]
    found += comparison_findings(seen.told, seen.here)
    if seen.me.role == "device":
        found.append(ok("role", f"{seen.me} calls edges alone: no cloud is dialled"))
    if seen.state is not None:
        found += _peers(seen, seen.state)
    return found


def _peers(seen: View, state: Path) -> list[Finding]:
    if seen.fault:
        return [
            broken("peers", f"the plan in {state} cannot be read: {seen.fault}", "restart the edge: the cloud has it")
        ]
    if not seen.zone:
        return [look("peers", f"{state} holds no plan yet", "look again when the edge has enrolled: its log says when")]
    if seen.zone != seen.me.name:
        return [
            broken(
                "peers", f"{state} is of zone {seen.zone}, and the keys are those of {seen.me}", "give its own --state"
            )
        ]
    if not seen.peers:
        return [ok("peers", "none in the last plan that is there")]
    each = [met_findings(f"zone {peer.name}", met, peer, seen.me) for peer, met in seen.peers]
    well = [findings for findings in each if findings[0].verdict == "ok"]
    told = [finding for findings in each for finding in findings if finding.verdict != "ok"]
    if well:
        slowest = max(met.seconds for _, met in seen.peers)
        words = (
            f"{len(well)} of {len(each)} answer, prove who they are and take us, the slowest in {1000 * slowest:.0f} ms"
        )
        told.insert(0, ok("peers", words))
    return told
