"""A run that a cloud serves, as the page sees it: the state that is on disk, and the history of its rows."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from cloud.coordinator import overdue
from cloud.page.history import History, Pace, number, pooled_rows, value_of
from cloud.page.layout import all_places, leaf_places
from cloud.page.picture import (
    Document,
    Likeness,
    attention_part,
    events_part,
    metric_part,
    plan_part,
    run_part,
    status_of_zone,
    tree_part,
    waits_part,
    zone_part,
)
from cloud.page.source import Kind
from cloud.state import EVENTS, Change, Plan, State, Zone
from cloud.store import Store
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.evaluation import Metric
from sgfusion.reports import Event, RoundRecord, ZoneEvaluation

T = TypeVar("T")


class Cloud(Protocol):
    """What the page reads of a cloud."""

    @property
    def shown(self) -> State:
        """The state that is on disk."""

    def now(self) -> float:
        """Seconds since 1970 by its clock."""

    def refused(self) -> Mapping[str, int]:
        """Requests that it has refused, by reason."""

    def read(self, work: Callable[[Store], T]) -> Awaitable[T]:
        """What `work` reads from its store."""

    def tell(self, listener: Callable[[Sequence[Change]], None]) -> None:
        """Call it with every batch of changes that is on disk, when `shown` has them."""


class LiveRun:
    """A `Source`. `load` comes first: until then it has what was written since it was made."""

    live = True

    def __init__(self, cloud: Cloud, alone: Mapping[str, float] | None = None) -> None:
        self._cloud = cloud
        self._alone = alone or {}
        state = cloud.shown
        self._history = History(state.zones, state.run.rounds, state.run.evaluation.every)
        self._pace = Pace()
        self._plans: dict[int, Document] = {}
        self._take_plan(state.plan)
        self._told = state.events
        self._events: tuple[Event, ...] = ()
        self._zones: set[str] = set()
        self._still: dict[str, object] = {}
        self._planned = False
        self._head: Document = {}
        self._bell = asyncio.Event()
        cloud.tell(self._written)

    async def load(self) -> None:
        """What earlier lives of the cloud have written. What is written meanwhile comes twice, and is the same."""
        for version, reason, zones, time in await self._cloud.read(Store.plans):
            self._plans.setdefault(version, plan_part(version, reason, len(zones), time))
        for zone in list(self._cloud.shown.zones):
            after = -1
            while rounds := await self._cloud.read(partial(Store.rounds, zone=zone, after=after)):
                self._add_rounds(zone, rounds)
                after = rounds[-1].report.round
            after = -1
            while points := await self._cloud.read(partial(Store.evaluations, zone=zone, after=after)):
                self._add_evaluations(zone, points)
                after = points[-1].round
        self._pool()
        self.forget()

    def picture(self) -> str:
        """Everything to draw from scratch."""
        state = self._cloud.shown
        document = {
            "run": run_part(state.run, live=True, started=state.started),
            "status": {**self._status_head(), "zones": [self._status_of(zone) for zone in state.zones.values()]},
            "events": events_part(self._told),
        }
        text = _text(document)
        rows = f'"series":{self._history.series()},"pooled":{self._history.pooled()}'
        return f"{text[:-1]},{self._planned_text()},{rows}}}"

    async def zone(self, name: str) -> str | None:
        """Every round of a zone, from the store."""
        if name not in self._cloud.shown.zones:
            return None
        found: list[Document] = []
        after = -1
        while rounds := await self._cloud.read(partial(Store.rounds, zone=name, after=after)):
            found += [{"round": record.report.round, **_round_part(record)} for record in rounds]
            after = rounds[-1].report.round
        return _text({"rounds": found})

    async def round(self, number: int) -> str:
        """One round of every zone that has had it."""
        records = await self._cloud.read(partial(Store.round, number=number))
        parts = {zone: _round_part(record) for zone, record in records.items()}
        kept = {zone: {key: part[key] for key in ("attention", "left_out")} for zone, part in parts.items()}
        return _text(kept)

    async def changed(self) -> None:
        """Something was written; also that nothing was, once a second, when time alone may have made a difference."""
        await self._bell.wait()

    def news(self) -> list[tuple[Kind, str]]:
        """What has changed since this was last asked for."""
        self._bell.clear()
        state = self._cloud.shown
        messages: list[tuple[Kind, str]] = []
        rows, zones = self._history.take_news(), self._zones
        self._zones = set()
        if self._planned:
            self._planned = False
            messages.append(("plan", f"{{{self._planned_text()}}}"))
        head = self._status_head()
        before, self._head = self._head, {**head, "time": None}
        if zones or rows or self._head != before:
            changed = [self._status_of(zone) for zone in state.zones.values() if zone.name in zones]
            status = _text({**head, "zones": changed})
            text = f'{{"status":{status},"series":{rows.series()},"pooled":{pooled_rows(rows.pooled)}}}'
            messages.append(("status", text))
        if self._events:
            messages.append(("news", _text({"events": events_part(self._events)})))
            self._tell_events()
        return messages

    def forget(self) -> None:
        """Nobody looks: the picture has it all."""
        self._bell.clear()
        self._history.drop_news()
        self._zones.clear()
        self._planned = False
        self._head = {**self._status_head(), "time": None}
        self._tell_events()

    # What was written

    def _written(self, changes: Sequence[Change]) -> None:
        done = 0
        rounds: set[int] = set()
        for change in changes:
            for zone in change.zones:
                self._see(zone)
            if change.plan is not None:
                self._take_plan(change.plan)
                self._plans[change.plan.version] = _plan_part(change.plan)
                self._planned = True
                self._pool()
            done += self._add_rounds(change.zone, change.rounds)
            self._add_evaluations(change.zone, change.evaluations)
            rounds.update(point.round for point in change.evaluations)
            self._events += change.events
        if done:
            self._pace.add(self._cloud.now(), done)
        if rounds:
            self._pool(rounds)
        self._bell.set()

    def _see(self, zone: Zone) -> None:
        """The zone has changed; so have the parts that come with plans if these have."""
        self._zones.add(zone.name)
        self._history.add_zone(zone.name)
        still = (zone.histogram, zone.devices, zone.epsilon, zone.first)
        if self._still.get(zone.name) != still:
            self._still[zone.name] = still
            self._planned = True

    def _add_rounds(self, zone: str, records: Sequence[RoundRecord]) -> int:
        """Rows of the rounds; how many are new."""
        names = list(self._cloud.shown.zones)
        return sum(
            self._history.add_round(
                zone,
                record.report.round,
                drawn=(names[other] for other in record.report.drawn),
                left_out=record.report.left_out,
                sent=record.bytes_sent,
            )
            for record in records
        )

    def _add_evaluations(self, zone: str, points: Sequence[ZoneEvaluation]) -> None:
        for point in points:
            values = (value_of(self._metric, [score]) for score in (point.validation, point.test))
            self._history.add_evaluation(zone, point.round, *values, best=point.best)
            self._history.add_scores(zone, point.round, point.validation, point.test)

    def _pool(self, rounds: Iterable[int] | None = None) -> None:
        state = self._cloud.shown
        zones = [] if state.plan is None else [name for name in state.plan.zones if not state.zones[name].left]
        self._history.pool(zones, self._metric, rounds)

    def _take_plan(self, plan: Plan | None) -> None:
        """The plan of now, and what follows from it: made once, for all pictures. By its distances all rounds are
        judged, whichever plan drew the zones: a cloud that comes back, and a results folder, know no others.
        """
        tree = None if plan is None else ZoneTree.from_json(plan.tree)
        self._leaves = leaf_places(tree)
        self._history.judge_by(Likeness(tree).homophily)
        shown = None
        if plan is not None and tree is not None:
            sharpness = self._cloud.shown.run.hrg.sharpness
            shown = tree_part(tree, version=plan.version, reason=plan.reason, sharpness=sharpness)
        self._tree_text = _text(shown)

    def _tell_events(self) -> None:
        self._told = (*self._told, *self._events)[-EVENTS:]
        self._events = ()

    # Parts of the picture

    @property
    def _metric(self) -> Metric | None:
        contract = self._cloud.shown.contract
        return None if contract is None else contract.model.metric

    def _planned_text(self) -> str:
        """Those parts of the picture that change with plans at most, without braces."""
        contract = self._cloud.shown.contract
        parts = {
            "metric": metric_part(self._metric),  # nobody knows it before the first histogram
            "edges": [] if contract is None else [number(edge) for edge in contract.model.edges],
            "plans": [self._plans[version] for version in sorted(self._plans)],
            "zones": self._zone_parts(),
        }
        return f'"tree":{self._tree_text},{_text(parts)[1:-1]}'

    def _zone_parts(self) -> list[Document]:
        state = self._cloud.shown
        at = all_places(list(state.zones), self._leaves)
        return [
            zone_part(
                zone.number,
                zone.name,
                state.run,
                at[zone.name],
                histogram=zone.histogram,
                devices=zone.devices,
                epsilon=zone.epsilon,
                before=None if zone.first is None else value_of(self._metric, [zone.first.test]),
                alone=self._alone.get(zone.name),
            )
            for zone in state.zones.values()
        ]

    def _status_head(self) -> Document:
        state, now = self._cloud.shown, self._cloud.now()
        planned = () if state.plan is None else state.plan.zones
        zones = sum(not state.zones[name].left for name in planned)
        return {
            "time": round(now, 3),
            "plan": 0 if state.plan is None else state.plan.version,
            "reason": "" if state.plan is None else state.plan.reason,
            "finished": state.ended,
            "overdue": overdue(state, now),
            "waits": waits_part(state.zones.values(), now),
            "refusals": dict(self._cloud.refused()),
            "rounds_per_minute": None if state.ended else self._pace.per_minute(now, zones),
            "bytes": self._history.bytes,
            "kept": self._kept([state.zones[name] for name in planned if not state.zones[name].left]),
        }

    def _kept(self, zones: Sequence[Zone]) -> Document | None:
        """The error of all zones together with the models that they keep, as the table at the end of a run has it."""
        pairs = [(zone.best, zone.first) for zone in zones]
        found = [(best.test, first.test) for best, first in pairs if best is not None and first is not None]
        if not found or len(found) < len(zones):
            return None
        best, first = zip(*found, strict=True)
        return {"test": value_of(self._metric, best), "before": value_of(self._metric, first), "alone": None}

    def _status_of(self, zone: Zone) -> Document:
        history = self._history
        return status_of_zone(zone, self._metric, history.bytes_of(zone.name), history.left_out_of(zone.name))


def _text(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


def _plan_part(plan: Plan) -> Document:
    return plan_part(plan.version, plan.reason, len(plan.zones), plan.time)


def _round_part(record: RoundRecord) -> Document:
    report = record.report
    return {
        "attention": attention_part(report.attention),
        "left_out": dict(report.left_out),
        "devices_left_out": dict(record.devices_left_out),
    }
