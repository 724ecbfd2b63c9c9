"""A run as it goes: what `sgfusion up` shows while it lasts, made from the cloud's status alone."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cloud.status import SHOWN_EVENTS
from console.formats import NOTHING, counted, listed, number
from sgfusion.evaluation import Metric, Score
from sgfusion.plan import ZoneState
from sgfusion.reports import Event, RunStatus, ZoneStatus, by_reason
from sgfusion.waiting import held_up, said_elsewhere

MOST_ZONES = 20
"""Rows that are shown: of more zones, those in trouble and those that lag."""
NAMED = 3
"""Drawn zones that are named in a row."""
MOST_EVENTS = 8
"""Events told at once: fifty zones that enrol together are one line."""
MOST_CONCERNS = 4
"""Lines below the table on who is late, lost or waited for."""
COLUMNS = ("zone", "state", "devices", "round", "loss", "validation", "drawn last")
LEAST_NEEDED = ("drawn last", "loss", "devices", "validation")
"""Columns that a narrow terminal does without, these first: no number is cut."""
AMPLE = 1000
"""Columns in which every table has room."""
TROUBLE = frozenset({ZoneState.EXPECTED, ZoneState.LOST, ZoneState.LEFT, ZoneState.DIVERGED})
ENDED = frozenset({ZoneState.DONE, ZoneState.DIVERGED, ZoneState.LEFT})
_ORDER = {state: place for place, state in enumerate(ZoneState)}
_COLOURS = {
    ZoneState.DONE: "green",
    ZoneState.TRAINING: "cyan",
    ZoneState.DIVERGED: "red",
    ZoneState.LOST: "red",
    ZoneState.LEFT: "red",
}


def live_view(
    status: RunStatus | None,
    *,
    seconds: float,
    doing: str,
    most: int = MOST_ZONES,
    pace: float | None = None,
    frozen: Collection[str] = (),
) -> RenderableType:
    """The zones as a table, totals, and what `up` itself does; at most `most` rows. Edges of `frozen` zones are."""
    clock = Text(f"{seconds:4.0f} s  {doing}", style="dim")
    if status is None or not status.zones:
        return clock
    shown = shown_zones(status.zones, most)
    more = len(status.zones) - len(shown)
    paced = f" · {pace:g} rounds/min" if pace is not None and any(zone.round for zone in status.zones) else ""
    lines: list[RenderableType] = [_ZoneRows(status, shown)]
    lines += [Text(f" {more} more, not in trouble, further on", style="dim"), Text()] if more else []
    lines += [Text(totals(status) + paced), clock]
    lines += [Text(line, style="yellow", no_wrap=True, overflow="ellipsis") for line in concerns(status, frozen)]
    return Group(*lines)


@dataclass(frozen=True)
class _ZoneRows:
    """A row a zone, in the columns that there is room for."""

    status: RunStatus
    shown: Sequence[ZoneStatus]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for fewer in range(len(LEAST_NEEDED) + 1):
            without = LEAST_NEEDED[:fewer]
            narrowest = Measurement.get(console, options.update(width=AMPLE), self._table(without, cut=True))
            if narrowest.minimum <= options.max_width:
                break
        yield self._table(without)

    def _table(self, without: Sequence[str], *, cut: bool = False) -> Table:
        status = self.status
        title = Text(f"{status.run}: plan {status.plan}" if status.plan else status.run)
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), expand=True)
        kept = [column for column in COLUMNS if column not in without]
        for column in kept:
            if column == "zone":  # where hardly anything has room, names are cut
                least = None if len(without) == len(LEAST_NEEDED) else 18
                table.add_column(column, overflow="ellipsis", min_width=least, max_width=24)
            elif column == "state":
                table.add_column(column, no_wrap=True, min_width=max(9, *(len(zone.standing) for zone in self.shown)))
            elif column == "drawn last":
                least = len(column)
                most = least if cut else None
                table.add_column(column, overflow="ellipsis", no_wrap=True, min_width=least, max_width=most, ratio=1)
            else:
                heading = _of(status.metric).replace(" ", "\n", 1) if column == "validation" else column
                table.add_column(Text(heading), justify="right", no_wrap=True)
        for zone in self.shown:
            row = dict(zip(COLUMNS, _row(zone, status), strict=True))
            table.add_row(*(row[column] for column in kept))
        return table


def shown_zones(zones: Sequence[ZoneStatus], most: int) -> tuple[ZoneStatus, ...]:
    """All, or those in trouble and then those that lag, in the order of their numbers."""
    if len(zones) <= most:
        return tuple(zones)
    worst = sorted(zones, key=lambda zone: (not in_trouble(zone), zone.round, zone.number))[:most]
    return tuple(sorted(worst, key=lambda zone: zone.number))


def in_trouble(zone: ZoneStatus) -> bool:
    """Whether an operator would want to see it first."""
    return zone.state in TROUBLE or bool(zone.unanswering or zone.overdue or gone(zone) or zone.left_out)


def gone(zone: ZoneStatus) -> dict[str, str]:
    """Its devices that are missing, and why."""
    return zone.attendance.missed(overdue=bool(zone.overdue))


def is_unheard(zone: ZoneStatus) -> bool:
    """Whether what is known of it is from when it was last heard of: who attends it by now nobody knows."""
    return zone.unanswering or zone.state is ZoneState.LOST


def here(zone: ZoneStatus) -> str:
    """How many of its devices attend, in a row of a table."""
    return "?" if is_unheard(zone) else str(len(zone.attendance.attending))


def totals(status: RunStatus) -> str:
    """One line on all zones: states, rounds, devices, the pooled metric on the validation samples."""
    zones = status.zones
    counts = Counter(zone.standing for zone in sorted(zones, key=lambda zone: _ORDER[zone.state]))
    states = [f"{n} {standing}" for standing, n in counts.items()]
    there = [zone for zone in zones if zone.state is not ZoneState.LEFT]  # who has left is not waited for
    rounds = [zone.round for zone in there or zones]
    reached = f"{min(rounds)}" if len(set(rounds)) == 1 else f"{min(rounds)} to {max(rounds)}"
    unheard = sum(len(zone.attendance.attending) for zone in there if is_unheard(zone))
    attending = sum(len(zone.attendance.attending) for zone in there) - unheard
    expected = sum(zone.attendance.expected for zone in there)
    scores = [zone.last.validation for zone in zones if zone.last is not None]
    value = _pooled(status.metric, scores)
    parts = [f"{counted(len(zones), 'zone')}: {', '.join(states)}", f"round {reached} of {status.rounds}"]
    unknown = f" ({unheard:,} unheard of)" if unheard else ""
    parts.append((f"devices {attending:,}/{expected:,}" if expected else counted(attending, "device")) + unknown)
    if not math.isnan(value):
        parts.append(f"{_of(status.metric)} {number(value)} pooled")
    return " · ".join(parts)


def what_is_overdue(status: RunStatus) -> list[str]:
    """What the run waits for beyond its deadlines."""
    return [
        *([status.overdue] if status.overdue else []),
        *(f"{z.zone}: {z.overdue}" for z in status.zones if z.overdue),
    ]


def who_holds_up(status: RunStatus) -> list[str]:
    """Who holds up others' rounds, or whose devices hold up its own, unusually long but within its deadlines."""
    waiting = {zone.zone: zone.waiting for zone in status.zones if zone.waiting is not None}
    names = {zone.number: zone.zone for zone in status.zones}
    known = {z.zone for z in status.zones if said_elsewhere(overdue=z.overdue, left=z.state is ZoneState.LEFT)}
    return [f"{who}: {text}" for who, text in held_up(waiting, names, known)]


def names_lost(status: RunStatus) -> set[str]:
    """Zones of which nothing is heard."""
    return {zone.zone for zone in status.zones if zone.state is ZoneState.LOST}


def lost(status: RunStatus, frozen: Collection[str] = (), told: Collection[str] = ()) -> list[str]:
    """What is said of them. Nobody is asked whether an edge runs that is known to be `frozen`, and of those that were
    `told` of, one word is enough.
    """
    why = dict.fromkeys(names_lost(status), "nothing is heard of its edge. Is it running, and its host?")
    why |= {zone: "nothing is heard of its edge, which is frozen." for zone in frozen if zone in why}
    return [
        f"{z.zone}: lost" + ("" if z.zone in told else f": {why[z.zone]} Who draws it waits deadlines.peer, once")
        for z in status.zones
        if z.zone in why
    ]


def concerns(status: RunStatus, frozen: Collection[str] = (), told: Collection[str] = ()) -> list[str]:
    """What an operator should know of now: what is overdue, who holds others up, who diverged, whose devices are late
    or gone. A few lines; who waits for devices names them already. `frozen` and `told` are as of `lost`.
    """
    found = [
        *what_is_overdue(status),
        *who_holds_up(status),
        *lost(status, frozen, told),
        *(f"{z.zone}: diverged: {z.diverged}" for z in status.zones if z.diverged),
        *(f"{z.zone}: missing: {by_reason(missing)}" for z in status.zones if (missing := gone(z)) and not z.overdue),
        *(f"{z.zone}: without {_left_out(z, status)}" for z in status.zones if z.left_out),
    ]
    more = len(found) - MOST_CONCERNS
    return [*found[:MOST_CONCERNS], f"… and {more} more"] if more > 0 else found


def _left_out(zone: ZoneStatus, status: RunStatus) -> str:
    names = {other.number: other.zone for other in status.zones}
    return by_reason({str(names.get(number, number)): why for number, why in zone.left_out.items()}, NAMED)


def recent_events(events: Sequence[Event], now: float, most: int) -> list[str]:
    """The last ones, each with its age."""
    return [f"{max(0.0, now - event.time):6.0f} s ago  {event.text}" for event in events[-most:]]


@dataclass
class EventLog:
    """Which of the cloud's events were told: it sends the last ones each time, also those of an earlier life."""

    since: float

    def new(self, events: Sequence[Event]) -> list[str]:
        """Those that were not told yet; of very many at once, the first ones and how many more."""
        fresh = [event for event in events if event.time > self.since]
        if fresh:
            self.since = max(event.time for event in fresh)
        texts = [event.text for event in fresh]
        if len(texts) > MOST_EVENTS:
            least = "at least " if len(fresh) >= SHOWN_EVENTS else ""  # the cloud does not send all
            texts = [*texts[: MOST_EVENTS - 1], f"… and {least}{len(texts) - MOST_EVENTS + 1} more events"]
        return texts


def _row(zone: ZoneStatus, status: RunStatus) -> list[str | Text]:
    attendance = zone.attendance
    devices = f"{here(zone)}/{attendance.expected}" if attendance.expected else here(zone)
    colour = "red" if zone.unanswering else _COLOURS.get(zone.state, "yellow" if in_trouble(zone) else "")
    state = Text(zone.standing, colour)
    names = {other.number: other.zone for other in status.zones}
    drawn = listed([names.get(z, str(z)) for z in zone.drawn], NAMED + 1) if zone.drawn else NOTHING
    if zone.left_out:
        drawn += f" (without {listed([names.get(z, str(z)) for z in zone.left_out], NAMED)})"
    validation = _pooled(status.metric, [] if zone.last is None else [zone.last.validation])
    return [
        Text(zone.zone, no_wrap=True, overflow="ellipsis"),
        state,
        Text(devices, "yellow" if gone(zone) else ""),
        f"{zone.round}/{status.rounds}",
        number(zone.loss) if zone.round else NOTHING,
        number(validation),
        drawn if zone.round else NOTHING,
    ]


def _of(metric: Metric | None) -> str:
    return "validation" if metric is None else f"validation {metric.name}"


def _pooled(metric: Metric | None, scores: Sequence[Score]) -> float:
    if metric is None:
        return math.nan
    return metric.value(math.fsum(s.total for s in scores), sum(s.count for s in scores))
