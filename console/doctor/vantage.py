"""A deployment as an edge or a device sees it: by its own keys, for an operator's are not on its host.

Neither may ask for a status. What can be told is whether those whom they call are reached from here, prove who they
are, and take this certificate: of an edge the cloud and the peers of its last plan; of a device edges, and never the
cloud, which the networks of Compose and Kubernetes keep from it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from console.doctor.findings import Finding, broken, look, ok
from console.doctor.handshake import Met, meet, met_findings
from edge.memory import Memory
from sgfusion.errors import SGFusionError
from sgfusion.plan import Peer, ZoneState
from sgfusion.wire.identity import Identity

CLOUD = Identity("cloud")
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


def look_from(vantage: Vantage) -> View:
    """All of them at once, and all peers."""
    return asyncio.run(_look(vantage))


async def _look(vantage: Vantage) -> View:
    try:
        plan = None if vantage.state is None else Memory(vantage.state).plan()
        fault = ""
    except (SGFusionError, OSError, KeyError, TypeError, ValueError) as error:
        plan, fault = None, str(error)
    directory: tuple[Peer, ...] = () if plan is None else plan.directory
    zone = next((peer.zone for peer in directory if plan is not None and peer.number == plan.number), "")
    dialled = [peer for peer in directory if peer.zone != zone and peer.address and peer.state not in GONE]
    peers = [(Identity("edge", peer.zone), peer.address) for peer in dialled]
    found = await asyncio.gather(_meet_all(vantage.servers, vantage.keys), _meet_all(peers, vantage.keys))
    return View(vantage.me, found[0], vantage.state, zone, fault, found[1])


async def _meet_all(servers: Sequence[tuple[Identity, str]], keys: Path) -> tuple[tuple[Identity, Met], ...]:
    met = await asyncio.gather(*(meet(address, keys) for _, address in servers))
    return tuple((server, one) for (server, _), one in zip(servers, met, strict=True))


def view_findings(seen: View) -> list[Finding]:
    """Whom the role calls, then what it does not, then peers."""
    found = [finding for server, met in seen.servers for finding in met_findings(str(server), met, server, seen.me)]
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
