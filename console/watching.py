"""A cluster while it trains, as `sgfusion up` and `follow` show it: live, with an answer by the deadlines."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
from rich.console import Console, RenderableType
from rich.live import Live

from console.live import MOST_ZONES, EventLog, live_view, totals
from sgfusion.errors import ProtocolError, SGFusionError, UnavailableError
from sgfusion.reports import RunStatus, ZoneRecords
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys, open_channel, retrying
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.device_rpc import fetch_model
from sgfusion.wire.identity import Identity

Vector = npt.NDArray[np.float32]

OPERATOR = Identity("operator")
EVERY = 0.25
"""Seconds between two looks at the processes."""
LINES_EVERY = 3.0
"""Seconds between two lines where there is no terminal, at first; later a twentieth of the time so far. One that says
nothing new waits ten times as long.
"""
FETCH_WITHIN = 60.0
"""Seconds for a zone's edge to hand out its model."""
CLOUD = "cloud"
_AROUND = 9
"""Lines of the live view besides its rows."""


@dataclass
class Patience:
    """Since when somebody is overdue. Who is for longer than `seconds` on end is not waited for any more."""

    seconds: float
    _since: dict[str, float] = field(default_factory=dict)

    def lost(self, waits: Mapping[str, str], now: float) -> str | None:
        """What is waited for in vain; `waits` are the reasons by who is overdue."""
        self._since = {who: self._since.get(who, now) for who in waits}
        return next((waits[who] for who, since in self._since.items() if now - since > self.seconds), None)


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


class Watched(Protocol):
    """A cluster that somebody has started: this command, or others on other hosts."""

    run: RunFile

    def operator(self) -> Keys | None:
        """What proves that we are its operator; None if it has no keys."""

    def address(self, name: str) -> str | None:
        """Where its cloud is; None as long as it does not serve."""

    def revive(self) -> list[str]:
        """Start again what has ended by itself, if that is ours to do; their names."""


class Watch:
    """Looks after a cluster that was started until it has finished."""

    def __init__(self, cluster: Watched, screen: Console) -> None:
        self._cluster, self._screen = cluster, screen
        self._status: RunStatus | None = None
        self._away = "waits for the cloud"
        self._began = time.monotonic()
        self._log = EventLog(time.time())
        self._patience = Patience(cluster.run.deadlines.zones)
        self._said, self._line = 0.0, ""

    async def to_the_end(self) -> Fetched:
        """Show it until it has finished, then fetch what it has come to."""
        await self.until_finished()
        return await self.fetch()

    async def until_finished(self) -> None:
        """Show it until the run has finished; an error if it cannot, by the run's deadlines."""
        following = asyncio.create_task(self._follow())
        try:
            with self._shown():
                while self._status is None or not self._status.finished:
                    self._look()
                    await asyncio.wait({following}, timeout=EVERY)
                    if following.done():
                        following.result()
                        break
            self._tell(())
        finally:
            following.cancel()

    async def fetch(self) -> Fetched:
        """All records from the cloud, and the best models from the edges."""
        channel = open_channel(self._address(), server=Identity("cloud"), me=OPERATOR, keys=self._cluster.operator())
        async with channel:
            client = CloudClient(channel)
            tree, records = await retrying(client.records, budget_seconds=FETCH_WITHIN)
            status = await retrying(client.status, budget_seconds=FETCH_WITHIN)
        addresses = {zone.zone: zone.address for zone in status.zones}
        models: dict[str, Vector] = {}
        notes = []
        for zone in records:
            chosen = [evaluation.round for evaluation in zone.evaluations if evaluation.best]
            if not chosen:
                notes.append(f"{zone.zone} was never evaluated: it has no model")
                continue
            try:
                models[zone.zone] = await self._model(zone.zone, addresses.get(zone.zone, ""), chosen[-1])
            except SGFusionError as error:
                notes.append(f"{zone.zone}: its edge does not hand out its model: {error}")
        kept = tuple(zone for zone in records if zone.zone in models)
        return Fetched(status, tree, kept, models, tuple(notes))

    async def _model(self, zone: str, address: str, chosen: int) -> Vector:
        if not address:
            raise UnavailableError("nobody knows where it is")
        keys = self._cluster.operator()
        async with open_channel(address, server=Identity("edge", zone), me=OPERATOR, keys=keys) as channel:
            round, _, theta = await retrying(
                lambda: fetch_model(channel, zone, "best", timeout=FETCH_WITHIN), budget_seconds=FETCH_WITHIN
            )
        if round != chosen:
            raise ProtocolError(f"{zone}: its best model is of round {round}, by its reports of round {chosen}")
        return theta

    async def _follow(self) -> None:
        """Take each status of the cloud, through its restarts, until the run has finished."""
        while True:
            try:
                keys = self._cluster.operator()
                async with open_channel(self._address(), server=Identity("cloud"), me=OPERATOR, keys=keys) as channel:
                    async for status in CloudClient(channel).watch_status():
                        self._status, self._away = status, ""
                        if status.finished:
                            return
            except SGFusionError as error:
                self._away = f"the cloud is away: {error}"
            await asyncio.sleep(EVERY)

    def _address(self) -> str:
        address = self._cluster.address(CLOUD)
        if address is None:
            raise UnavailableError("it does not serve yet")
        return address

    def _look(self) -> None:
        restarted = [f"{name} has ended: started again" for name in self._cluster.revive()]
        self._tell(restarted)
        if (reason := self._patience.lost(self._waits(), time.monotonic())) is not None:
            raise UnavailableError(f"nothing has changed for {self._patience.seconds:g} s: {reason}")
        if not self._screen.is_terminal:
            self._say_line()

    def _waits(self) -> dict[str, str]:
        status = self._status
        found = {CLOUD: self._away} if self._away else {}
        if status is not None:
            found |= {CLOUD: status.overdue} if status.overdue else {}
            found |= {f"zone {zone.zone}": f"{zone.zone}: {zone.overdue}" for zone in status.zones if zone.overdue}
        return found

    def _tell(self, own: Iterable[str]) -> None:
        events = self._log.new(self._status.events) if self._status is not None else []
        for text in (*own, *events):
            self._screen.print(f"{self._seconds:4.0f} s  {text}", highlight=False, markup=False, soft_wrap=True)

    def _say_line(self) -> None:
        line = self._away or (totals(self._status) if self._status is not None else "")
        now = time.monotonic()
        apart = max(LINES_EVERY, self._seconds / 20)
        if now - self._said < (apart if line != self._line else 10 * apart):
            return
        self._said, self._line = now, line
        self._screen.print(f"{self._seconds:4.0f} s  {line}", highlight=False, markup=False, soft_wrap=True)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    @contextmanager
    def _shown(self) -> Iterator[None]:
        if not self._screen.is_terminal:
            yield
            return
        with Live(get_renderable=self._view, console=self._screen, refresh_per_second=4, transient=True, screen=False):
            yield

    def _view(self) -> RenderableType:
        rows = max(3, min(MOST_ZONES, self._screen.height - _AROUND))
        return live_view(self._status, seconds=self._seconds, doing=self._away or "Ctrl-C stops it", most=rows)
