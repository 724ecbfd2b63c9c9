"""A cluster while it trains, on a screen: a table that moves, or lines where there is no terminal."""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from cloud.page.history import Pace
from console.formats import sentences
from console.hearing import WITHIN, Hearing
from console.live import MOST_ZONES, EventLog, concerns, live_view, names_lost, recent_events, totals
from sgfusion.errors import DeadlineError, SGFusionError, SilentError, UnavailableError
from sgfusion.reports import RunStatus
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity

OPERATOR = Identity("operator")
CLOUD = "cloud"
EVERY = 0.25
"""Seconds between two looks at the processes."""
LINES_EVERY = 3.0
"""Seconds between two lines where there is no terminal, at first; later a twentieth of the time so far. One that says
nothing new waits ten times as long.
"""
A_MOMENT = 2.0
"""Seconds that it takes to be connected; who is for longer waits."""
STOPS = "Ctrl-C stops it"
LEAVES = "Ctrl-C ends the watching, not the run"
"""Below the table of who watches a cluster of others."""
STOPPED = "it does not serve: sgfusion up was stopped, and goes on if it is typed again, or is starting"
"""Of a cloud that did when we began to look."""
BEGINS = "watching: seconds from here on are since it began"
"""Between events of before, with their age, and those that are seen."""
_AROUND = 11
"""Lines of the live view besides its rows and what is of concern; totals may take two."""


@dataclass
class Patience:
    """Since when somebody is overdue. Who is for longer than `seconds` on end is not waited for any more."""

    seconds: float
    _since: dict[str, float] = field(default_factory=dict)

    def lost(self, waits: Mapping[str, str], now: float) -> str | None:
        """What is waited for in vain; `waits` are the reasons by who is overdue."""
        self._since = {who: self._since.get(who, now) for who in waits}
        return next((waits[who] for who, since in self._since.items() if now - since > self.seconds), None)


class Seen(Protocol):
    """A cluster that can be looked at."""

    def operator(self) -> Keys | None:
        """What proves that we are its operator; None if it has no keys."""

    def address(self, name: str) -> str | None:
        """Where its cloud is; None as long as it does not serve."""

    def revive(self) -> list[str]:
        """Start again what has ended by itself, if that is ours to do; what there is to tell of it."""


class Look:
    """Shows a cluster until it has finished, through every restart of its cloud.

    What is overdue for longer than `patience` ends it with an error. `stops` is said below the table. The last `recent`
    events of before are told first, with their age; those of the last `before` seconds are news: they are of processes
    that the same command has started. `frozen` says of which zones the edge is, as far as it is seen here.
    """

    unserved: ClassVar[str] = "it does not serve yet"
    """Of a cloud that says nowhere where it is."""

    def __init__(
        self,
        cluster: Seen,
        screen: Console,
        *,
        patience: float = math.inf,
        stops: str = STOPS,
        recent: int = 0,
        before: float = 0.0,
        frozen: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        self._cluster, self._screen = cluster, screen
        self._status: RunStatus | None = None
        self._away = ""
        self._began = time.monotonic()
        self._hearing = Hearing(self._began)
        self._log: EventLog | None = None
        self._patience = Patience(patience)
        self._pace, self._rounds = Pace(), 0
        self._stops, self._recent, self._before = stops, recent, before
        self._said, self._line, self._was_silent, self._was_away = 0.0, "", False, False
        self._look_for_frozen = frozen
        self._frozen: Collection[str] = ()
        self._told: set[str] = set()  # lost zones of which a line has said all

    @property
    def status(self) -> RunStatus | None:
        """The last one that the cloud has sent."""
        return self._status

    async def until_finished(self) -> None:
        """Show it until the run has finished; an error if it cannot, by the patience that there is."""
        following = asyncio.create_task(self._follow())
        try:
            with self._shown():
                while not self._ended():
                    self._look()
                    await asyncio.wait({following}, timeout=EVERY)
                    if following.done():
                        following.result()
                        break
            self._tell(())
        finally:
            following.cancel()

    def _ended(self) -> bool:
        return self._status is not None and self._status.finished

    async def _follow(self) -> None:
        """Take each status of the cloud, through its restarts, until the run has finished."""
        while True:
            try:
                address, keys = self._address(), self._cluster.operator()
                async with open_channel(address, server=Identity("cloud"), me=OPERATOR, keys=keys) as channel:
                    client = CloudClient(channel)
                    asking = asyncio.create_task(self._ask(client))
                    try:
                        async for status in client.watch_status():
                            self._take(status)
                            if status.finished:
                                return
                    finally:
                        asking.cancel()
            except SilentError:  # it is there, as far as anybody can see: what is known is how long nothing was heard
                self._hearing.unanswered(time.monotonic())
                self._away = ""
            except SGFusionError as error:
                self._away = f"the cloud is away: {error}"
                self._pace = Pace()  # counted anew, as by whoever begins to look when it is back
            await asyncio.sleep(EVERY)

    async def _ask(self, client: CloudClient) -> None:
        """Whether the cloud is there, whenever it has been quiet. That it is away the stream finds out by itself."""
        while True:
            await asyncio.sleep(EVERY)
            if not self._hearing.quiet(time.monotonic()):
                continue
            try:
                await client.status(timeout=WITHIN)
                self._hearing.heard(time.monotonic())
            except (DeadlineError, SilentError):
                self._hearing.unanswered(time.monotonic())
            except SGFusionError:
                pass

    def _take(self, status: RunStatus) -> None:
        self._hearing.heard(time.monotonic())
        rounds = sum(zone.round for zone in status.zones)
        self._pace.add(time.monotonic(), max(0, rounds - self._rounds) if self._status is not None else 0)
        self._status, self._away, self._rounds = status, "", rounds
        gone = names_lost(status)
        self._told &= gone
        self._frozen = self._look_for_frozen() if gone else ()

    def _address(self) -> str:
        address = self._cluster.address(CLOUD)
        if address is None:
            raise UnavailableError(self.unserved)
        return address

    def _look(self) -> None:
        self._tell(self._cluster.revive())
        if heard := self._hearing.news():
            self._tell(heard)
            self._note(silent=self._hearing.silent)
        if (reason := self._patience.lost(self._waits(), time.monotonic())) is not None:
            raise UnavailableError(f"nothing has changed for {self._patience.seconds:g} s: {reason}")
        if not self._screen.is_terminal:
            self._say_line()

    @property
    def _absent(self) -> str:
        """Why nothing new is known of the run; empty if it is."""
        return (
            self._away
            or self._hearing.words(time.monotonic())
            or ("waits for the cloud" if self._status is None and self._seconds >= A_MOMENT else "")
        )

    def _waits(self) -> dict[str, str]:
        status = self._status
        found = {CLOUD: self._absent} if self._absent else {}
        if status is not None:
            found |= {CLOUD: status.overdue} if status.overdue else {}
            found |= {f"zone {zone.zone}": f"{zone.zone}: {zone.overdue}" for zone in status.zones if zone.overdue}
        return found

    def _tell(self, own: Iterable[str]) -> None:
        for text in (*own, *self._events()):
            self._print(f"{self._seconds:4.0f} s  {text}")

    def _events(self) -> list[str]:
        """What is new. What was before we looked is known by the cloud's own clock: ours may be another."""
        status = self._status
        if status is None:
            return []
        if self._log is None:
            now = status.time or time.time()
            self._log = EventLog(now - self._seconds - self._before)
            if self._recent:
                before = recent_events(status.events, now, self._recent)
                for line in before:
                    self._print(line)
                if before:  # which say how long ago; what follows has another beginning
                    self._print(f"{self._seconds:4.0f} s  {BEGINS}")
                self._log.since = max((event.time for event in status.events), default=now)
        return self._log.new(status.events)

    def _print(self, line: str) -> None:
        self._screen.print(line, highlight=False, markup=False, soft_wrap=True)

    def _say_line(self) -> None:
        status, silent = self._status, not self._away and self._hearing.silent
        line = self._absent or self._stands()
        if not line:
            return
        # That it is silent was told at once; how long by now is nothing new. That it is away is not put off for long.
        same = silent == self._was_silent and (silent or line == self._line)
        apart = LINES_EVERY if bool(self._away) != self._was_away else max(LINES_EVERY, self._seconds / 20)
        if time.monotonic() - self._said < (10 * apart if same else apart):
            return
        self._note(line, silent=silent)
        said = self._absent or self._stands(self._told)
        self._print(f"{self._seconds:4.0f} s  {said}")
        if status is not None and not self._absent:  # one that is behind "and 2 more" was not told
            self._told |= {name for name in names_lost(status) if f"{name}: lost" in said}

    def _stands(self, told: Collection[str] = ()) -> str:
        """The run in a line."""
        status = self._status
        return "" if status is None else " · ".join([totals(status), *concerns(status, self._frozen, told)])

    def _note(self, line: str = "", *, silent: bool) -> None:
        """What was said last, where there is no terminal."""
        self._said, self._line = time.monotonic(), line
        self._was_silent, self._was_away = silent, bool(self._away)

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
        zones, worries = (0, 0) if self._status is None else (len(self._status.zones), len(concerns(self._status)))
        return live_view(
            self._status,
            seconds=self._seconds,
            doing=sentences(self._absent, self._stops),
            most=max(3, min(MOST_ZONES, self._screen.height - _AROUND - worries)),
            pace=self._pace.per_minute(time.monotonic(), zones),
            frozen=self._frozen,
        )
