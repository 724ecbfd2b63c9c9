"""A cluster while it trains, as `sgfusion up` and `follow` show it: live, with an answer by the deadlines."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from rich.console import Console

from console.looking import OPERATOR, STOPS, Look, Seen
from sgfusion.errors import ProtocolError, SGFusionError, UnavailableError
from sgfusion.plan import ZoneState
from sgfusion.reports import PlanVersion, RunStatus, ZoneRecords
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import open_channel, retrying
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.device_rpc import fetch_model
from sgfusion.wire.identity import Identity

Vector = npt.NDArray[np.float32]

FETCH_WITHIN = 60.0
"""Seconds for a zone's edge to hand out its model."""
LEFT_WITHIN = 5.0
"""For one of a zone that has left: most likely it is gone, and nobody waits a minute for that."""


@dataclass(frozen=True, eq=False)
class Fetched:
    """What a finished cluster has come to."""

    status: RunStatus
    tree: str
    """`dendrogram.json`."""
    records: tuple[ZoneRecords, ...]
    """Of zones that have a model, in the order of numbers."""
    models: Mapping[str, Vector]
    notes: tuple[str, ...]
    plans: tuple[PlanVersion, ...] = ()
    others: tuple[ZoneRecords, ...] = ()
    """Of zones without a model here: who has left took it along. For the page: what they did until then."""


class Watched(Seen, Protocol):
    """A cluster that somebody has started: this command, or others on other hosts."""

    run: RunFile


class Watch(Look):
    """Looks after a cluster that was started until it has finished, and has an answer by the run's deadlines."""

    def __init__(
        self,
        cluster: Watched,
        screen: Console,
        *,
        stops: str = STOPS,
        before: float = 0.0,
        frozen: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        patience = cluster.run.deadlines.zones
        super().__init__(cluster, screen, patience=patience, stops=stops, before=before, frozen=frozen)

    async def to_the_end(self) -> Fetched:
        """Show it until it has finished, then fetch what it has come to."""
        await self.until_finished()
        return await self.fetch()

    async def fetch(self) -> Fetched:
        """All records from the cloud, and the best models from the edges."""
        channel = open_channel(self._address(), server=Identity("cloud"), me=OPERATOR, keys=self._cluster.operator())
        async with channel:
            client = CloudClient(channel)
            tree, records, plans = await retrying(client.history, budget_seconds=FETCH_WITHIN)
            status = await retrying(client.status, budget_seconds=FETCH_WITHIN)
        addresses = {zone.zone: zone.address for zone in status.zones}
        gone = {zone.zone for zone in status.zones if zone.state is ZoneState.LEFT}
        models: dict[str, Vector] = {}
        notes = []
        for zone in records:
            chosen = [evaluation.round for evaluation in zone.evaluations if evaluation.best]
            if not chosen:
                notes.append(f"{zone.zone} was never evaluated: it has no model")
                continue
            try:
                within = LEFT_WITHIN if zone.zone in gone else FETCH_WITHIN
                models[zone.zone] = await self._model(zone.zone, addresses.get(zone.zone, ""), chosen[-1], within)
            except SGFusionError as error:
                why = f"{zone.zone}: its edge does not hand out its model: {error}"
                notes.append(f"{zone.zone} has left the run, and took its model along" if zone.zone in gone else why)
        kept = tuple(zone for zone in records if zone.zone in models)
        others = tuple(zone for zone in records if zone.zone not in models)
        return Fetched(status, tree, kept, models, tuple(notes), tuple(plans), others)

    async def _model(self, zone: str, address: str, chosen: int, within: float) -> Vector:
        if not address:
            raise UnavailableError("nobody knows where it is")
        keys = self._cluster.operator()
        async with open_channel(address, server=Identity("edge", zone), me=OPERATOR, keys=keys) as channel:
            round, _, theta = await retrying(
                lambda: fetch_model(channel, zone, "best", timeout=within), budget_seconds=within
            )
        if round != chosen:
            raise ProtocolError(f"{zone}: its best model is of round {round}, by its reports of round {chosen}")
        return theta
