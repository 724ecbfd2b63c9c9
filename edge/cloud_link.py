"""The edge's side of the cloud: enrol, submit, watch, report; for ever, through every outage (architecture, Faults).

Training never waits for this: an edge that has a plan goes on by it.
"""

import asyncio
import logging
import random
from contextlib import suppress
from dataclasses import replace

import grpc.aio

from edge.zone import ENDED, Zone
from sgfusion.errors import ContractError, SGFusionError
from sgfusion.histogram import zone_histogram
from sgfusion.plan import ZonePlan, ZoneState
from sgfusion.wire.channel import backoff
from sgfusion.wire.cloud_rpc import CloudClient

WITHIN = 20.0
"""Seconds for the cloud to answer."""
APART = 0.2
"""Seconds between reports when there is much to tell: they are batches, and nobody reads faster."""
LONGEST_SILENT = 60.0
"""Seconds until the next report when there is nothing to tell, however long a lease is: an alert counts on it."""
_log = logging.getLogger("sgfusion.edge")


class CloudLink:
    """Keeps one edge enrolled."""

    def __init__(self, zone: Zone, channel: grpc.aio.Channel, address: str) -> None:
        self._zone = zone
        self._client = CloudClient(channel)
        self._address = address
        self._life = random.getrandbits(64)
        self._taken = False  # whether the cloud has taken a report since the last enrolment
        self._submitted: object = None  # the roster whose histogram the cloud has
        self._another = address  # where the cloud says that the zone's edge is

    async def run(self) -> None:
        """Never ends; a run that is not the one in the state folder is the only thing that it cannot wait out."""
        zone, attempt = self._zone, 0
        while True:
            self._taken = False
            try:
                number, run, lease = await self._client.enrol(zone.zone, self._address, life=self._life, timeout=WITHIN)
                zone.take_run(run, number)
                _log.info("zone %s: enrolled as number %d, at %s", zone.zone, number, self._address)
                self._submitted = None
                await self._session(lease)
            except ContractError:
                raise
            except SGFusionError as error:
                if attempt in (0, 5) or attempt % 20 == 0:
                    words = error.discreet
                    _log.warning("zone %s: the cloud: %s; goes on without it, and tries again", zone.zone, words)
            zone.measures.retried("cloud", zone.zone)
            attempt = 0 if self._taken else attempt + 1
            await asyncio.sleep(0.05 + backoff(attempt, random.random, most=3.0))

    async def _session(self, lease: float) -> None:
        """One connection's worth: until something fails."""
        tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._report(lease))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        async for plan in self._client.watch_plan(self._zone.zone):
            self._zone.take_plan(plan)
            self._notice_another(plan)

    def _notice_another(self, plan: ZonePlan) -> None:
        """One zone, one edge. The cloud cannot tell a second one with the same keys from this one, moved."""
        zone = self._zone.zone
        known = next((peer.address for peer in plan.directory if peer.zone == zone), self._address)
        if known not in (self._address, self._another):
            _log.warning(
                "zone %s: the cloud now has it at %s, and this edge is at %s: another edge came up with the same keys,"
                " and peers ask that one alone. Stop one of them; if this one stays, restart it",
                zone,
                known,
                self._address,
            )
        self._another = known

    async def _report(self, lease: float) -> None:
        zone = self._zone
        while True:
            zone.to_tell.clear()
            await self._submit()
            report = zone.report()
            if not self._taken:  # the first says no rounds, and so hears which the cloud has
                state = ZoneState.TRAINING if report.state in ENDED else report.state
                report = replace(report, state=state, rounds=(), evaluations=())
                zone.to_tell.set()
            reached = await self._client.report(report, timeout=WITHIN)
            self._taken = True
            zone.measures.told()
            more = zone.told(report, reached)
            if not more:
                await asyncio.sleep(APART)
                # Not wait_for: in Python 3.11 it loses a cancellation that comes with the event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(lease / 3, LONGEST_SILENT)):
                        await zone.to_tell.wait()

    async def _submit(self) -> None:
        zone, roster = self._zone, self._zone.roster
        if roster is None or roster is self._submitted:
            return
        histogram = zone_histogram([roster.histograms[device] for device in sorted(roster.histograms)])
        drifted = await self._client.submit_histogram(
            zone.zone,
            histogram,
            devices=len(roster.histograms),
            model=roster.model,
            initial=bytes.fromhex(roster.initial),
            epsilon=max(roster.epsilons.values(), default=0.0),
            timeout=WITHIN,
        )
        self._submitted = roster
        if drifted:
            _log.info("zone %s: its histogram has drifted: the cloud makes a new plan", zone.zone)
