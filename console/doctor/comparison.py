"""Clocks and versions of servers against this host's, by what each says of itself to whoever has keys of its run."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import grpc.aio

from console.doctor.findings import Finding, broken, look, ok
from sgfusion.errors import SGFusionError
from sgfusion.wire.identity import Identity
from sgfusion.wire.server_rpc import describe

NOTICED, HARMFUL = 2.0, 3600.0
"""Seconds of difference between clocks: what people notice, and what certificates do not bear: they begin an hour
before they are made.
"""


@dataclass(frozen=True)
class Told:
    """What a server says of itself; one of an earlier version, nothing."""

    version: str = ""
    skew: float | None = None
    """Its clock less ours."""


async def ask(channel: grpc.aio.Channel, *, within: float, clock: Callable[[], float]) -> Told | None:
    """None if it does not answer: who dials it otherwise says why. With `within` below twice what is noticed of
    clocks, no delay passes for a difference.
    """
    try:
        async with asyncio.timeout(within):
            await describe(channel, timeout=within)  # connects, if nobody has: that is no round trip
            began, now = time.monotonic(), clock()
            said = await describe(channel, timeout=within)
            seconds = time.monotonic() - began
    except (SGFusionError, TimeoutError):
        return None
    return Told(said.version, None if said.time is None else said.time - (now + seconds / 2))


def clock_findings(skews: Mapping[Identity, float]) -> list[Finding]:
    """Those that are right first, then one finding of all that are wrong alike; none if nobody tells."""
    wrong: dict[tuple[bool, bool], dict[str, float]] = {}
    for server, skew in skews.items():
        if abs(skew) >= NOTICED:
            wrong.setdefault((abs(skew) >= HARMFUL, skew > 0), {})[named(server)] = abs(skew)
    found = [_wrong(those, harmful=harmful, ahead=ahead) for (harmful, ahead), those in wrong.items()]
    right = {server: abs(skew) for server, skew in skews.items() if abs(skew) < NOTICED}
    if right:
        found.insert(0, ok("clock", f"within {max(0.1, *right.values()):.1f} s of {_whose(right)}"))
    return found


def _wrong(those: Mapping[str, float], *, harmful: bool, ahead: bool) -> Finding:
    least, most, way = min(those.values()), max(those.values()), "ahead of" if ahead else "behind"
    if len(those) == 1:
        text = f"{next(iter(those))}'s clock is {most:.1f} s {way} this host's"
        remedy = "keep the time of both hosts by NTP"
    else:
        text = f"the clocks of {few(those)} are {least:.1f} to {most:.1f} s {way} this host's"
        remedy = "keep the time of all hosts by NTP, and look at this one's first"
    if harmful:
        return broken("clock", f"{text}: certificates that are made on one may not be valid on the other", remedy)
    return look("clock", f"{text}: times in logs and events do not match", remedy)


def _whose(servers: Collection[Identity]) -> str:
    edges = [server for server in servers if server.role == "edge"]
    clouds = ["the cloud's"] if len(edges) < len(servers) else []
    return " and ".join([*clouds, *([f"{len(edges)} edges'"] if edges[1:] else [f"{edge}'s" for edge in edges])])


def differing(versions: Mapping[str, str]) -> Finding | None:
    """That not all are of one version, by who they are; None if they are."""
    if len(set(versions.values())) == 1:
        return None
    grouped: dict[str, list[str]] = {}
    for who, theirs in versions.items():
        grouped.setdefault(theirs, []).append(who)
    words = (f"{few(who)} of {theirs or 'an earlier one that does not say'}" for theirs, who in grouped.items())
    return look(
        "versions",
        "; ".join(words),
        "bring all to one version: the cloud first, then edges, then devices (docs/operate.md, Upgrade)",
    )


def comparison_findings(seen: Mapping[Identity, Told], here: str) -> list[Finding]:
    """Clocks and versions of servers that this host calls. That an earlier one tells neither is no fault."""
    found = clock_findings({server: told.skew for server, told in seen.items() if told.skew is not None})
    versions = {named(server): told.version for server, told in seen.items() if told.version}
    if versions:
        differ = differing({"this host": here, **versions})
        found.append(differ or ok("versions", f"{few(versions)} and this host are of {here}"))
    if untold := [named(server) for server, told in seen.items() if not told.version and told.skew is None]:
        does, be = ("does", "it is") if len(untold) == 1 else ("do", "they are")
        found.append(ok("versions", f"{few(untold)} {does} not tell version and time: {be} of an earlier version"))
    return found


def named(server: Identity) -> str:
    """As findings call it."""
    return "the cloud" if server.role == "cloud" else str(server)


def few(names: Iterable[str], most: int = 4) -> str:
    """The first of them, and how many more."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
