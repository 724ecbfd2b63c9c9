"""`sgfusion status`: how a run stands, as a table or as JSON."""

import json
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from enum import Enum

from rich.console import Console
from rich.table import Table
from rich.text import Text

from console.formats import NOTHING, number
from console.live import gone, here, in_trouble, lost, recent_events, totals, what_is_overdue, who_holds_up
from console.processes import frozen_edges
from console.reach import Reached, frozen_in, processes_of
from sgfusion.plan import ZoneState
from sgfusion.reports import RunStatus, by_reason

EVENTS = 8
"""Events that are told, the last ones."""


def status(reached: Reached, *, as_json: bool, screen: Console) -> None:
    """Ask the cloud once, and print it."""
    found = reached.ask(lambda client: client.status())
    if as_json:
        print(to_json(found))
        return
    screen.print(status_table(found, screen.width))
    ours = () if reached.folder is None else processes_of(reached.folder)
    for line in status_lines(found, time.time(), frozen_in(reached.folder), frozen_edges(ours)):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)


def to_json(found: RunStatus) -> str:
    """All of it; states by their names."""
    return json.dumps(
        asdict(found), indent=1, default=lambda value: value.value if isinstance(value, Enum) else str(value)
    )


def status_table(found: RunStatus, width: int) -> Table:
    """Every zone, with its devices and, where there is room, its address: half addresses are of no use to anybody."""
    whole, ample = _table(found, with_address=True), Console(width=1000)
    return whole if ample.measure(whole).maximum <= width else _table(found, with_address=False)


def _table(found: RunStatus, *, with_address: bool) -> Table:
    metric = found.metric
    finished = ", finished" if found.finished else ""
    plan = f"plan {found.plan} ({found.reason})" if found.plan else "no plan yet"
    table = Table(title=Text(f"{found.run}: {plan}{finished}"), title_justify="left")
    table.add_column("zone", overflow="fold", min_width=8, max_width=24)
    table.add_column("state", no_wrap=True)
    for heading in ("round", "devices", "loss", "validation" if metric is None else f"validation\n{metric.name}"):
        table.add_column(Text(heading), justify="right", no_wrap=True)
    if with_address:
        table.add_column("address", no_wrap=True)
    for zone in found.zones:
        last = zone.last.validation if zone.last is not None else None
        value = None if metric is None or last is None else metric.value(last.total, last.count)
        table.add_row(
            zone.zone,
            Text(zone.standing, "yellow" if in_trouble(zone) else ""),
            f"{zone.round}/{found.rounds}",
            f"{here(zone)}/{zone.attendance.expected or '?'}",
            number(zone.loss) if zone.round else NOTHING,
            number(value),
            *([Text(zone.address or NOTHING)] if with_address else []),
        )
    return table


def status_lines(
    found: RunStatus, now: float, frozen: Sequence[str] = (), edges: Collection[str] = ()
) -> Iterator[str]:
    """Totals, who is `frozen` by what a look at processes says (`edges`: of which zones), what is overdue or missing,
    what was refused, and the last events.
    """
    yield totals(found)
    yield from frozen
    yield from (f"{zone.zone}: missing: {by_reason(missing)}" for zone in found.zones if (missing := gone(zone)))
    yield from lost(found, edges)
    yield from (
        f"{zone.zone}: still trains by plan {zone.plan}"
        for zone in found.zones
        if 0 < zone.plan < found.plan and zone.state is ZoneState.TRAINING
    )
    yield from (f"overdue: {line}" for line in what_is_overdue(found))
    yield from who_holds_up(found)
    yield from (f"{zone.zone}: diverged: {zone.diverged}" for zone in found.zones if zone.diverged)
    for who, refusals in (("cloud", found.refusals), *((zone.zone, zone.refusals) for zone in found.zones)):
        if refusals:
            yield f"refused by {who}: " + ", ".join(f"{reason} ({count})" for reason, count in sorted(refusals.items()))
    yield from recent_events(found.events, now, EVENTS)
