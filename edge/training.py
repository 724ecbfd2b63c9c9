"""A zone's rounds, from gathering its devices to its last model (methods 2, 5, 6 and 7).

The round's logic is the kernel's `ZoneTrainer`; here its questions go to devices and peers, and its state to disk.
Zones wait for nobody: no barrier, no clock in common.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from edge.checkpoints import Checkpoints, Progress
from edge.collection import needed
from edge.memory import Roster
from edge.waits import Alarm
from edge.zone import Zone, digest
from sgfusion.draws import sampler_of
from sgfusion.errors import DivergedError, PeerUnavailableError, SGFusionError, UnavailableError
from sgfusion.evaluation import Choice, Point
from sgfusion.plan import Draws, ZonePlan, ZoneState
from sgfusion.records import evaluation_to_json, round_to_json
from sgfusion.reports import Model, RoundRecord, ZoneEvaluation
from sgfusion.wire.channel import backoff
from sgfusion.wire.logs import fields, timed
from sgfusion.wire.requests import request_of
from sgfusion.zone_trainer import Ask, ZoneTrainer
from sgfusion.zone_trainer import ZoneState as TrainerState

Vector = npt.NDArray[np.float32]
Result = TypeVar("Result")

FLOAT = 4
"""Bytes of a weight on the wire."""
LARGE = 1 << 20
"""Weights from which on arithmetic leaves the event loop: streams must not wait for it."""
_log = logging.getLogger("sgfusion.edge")


@dataclass(frozen=True)
class _Tally:
    """What an answer cost; the vector itself is the trainer's by then: of a large model every copy counts."""

    gradients: int
    hops: int
    """Over which weights went one way and a direction the other."""
    loss: float = 0.0
    left_out: Mapping[str, str] = field(default_factory=dict)


class Training:
    """The one task of an edge that changes its model."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._checkpoints = Checkpoints(zone.memory.checkpoints)
        self._alarm = Alarm(zone.waits, zone.to_tell.set)
        self._entered = 0  # changes of the devices' histograms that the roster has
        self._saving: asyncio.Task[None] | None = None
        self._unsaved: Progress | None = None
        self._records: list[dict[str, Any]] = []  # of the round under way
        self._finished: list[dict[str, Any]] = []  # of rounds up to the unsaved progress

    async def run(self) -> None:
        """Gather, train all rounds, and end; cancelled at any moment, a next life goes on from the disk."""
        zone = self._zone
        await zone.enrolled.wait()
        roster = zone.roster or await self._gather()
        state, choice = await self._begin(roster)
        try:
            await self._rounds(await self._plan(), state, choice)
        finally:
            self._alarm.off()
            await self._flush()

    # Before the first round

    async def _gather(self) -> Roster:
        """Wait for the zone's devices, and make its histogram (method 2)."""
        zone, run = self._zone, self._zone.run
        end, least = time.monotonic() + run.deadlines.zones, needed(run.quorum.devices, zone.expected)
        while (here := len(zone.devices.members)) < zone.expected:
            changed, late = zone.changed, time.monotonic() >= end
            if late and here >= least:
                break
            if late:
                zone.overdue = (
                    f"{here} of {zone.expected} devices attended within {run.deadlines.zones:g} s, {least} are needed"
                    f" (quorum.devices = {run.quorum.devices:g}): start them, or lower quorum.devices"
                )
                _log.warning("zone %s: %s", zone.zone, zone.overdue)
                zone.to_tell.set()
            await _until(changed, None if late else end - time.monotonic())
        if here < zone.expected:
            _log.warning("zone %s: begins with %d of %d devices", zone.zone, here, zone.expected)
        zone.overdue = ""
        initial = await self._initial()
        return self.enter(self._roster(zone.devices.known(), digest(initial)))

    def enter(self, roster: Roster) -> Roster:
        """These devices make the zone's histogram from now on; the cloud is to hear of it."""
        zone = self._zone
        self._entered = zone.devices.changes
        zone.memory.keep_roster(roster)
        zone.roster = roster
        zone.to_tell.set()
        return roster

    def _roster(self, model: Model, initial: str) -> Roster:
        members = self._zone.devices.members
        histograms = {device: member.histogram for device, member in members.items()}
        epsilons = {device: member.epsilon for device, member in members.items()}
        return Roster(self._zone.number, model, initial, histograms, epsilons)

    async def _initial(self) -> Vector:
        """`θ⁰`, from a device: edges have no torch."""
        zone, request = self._zone, request_of(self._zone.zone, purpose="initial")
        with fields(request=request):
            return await self._persist(lambda: zone.devices.initial(request))

    async def _persist(self, question: Callable[[], Awaitable[Result]]) -> Result:
        """Ask the zone's own devices until they answer: without them there is nothing to do."""
        zone, attempt = self._zone, 0
        while True:
            changed = zone.changed
            try:
                answer = await question()
            except UnavailableError as error:
                zone.overdue = str(error)
                _log.warning("zone %s: %s; asks again", zone.zone, error)
                zone.to_tell.set()
                zone.measures.retried("device", zone.zone)
                await _until(changed, 0.05 + backoff(attempt, random.random))
                attempt += 1
            else:
                zone.overdue = ""
                return answer

    async def _plan(self) -> ZonePlan:
        """The first plan; the cloud waits for other zones, within its own deadline."""
        zone = self._zone
        zone.state = ZoneState.WAITING
        zone.to_tell.set()
        while zone.plan is None:
            await _until(zone.changed, None)
        return zone.plan

    # Rounds

    async def _begin(self, roster: Roster) -> tuple[TrainerState, Choice[Vector]]:
        """Where an earlier life came to, or the state before round 1; and the model that is kept so far."""
        zone, run = self._zone, self._zone.run
        choice: Choice[Vector] = Choice(roster.model.metric)
        progress = await asyncio.to_thread(self._checkpoints.load)
        if progress is None:
            theta = await self._initial()
            if digest(theta) != roster.initial:
                raise SGFusionError(f"θ⁰ of zone {zone.zone!r} is not what it was: a device has other initial weights")
            return TrainerState.initial(zone.number, theta, run.optimiser.optimiser(run.rounds)), choice
        _log.info("zone %s: goes on after round %d", zone.zone, progress.state.round)
        zone.measures.saved(self._checkpoints.written())
        zone.publish(progress.records)
        choice.resume(progress.best_round, progress.best_worth, progress.best)
        zone.best, zone.diverged = (progress.best_round, progress.best), progress.diverged
        return progress.state, choice

    async def _rounds(self, plan: ZonePlan, state: TrainerState, choice: Choice[Vector]) -> None:
        zone, run = self._zone, self._zone.run
        optimiser = run.optimiser.optimiser(run.rounds)
        zone.last, zone.round = (state.round, state.theta), state.round
        zone.state = ZoneState.TRAINING
        zone.to_tell.set()
        if choice.models is None:
            await self._evaluate(state, choice)
        trainer: ZoneTrainer | None = None
        drawn_by: tuple[int, Draws] | None = None
        while state.round < run.rounds and not zone.diverged:
            plan = zone.plan or plan
            # By its draws too: a cloud that lost its memory counts versions anew.
            if trainer is None or (plan.version, plan.draws) != drawn_by:
                zone.plan_in_use, drawn_by = plan.version, (plan.version, plan.draws)
                zones = max([plan.number, *(peer.number for peer in plan.directory)]) + 1
                sampler = sampler_of(plan.draws, zone=plan.number, seed=run.seed, zones=zones)
                trainer = ZoneTrainer(state, sampler, optimiser, run.fusion.similarity)
            self._watch_roster()
            try:
                record = await self._round(trainer)
            except DivergedError as error:
                zone.diverged = str(error)
                _log.error("zone %s: %s", zone.zone, error)
                break
            state = trainer.state
            zone.measures.finished(record)
            self._records.append({"round": round_to_json(record)})
            zone.last = state.round, state.theta
            if state.round % run.evaluation.every == 0 or state.round == run.rounds:
                await self._evaluate(state, choice)
            self._save(Progress(state, choice.kept, choice.round, choice.worth))
        zone.best = choice.round, choice.kept
        self._save(Progress(state, choice.kept, choice.round, choice.worth, diverged=zone.diverged))
        await self._flush()
        zone.state = ZoneState.DIVERGED if zone.diverged else ZoneState.DONE
        zone.round = state.round
        zone.to_tell.set()
        _log.info("zone %s: %s after round %d", zone.zone, zone.state.value, state.round)

    async def _round(self, trainer: ZoneTrainer) -> RoundRecord:
        """One round: all questions at once, answers as they come, then the step."""
        zone, ask = self._zone, trainer.begin()
        with (
            fields(round=ask.round, request=request_of(zone.zone, ask.round)),
            timed(_log, "zone %s: round %d", zone.zone, ask.round),
            zone.measures.phase("round"),
        ):
            return await self._answered(trainer, ask)

    async def _answered(self, trainer: ZoneTrainer, ask: Ask) -> RoundRecord:
        zone = self._zone
        own = asyncio.create_task(self._own(trainer, ask))
        asked = {asyncio.create_task(self._peer(trainer, ask, number)): number for number in ask.draw}
        waiting: set[asyncio.Task[_Tally]] = {own, *asked}

        def missing() -> tuple[list[int], tuple[str, ...]]:
            peers = [number for number in trainer.waiting_for if number not in zone.peers.unreliable]
            return peers, () if own.done() else zone.devices.owing()

        try:
            with self._alarm.set("round", ask.round, missing):
                while waiting:
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()  # its error, if it has one
                    slow = {task for task in waiting if asked.get(task) in zone.peers.unreliable}
                    if waiting and slow == waiting:  # all others are in
                        for task in slow:
                            trainer.leave_out(asked[task], "it has not answered since it let a whole budget pass")
                        break
        finally:
            for task in (own, *asked):
                task.cancel()  # nothing to those that are done
        tallies = [task.result() for task in (own, *asked) if task not in waiting]
        with zone.measures.phase("fuse"):
            report = await self._compute(trainer.finish)
        return RoundRecord(
            report,
            own.result().left_out,
            sum(tally.gradients for tally in tallies),
            sum(tally.hops for tally in tallies) * 2 * FLOAT * len(ask.theta),
            own.result().loss,
        )

    async def _own(self, trainer: ZoneTrainer, ask: Ask) -> "_Tally":
        zone = self._zone
        request = request_of(zone.zone, ask.round)
        with zone.measures.phase("own"):
            answer = await self._persist(lambda: zone.devices.direction(ask.theta, zone.zone, request=request))
        trainer.receive_local(answer.mean)
        return _Tally(answer.gradients, answer.devices, answer.loss, dict(answer.left_out))

    async def _peer(self, trainer: ZoneTrainer, ask: Ask, number: int) -> "_Tally":
        zone = self._zone
        model = zone.devices.known().fingerprint
        try:
            with zone.measures.phase("peer"):
                answer = await zone.peers.direction(
                    number,
                    ask.theta,
                    round=ask.round,
                    contract=zone.contract,
                    fingerprint=model,
                    request=request_of(zone.zone, ask.round),
                )
        except PeerUnavailableError as error:
            trainer.leave_out(number, str(error))
            return _Tally(0, 0)
        trainer.receive_peer(number, answer.vector)
        return _Tally(answer.gradients, answer.devices + 1)

    async def _evaluate(self, state: TrainerState, choice: Choice[Vector]) -> None:
        """Scores of the zone's devices on their held-out samples; the best on validation is kept (method 9)."""
        zone, request = self._zone, request_of(self._zone.zone, state.round, "evaluation")
        with (
            fields(round=state.round, request=request),
            timed(_log, "zone %s: evaluation after round %d", zone.zone, state.round),
            zone.measures.phase("evaluation"),
            self._alarm.set("evaluation", state.round, lambda: ((), zone.devices.owing())),
        ):
            answer = await self._persist(lambda: zone.devices.evaluate(state.theta, request))
        point = Point(state.round, {zone.zone: answer.validation}, {zone.zone: answer.test})
        best = choice.offer(point, state.theta)
        choice.points.clear()  # the cloud has them
        zone.best = choice.round, choice.kept
        evaluation = ZoneEvaluation(state.round, answer.validation, answer.test, best)
        self._records.append({"evaluation": evaluation_to_json(evaluation)})

    async def _compute(self, work: Callable[[], Result]) -> Result:
        large = self._zone.devices.known().length >= LARGE
        return await asyncio.to_thread(work) if large else work()

    def _watch_roster(self) -> None:
        """A device that joined later, or that released a new histogram, counts from here on."""
        zone, roster = self._zone, self._zone.roster
        if roster is not None and zone.devices.changes != self._entered:
            _log.info("zone %s: its histogram is now of %d devices", zone.zone, len(zone.devices.members))
            self.enter(self._roster(roster.model, roster.initial))

    # On disk

    def _save(self, progress: Progress) -> None:
        """Write it as soon as the last one is written; a later one takes its place until then. Rounds do not wait."""
        self._unsaved = progress
        self._finished += self._records
        self._records = []
        if self._saving is not None and self._saving.done():
            self._saving.result()  # a disk that failed ends the edge: it goes on from what is there
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while (progress := self._unsaved) is not None:
            self._unsaved = None
            records, self._finished = self._finished, []
            whole = Progress(
                progress.state, progress.best, progress.best_round, progress.best_worth, records, progress.diverged
            )
            with self._zone.measures.phase("checkpoint"):
                await asyncio.to_thread(self._checkpoints.save, whole)
            self._zone.measures.saved(time.time())
            self._zone.round = progress.state.round
            self._zone.publish(records)

    async def _flush(self) -> None:
        """Until all that was finished is on disk."""
        if self._saving is not None:
            await asyncio.shield(self._saving)


async def _until(event: asyncio.Event, seconds: float | None) -> None:
    # Not wait_for: in Python 3.11 it loses a cancellation that comes with the event.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
