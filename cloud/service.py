"""The cloud behind its RPCs: decisions of `coordinator.py`, on disk before anybody is told, then pushed to watchers."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from cloud import coordinator
from cloud.checks import check_enrolment, check_report, check_submission
from cloud.journal import Journal
from cloud.measures import CloudMeasures
from cloud.planner import MakeTree, Tree, directory_of, draws_of, make_tree, zone_plan
from cloud.state import Change, Fit, State
from cloud.status import run_status
from cloud.store import Store
from sgfusion.errors import SGFusionError, UnavailableError
from sgfusion.plan import Draws, ZonePlan
from sgfusion.reports import PlanVersion, RunStatus, ZoneRecords, ZoneReport
from sgfusion.same_run import without_places
from sgfusion.wire.cloud_rpc import Enrolment, Submission
from sgfusion.wire.status import Refusals
from sgfusion.wire.version import version

STATUS_EVERY = 0.25
"""Seconds between two statuses of one watcher, at least."""
AGED = 5.0
"""Seconds after which a watcher is told how long zones wait by now."""
PLAN_EVERY = 0.001
"""Seconds between two plans of one watcher, at least, for each zone: every zone's change is news to every other, and
they all start, end and restart together."""
T = TypeVar("T")
_log = logging.getLogger("sgfusion.cloud")


def steady_clock() -> Callable[[], float]:
    """Seconds since 1970 as of now, and from then on as time goes by: a clock that is set does not end all leases."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


class Bell:
    """Wakes all who wait, once. Who was not waiting sees the latest when it looks: nothing queues up."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """Take it before looking: what rings in between is then not missed."""
        return self._event

    def ring(self) -> None:
        """Something has changed."""
        event, self._event = self._event, asyncio.Event()
        event.set()


class CloudService:
    """A `CloudHandler`. `run` must be under way for calls to be answered.

    Two states: `_decided` is as of the last event, `_shown` as of the last write to disk; others see the latter only.
    """

    def __init__(
        self,
        store: Store,
        state: State,
        *,
        refusals: Refusals,
        clock: Callable[[], float],
        make_tree: MakeTree = make_tree,
    ) -> None:
        self._clock = clock
        self._refusals = refusals
        self._make_tree = make_tree
        self._decided = self._shown = coordinator.resumed(state, clock())
        self._wrote = store.wrote
        # For edges, without the map: they have no use for it, and need not know where others' samples are.
        self._run_text = without_places(state.run).to_toml()
        self.measures = CloudMeasures()
        """Who is told of the cloud's work."""
        self._journal = Journal(store, self._written, lambda: self.measures.phase("store"))
        self._draws: Mapping[str, Draws] = {}
        self._made: dict[int, Mapping[str, Draws]] = {}  # by version: made, not yet on disk
        if state.plan is not None:
            self._draws = draws_of(state.plan.tree, state.run, _numbers(state))
        self._directory = directory_of(self._shown)
        self._plan_bell, self._status_bell = Bell(), Bell()
        self._fits: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[list[Change]], None]] = []
        self._stopping = False

    async def run(self) -> None:
        """Serve until cancelled; ends by itself only if the store fails."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._journal.run())
            tasks.create_task(self._tick())

    def stop(self) -> None:
        """End all watches now: an open stream must not hold up the end of the process."""
        self._stopping = True
        self._plan_bell.ring()
        self._status_bell.ring()

    def close(self) -> None:
        """After `run` has ended: finish what is being written."""
        for fit in self._fits:
            fit.cancel()
        self._journal.close()

    async def enrol(self, zone: str, address: str, life: int = 0) -> Enrolment:
        """An edge speaks for the zone, and is reached there."""
        check_enrolment(zone, address)
        await self._apply(coordinator.enrol(self._decided, zone, address, self._clock(), life=life))
        return Enrolment(self._decided.zones[zone].number, self._run_text, self._decided.lease)

    async def submit_histogram(self, submission: Submission) -> bool:
        """The zone's histogram; whether it has drifted so far that a new plan is made."""
        coordinator.known(self._decided, submission.zone)
        check_submission(submission)
        change, drifted = coordinator.histogram(
            self._decided,
            submission.zone,
            submission.histogram,
            self._clock(),
            devices=submission.devices,
            model=submission.model,
            initial=submission.initial,
            epsilon=submission.epsilon,
        )
        await self._apply(change)
        return drifted

    async def report(self, report: ZoneReport) -> int:
        """Finished rounds; the last one that is on disk."""
        coordinator.known(self._decided, report.zone)
        check_report(self._decided, report)
        with self.measures.phase("report"):
            await self._apply(coordinator.report(self._decided, report, self._clock()))
        self.measures.reported(len(report.rounds))
        return self._shown.zones[report.zone].round

    async def leave(self, zone: str) -> None:
        """The zone leaves the run."""
        await self._apply(coordinator.leave(self._decided, zone, self._clock()))

    async def watch_plan(self, zone: str) -> AsyncGenerator[ZonePlan]:
        """The zone's plan, now and whenever it or the directory changes."""
        last: ZonePlan | None = None
        while True:
            changed = self._plan_bell.next
            self._refuse_if_stopping()
            coordinator.known(self._shown, zone)
            plan = zone_plan(self._shown, zone, self._draws, self._directory)
            # The directory is another object only if it is another: comparing all of it for all is quadratic.
            if last is None or _news(plan, last):
                last = plan
                yield plan
                await asyncio.sleep(PLAN_EVERY * len(plan.directory))
            await changed.wait()

    @property
    def queued(self) -> int:
        """Changes that wait to be on disk."""
        return self._journal.waiting

    @property
    def committed(self) -> float:
        """When changes were last put on disk, in seconds since 1970."""
        return self._journal.committed

    def status(self) -> RunStatus:
        """How the run stands."""
        return run_status(self._shown, self._clock(), self._refusals.counts(), version())

    async def watch_status(self) -> AsyncGenerator[RunStatus]:
        """The same, now and whenever it changes; a few times a second at most, and the latest only. That a zone waits
        longer is said at intervals: a status is of all zones.
        """
        last: RunStatus | None = None
        while True:
            changed = self._status_bell.next
            self._refuse_if_stopping()
            status = self.status()
            if last is None or _timeless(status) != _timeless(last) or _aged(status, last):
                last = status
                yield status
                await asyncio.sleep(STATUS_EVERY)
            await changed.wait()

    def dendrogram(self) -> str:
        """`dendrogram.json`; empty before the first plan."""
        return "" if self._shown.plan is None else self._shown.plan.tree

    async def plans(self) -> Sequence[PlanVersion]:
        """Every version of the plan so far."""
        return [
            PlanVersion(version, reason, len(zones), time)
            for version, reason, zones, time in await self._journal.read(Store.plans)
        ]

    async def records(self) -> AsyncGenerator[ZoneRecords]:
        """All that was reported, zone by zone, some at a time: never all of it in memory."""
        state = self._shown
        for zone in state.zones.values():
            length = state.contract.model.length if state.contract is not None and zone.histogram else 0
            whole = ZoneRecords(zone.name, (), (), length, zone.devices, zone.diverged, zone.histogram, zone.epsilon)
            yield whole
            after = -1
            while rounds := await self._journal.read(partial(Store.rounds, zone=zone.name, after=after)):
                yield replace(whole, rounds=tuple(rounds))
                after = rounds[-1].report.round
            after = -1
            while points := await self._journal.read(partial(Store.evaluations, zone=zone.name, after=after)):
                yield replace(whole, evaluations=tuple(points))
                after = points[-1].round

    # For the page

    @property
    def shown(self) -> State:
        """The state that is on disk."""
        return self._shown

    def now(self) -> float:
        """Seconds since 1970, by the cloud's clock."""
        return self._clock()

    def refused(self) -> Mapping[str, int]:
        """Requests that were refused, by reason."""
        return self._refusals.counts()

    async def read(self, work: Callable[[Store], T]) -> T:
        """What `work` reads from the store."""
        return await self._journal.read(work)

    def tell(self, listener: Callable[[list[Change]], None]) -> None:
        """Call it with every batch of changes that is on disk, when `shown` has them."""
        self._listeners.append(listener)

    async def _tick(self) -> None:
        if self._wrote is not None:
            await self._apply(coordinator.back(self._decided, self._clock(), self._wrote))
        while True:
            await self._apply(coordinator.tick(self._decided, self._clock()))
            await asyncio.sleep(min(1.0, self._decided.lease / 4))

    async def _apply(self, change: Change) -> None:
        """Decided now, so that the next decision builds on it; done when it is on disk."""
        self._decided = change.state
        self._begin_due_fit()
        await self._journal.write(change)

    def _written(self, changes: list[Change]) -> None:
        """A batch is on disk: from here on others see it."""
        self._shown = changes[-1].state
        for change in changes:
            for event in change.events:
                _log.info("%s", event.text)
            if change.plan is not None:
                self._draws = self._made.pop(change.plan.version)
        if any(change.zones or change.plan for change in changes):
            directory = directory_of(self._shown)
            if directory != self._directory or any(change.plan for change in changes):
                self._directory = directory
                self._plan_bell.ring()
        self._status_bell.ring()
        for listener in self._listeners:
            try:
                listener(changes)
            except Exception:  # noqa: BLE001 - who only looks on must not end the cloud
                _log.exception("a listener failed, and missed a change")

    def _begin_due_fit(self) -> None:
        fit = coordinator.due(self._decided, self._clock())
        if fit is None:
            return
        self._decided = coordinator.begin(self._decided, fit)
        _log.info("fits plan %d over %d zones: %s", fit.version, len(fit.zones), fit.reason)
        task = asyncio.create_task(self._fit(fit))
        self._fits.add(task)
        task.add_done_callback(self._fit_ended)

    async def _fit(self, fit: Fit) -> None:
        try:
            with self.measures.phase("fit"):
                tree, self._made[fit.version] = await _in_thread(
                    lambda: self._make_tree(fit, self._decided.run, _numbers(self._decided))
                )
        except Exception as error:  # noqa: BLE001 - whatever it is, the cloud goes on with the plan that it has
            if not isinstance(error, SGFusionError):
                _log.exception("plan %d failed", fit.version)
            await self._apply(coordinator.failed(self._decided, fit, str(error) or repr(error), self._clock()))
        else:
            await self._apply(coordinator.fitted(self._decided, fit, tree, self._clock()))

    def _fit_ended(self, task: asyncio.Task[None]) -> None:
        self._fits.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the plan could not be kept: %s", error)  # the store has failed, and ends the cloud

    def _refuse_if_stopping(self) -> None:
        if self._stopping:
            raise UnavailableError("the cloud is stopping: come back when it is up again")


def _news(plan: ZonePlan, last: ZonePlan) -> bool:
    return plan.version != last.version or plan.directory is not last.directory


def _timeless(status: RunStatus) -> RunStatus:
    """Without what time alone changes."""
    zones = (z if z.waiting is None else replace(z, waiting=replace(z.waiting, seconds=0.0)) for z in status.zones)
    return replace(status, time=0.0, zones=tuple(zones))


def _aged(status: RunStatus, last: RunStatus) -> bool:
    return status.time - last.time >= AGED and any(zone.waiting is not None for zone in status.zones)


def _numbers(state: State) -> dict[str, int]:
    return {zone.name: zone.number for zone in state.zones.values()}


async def _in_thread(work: Callable[[], Tree]) -> Tree:
    """What `work` gives, from a thread that the end of the process does not wait for: the fit is due again then."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Tree] = loop.create_future()

    def settle(tree: Tree | None, error: Exception | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(tree)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[Tree | None, Exception | None] = (work(), None)
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="fit", daemon=True).start()
    return await done
