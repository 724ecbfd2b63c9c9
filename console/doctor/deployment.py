"""A running cluster: its cloud, its protocol and clock, and each zone's edge, dialled as an operator."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

import grpc.aio

from console.doctor.comparison import ask, clock_findings, differing
from console.doctor.findings import Finding, broken, look, ok
from console.doctor.handshake import ending, meet
from console.formats import counted
from console.reach import CLOUD, OPERATOR, Reached
from sgfusion.errors import DeadlineError, IdentityError, InputError, ProtocolError, SGFusionError, UnprovenError
from sgfusion.plan import ZoneState
from sgfusion.reports import RunStatus, ZoneStatus, by_reason
from sgfusion.waiting import held_up
from sgfusion.wire.channel import open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.device_rpc import first_piece
from sgfusion.wire.identity import Identity
from sgfusion.wire.version import version

WITHIN = 3.5
"""Seconds for the cloud to answer; then as many for all edges at once."""
GONE = {ZoneState.LEFT, ZoneState.EXPECTED}
"""Zones that nobody should reach."""
STARTING = {ZoneState.GATHERING, ZoneState.WAITING}


@dataclass(frozen=True)
class Answer:
    """What became of a call: seconds until the answer, or the error."""

    seconds: float = 0.0
    error: SGFusionError | None = None
    left: timedelta | None = None
    """How long the server's certificate still holds; None if it has none, or did not show it."""
    skew: float | None = None
    """The server's clock less ours; None if it does not tell."""


@dataclass(frozen=True)
class Deployment:
    """What a cluster looks like from here."""

    address: str
    cloud: Answer
    status: RunStatus | None = None
    edges: Mapping[str, Answer] = field(default_factory=dict)
    """By zone; those that have no address, or are gone, are not dialled."""
    here: str = ""
    """The version of this console."""


def look_at_deployment(reached: Reached, *, clock: Callable[[], float] = time.time) -> Deployment:
    """The cloud, then all edges at once; `clock` is this host's."""
    return asyncio.run(_look(reached, clock))


async def _look(reached: Reached, clock: Callable[[], float]) -> Deployment:
    shown = asyncio.create_task(_left(reached, reached.address))
    began, now = time.monotonic(), clock()
    try:
        async with open_channel(reached.address, server=CLOUD, me=OPERATOR, keys=reached.keys) as channel:
            status = await CloudClient(channel).status(timeout=WITHIN)
            seconds = time.monotonic() - began
            skew = await _skew(channel, seconds, clock)
    except SGFusionError as error:
        return Deployment(reached.address, Answer(time.monotonic() - began, error, await shown))
    if skew is None and status.time:  # which goes on as it did if the cloud's clock is set
        skew = status.time - (now + seconds / 2)
    dialled = [zone for zone in status.zones if zone.address and zone.state not in GONE]
    answers = await asyncio.gather(*(_dial(reached, zone, clock) for zone in dialled))
    edges = {zone.zone: answer for zone, answer in zip(dialled, answers, strict=True)}
    return Deployment(reached.address, Answer(seconds, None, await shown, skew), status, edges, version())


async def _dial(reached: Reached, zone: ZoneStatus, clock: Callable[[], float]) -> Answer:
    began, server = time.monotonic(), Identity("edge", zone.zone)
    shown = asyncio.create_task(_left(reached, zone.address))
    try:
        async with open_channel(zone.address, server=server, me=OPERATOR, keys=reached.keys) as channel:
            await first_piece(channel, zone.zone, timeout=WITHIN)
            seconds = time.monotonic() - began
            skew = await _skew(channel, seconds, clock)
    except SGFusionError as error:
        return Answer(time.monotonic() - began, error, await shown)
    return Answer(seconds, None, await shown, skew)


async def _skew(channel: grpc.aio.Channel, spent: float, clock: Callable[[], float]) -> float | None:
    told = await ask(channel, within=WITHIN - spent, clock=clock)
    return None if told is None else told.skew


async def _left(reached: Reached, address: str) -> timedelta | None:
    """What is left to a server's certificate: gRPC verifies it, and does not show it."""
    return None if reached.certs is None else (await meet(address, reached.certs, WITHIN)).left


def deployment_findings(seen: Deployment) -> list[Finding]:
    """The cloud first: without it nothing is known of zones."""
    if seen.cloud.error is not None or seen.status is None:
        unreached = _unreached("cloud", f"the cloud at {seen.address}", seen.cloud)
        return [replace(unreached, of=frozenset({"cloud"}))]
    status = seen.status
    plan = f"plan {status.plan}" if status.plan else "no plan yet"
    how = "finished" if status.finished else plan
    found = [ok("cloud", f"{seen.address} answers in {_ms(seen.cloud)}: run {status.run}, {how}")]
    found += ending("cloud", f"the cloud at {seen.address}", seen.cloud.left) if seen.cloud.left is not None else []
    found += _clocks(seen)
    found += _versions(seen, status)
    if status.overdue:
        found.append(look("cloud", f"overdue: {status.overdue}", "start the zones' edges, or lower quorum.zones"))
    return [*found, *_zones(status, seen.edges)]


def _clocks(seen: Deployment) -> list[Finding]:
    told = {Identity("edge", zone): answer.skew for zone, answer in seen.edges.items()}
    found = clock_findings({who: skew for who, skew in {CLOUD: seen.cloud.skew, **told}.items() if skew is not None})
    if seen.cloud.skew is None:
        remedy = "upgrade it: clouds first, then edges and devices (docs/operate.md)"
        found.insert(0, look("cloud", "it is of an earlier version: it does not tell its time", remedy))
    return found


def _versions(seen: Deployment, status: RunStatus) -> list[Finding]:
    if not status.version and seen.cloud.skew is None:
        return []  # of so early a version that it was told above
    # One that has enrolled and not reported yet has not said it; of one that trains and does not, it is known.
    told = [zone for zone in status.zones if zone.version or zone.state not in STARTING]
    # What an edge told the cloud counts too where we do not reach it ourselves, but as no edge that is well.
    edges = {f"edge {zone.zone}": zone.version for zone in told if zone.zone in seen.edges}
    others = {zone.zone: zone.attendance.other_versions for zone in told if zone.attendance.other_versions}
    devices = {f"{counted(count, 'device')} of {zone}": "another than their edge" for zone, count in others.items()}
    differ = differing({"this console": seen.here, "the cloud": status.version, **edges, **devices})
    if differ is not None:
        return [differ]
    answering = sum(seen.edges[zone.zone].error is None for zone in told if zone.zone in seen.edges)
    return [ok("versions", f"the cloud, {counted(answering, 'edge')} and this console are of {seen.here}")]


def _zones(status: RunStatus, edges: Mapping[str, Answer]) -> list[Finding]:
    found: list[Finding] = []
    well = [zone for zone in status.zones if zone.zone in edges and edges[zone.zone].error is None]
    if well:
        slowest = max((edges[zone.zone] for zone in well), key=lambda answer: answer.seconds)
        # Those that do not are told one by one.
        some = "1 edge answers" if len(well) == 1 else f"{len(well)} edges answer"
        answering = some if len(well) < len(status.zones) else f"{len(well)} of {len(status.zones)} edges answer"
        found.append(ok("zones", f"{answering}, the slowest in {_ms(slowest)}"))
    for zone in status.zones:
        answer = edges.get(zone.zone)
        if zone.state in GONE or not zone.address:
            found.append(_absent(zone))
        elif answer is not None and answer.error is not None:
            found.append(_silent(zone, answer))
        elif answer is not None and answer.left is not None:
            found += ending(f"zone {zone.zone}", f"its edge at {zone.address}", answer.left)
        found += _troubles(zone, reached=answer is not None and answer.error is None)
    unwell = {zone.zone for zone in status.zones if zone not in well or zone.overdue}  # of whom more was said
    waiting = {zone.zone: zone.waiting for zone in status.zones if zone.waiting is not None}
    for who, text in held_up(waiting, {zone.number: zone.zone for zone in status.zones}, unwell):
        slow = look(f"zone {who}", text, "see what its edge, its devices and their hosts do: their logs say it")
        found.append(replace(slow, of=_upstream(status, who)))
    return found


def _silent(zone: ZoneStatus, answer: Answer) -> Finding:
    """Its edge does not answer us, nor perhaps the cloud."""
    found = _unreached(f"zone {zone.zone}", f"its edge at {zone.address}", answer)
    unheard = "; the cloud has not heard of it for a lease" if zone.state is ZoneState.LOST else ""
    return replace(found, text=found.text + unheard, of=frozenset({f"edge {zone.zone}"}))


def _upstream(status: RunStatus, who: str) -> frozenset[str]:
    """Who may be behind it that others wait for a zone: its devices, or those whom it waits for itself."""
    zones = {zone.number: zone for zone in status.zones}
    behind = [zone for zone in status.zones if zone.zone == who]
    for zone in behind:  # grows as it goes: who waits for whom is a chain
        numbers = () if zone.waiting is None else zone.waiting.zones
        behind += [zones[number] for number in numbers if number in zones and zones[number] not in behind]
    return frozenset(f"{what} {zone.zone}" for zone in behind for what in ("edge", "devices of"))


def _absent(zone: ZoneStatus) -> Finding:
    if zone.state is ZoneState.LEFT:
        return look(f"zone {zone.zone}", "it has left the run", "if it should not have, start its edge: it enrols anew")
    return look(
        f"zone {zone.zone}", "its edge has not enrolled", "start it: sgfusion edge --zone, with --cloud of here"
    )


def _troubles(zone: ZoneStatus, *, reached: bool) -> list[Finding]:
    check, devices = f"zone {zone.zone}", frozenset({f"devices of {zone.zone}"})
    found = []
    if zone.state is ZoneState.LOST and reached:  # else that was told with it
        found.append(
            look(check, "the cloud has not heard of it for a lease", "look at its edge's log, and its network")
        )
    if zone.diverged:
        found.append(look(check, f"diverged: {zone.diverged}", "lower optimiser.rate, or look at its devices' data"))
    if zone.overdue:
        late = look(check, f"overdue: {zone.overdue}", "start the devices that are missing, or lower the quorum")
        found.append(replace(late, of=devices))
    elif gone := zone.attendance.missed(overdue=False):
        missing = f"missing: {by_reason(gone)}"
        found.append(replace(look(check, missing, "look at the logs of those devices' hosts"), of=devices))
    return found


def _unreached(check: str, who: str, answer: Answer) -> Finding:
    error = answer.error
    said = " ".join(str(error).split())
    if isinstance(error, UnprovenError):
        ended = [] if answer.left is None or answer.left > timedelta() else [*ending(check, who, answer.left)]
        unknown = f"{who} does not prove who it is: {said}"
        return ended[0] if ended else broken(check, unknown, "give --certs the operator's folder of that run")
    if isinstance(error, IdentityError):
        return broken(check, f"{who} refuses us: {said}", "give --certs the folder of an operator")
    if isinstance(error, ProtocolError | InputError):  # what it says is not what we read
        return broken(check, f"{who} speaks another protocol: {said}", "run the same version there and here")
    if "resolv" in said or "Domain name" in said:
        return broken(
            check, f"{who} has a name that is unknown here: {said}", "correct the address, or this host's DNS"
        )
    if isinstance(error, DeadlineError):
        return broken(
            check,
            f"{who} does not answer within {WITHIN:g} s",
            "a firewall may drop it, or the host is down: its log says more",
        )
    return broken(check, f"{who} is not reached: {said}", "start it, or correct its address; is the port open?")


def _ms(answer: Answer) -> str:
    return f"{1000 * answer.seconds:.0f} ms"
