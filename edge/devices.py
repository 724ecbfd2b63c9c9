"""The devices that attend a zone's edge, and the questions that they are asked (method 6; architecture, Faults).

A question goes to every device of the roster. One that is away is asked when it attends again; one that is late is left
out once quorum and deadline are met, and is not waited for again until it has answered something. One that was late
since it was away is waited for again as soon as it attends.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge.collection import Question, needed
from edge.job import Job, ZoneAnswer
from edge.turns import Turns
from sgfusion.errors import DivergedError, SGFusionError, UnavailableError
from sgfusion.reports import NOT_YET, Attendance, Model, by_reason
from sgfusion.wire.attending import Answer, Ask, Failed, Hello
from sgfusion.wire.edge_rpc import DeviceLink
from sgfusion.wire.version import version

Vector = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

BUDGET = 256 << 20
"""Bytes that answers waiting to be folded may take. A larger model is asked for device by device."""
NOT_IN_TIME = f"{NOT_YET}, and is no longer waited for"
"""Until it attends: nobody takes it for one that is starting."""
MOST_AT_ONCE = 8
"""Questions that devices work at: enough that the next one's weights are there when the last one is answered."""
_log = logging.getLogger("sgfusion.edge")


@dataclass(eq=False)
class Member:
    """A device of the roster."""

    histogram: Floats
    epsilon: float = 0.0
    """What it has spent by its ledger."""
    version: str = ""
    """Of its software, if it said."""
    link: DeviceLink | None = None
    away: str = NOT_YET
    """Why it is not here, if it is not."""
    late: str = ""
    """What it did not answer in time, or why it was away meanwhile; until it answers something, or attends again after
    it was away, it is not waited for.
    """


class Devices:
    """The roster, the links, and the questions under way. Everything runs on one event loop."""

    def __init__(self, *, zone: str, quorum: float, deadline: float, changed: Callable[[], None]) -> None:
        self._zone = zone
        self._quorum = quorum
        self._deadline = deadline
        self._changed = changed
        self.members: dict[str, Member] = {}
        self._jobs: dict[str, Job] = {}  # by ask, waiting and under way
        self._working: set[str] = set()
        self._turns: Turns[Job] = Turns()
        self._without_initial: set[str] = set()  # who was asked for θ⁰ in vain
        self.model: Model | None = None
        self.changes = 0
        """How often the zone's histogram has changed: by a device that is new, or that released a new one."""
        self._departures = 0

    def wait(self, *, quorum: float, deadline: float) -> None:
        """From the next question on, wait for that share of devices, and so long for the others."""
        self._quorum, self._deadline = quorum, deadline

    # The roster

    def join(self, link: DeviceLink) -> None:
        """A device attends, for the first time or again; it is asked for what it owes."""
        member = self.members.get(link.device)
        if member is None or not np.array_equal(member.histogram, link.hello.histogram):
            self.changes += 1
        if member is None:
            member = self.members[link.device] = Member(link.hello.histogram)
        elif member.link is not None:
            self._departures += 1
            member.link.close(f"device {link.device!r} attends anew: this stream is replaced")
        if member.late and member.late == member.away:  # it was late because it was away; who is slow has to answer
            member.late = ""
            _log.info("zone %s: device %s attends again", self._zone, link.device, extra={"device": link.device})
        member.histogram, member.link, member.away = link.hello.histogram, link, ""
        member.epsilon, member.version = link.hello.epsilon, link.hello.version
        for id in self._working:
            job = self._jobs[id]
            if link.device in job.question.due():
                link.ask(job.ask)
        self._changed()

    def leave(self, link: DeviceLink) -> None:
        """A stream has ended, perhaps one that was replaced already."""
        member = self.members.get(link.device)
        if member is not None and member.link is link:
            self._departures += 1
            member.link, member.away = None, "its stream has ended"
            self._changed()

    def forget_if_empty(self) -> None:
        """While devices gather, one that came first and left again does not fix the model for those that follow."""
        if not any(member.link for member in self.members.values()):
            self.members.clear()
            self.model = None

    def close(self, why: str) -> None:
        """The edge stops: questions end without an answer and streams in order, and the others hear why."""
        for job in list(self._jobs.values()):
            self._finish(job, UnavailableError(why))
        for member in self.members.values():
            if member.link is not None:
                member.link.close(why)

    def remember(self, histograms: Mapping[str, Floats], epsilons: Mapping[str, float]) -> None:
        """The roster of an earlier life of this edge: they are waited for."""
        for device, histogram in histograms.items():
            self.members.setdefault(device, Member(histogram, epsilons[device]))

    def attendance(self, expected: int) -> Attendance:
        """Who is here, and who is not."""
        missing = {d: m.away or m.late for d, m in sorted(self.members.items()) if m.away or m.late}
        here = tuple(sorted(device for device, member in self.members.items() if member.link))
        others = sum(self.members[device].version not in ("", version()) for device in here)
        return Attendance(expected, here, missing, self._departures, others)

    def census(self) -> dict[str, int]:
        """How many attend and answer in time, attend and do not, and were here once."""
        here = [member for member in self.members.values() if member.link]
        late = sum(bool(member.late) for member in here)
        return {"attending": len(here) - late, "late": late, "gone": len(self.members) - len(here)}

    def needed(self, devices: int) -> int:
        """How many of so many the quorum asks for."""
        return needed(self._quorum, devices)

    def queue(self) -> dict[str, int]:
        """Questions that wait for their turn, and that devices were asked."""
        return {"waiting": len(self._turns), "asked": len(self._working)}

    # Questions

    async def direction(self, theta: Vector, asker: str, seconds: float | None = None, request: str = "") -> ZoneAnswer:
        """The mean direction of the zone's devices on the weights (method 6); `request` is for logs, as in others."""
        return await self._ask(Ask("direction", theta, self.known().fingerprint, request), asker, seconds)

    async def evaluate(self, theta: Vector, request: str = "") -> ZoneAnswer:
        """The sums of scores on the devices' held-out samples."""
        return await self._ask(Ask("evaluation", theta, self.known().fingerprint, request), self._zone, None)

    async def initial(self, request: str = "") -> Vector:
        """`θ⁰`, from whichever device has the first id of those here; one that did not give it is asked last."""
        here = [device for device, member in self.members.items() if member.link]
        if not here:
            raise UnavailableError(f"no device of zone {self._zone!r} attends")
        if self._without_initial.issuperset(here):
            self._without_initial.clear()
        device = min(here, key=lambda device: (device in self._without_initial, device))
        self._without_initial.add(device)
        ask = Ask("initial", None, self.known().fingerprint, request)
        theta = (await self._ask(ask, self._zone, None, only=device)).mean
        self._without_initial.discard(device)
        return theta

    def waiting_for(self) -> str:
        """What the zone's own questions wait for beyond the deadline, in words; empty if nothing."""
        for id in self._working:
            job = self._jobs[id]
            if self._zone in job.askers and job.late:
                owing = {d: self.members[d].away or "has not answered" for d in sorted(job.question.owing)}
                return (
                    f"{job.question.answered} devices answered within {job.seconds:g} s,"
                    f" {job.question.needed} are needed (quorum.devices = {self._quorum:g}),"
                    f" missing: {by_reason(owing, most=10)}"
                )
        return ""

    def owing(self) -> tuple[str, ...]:
        """The devices that the zone's own question waits for now, or those before it in the queue do; late ones only if
        there are no others.
        """
        own = [id for id, job in self._jobs.items() if self._zone in job.askers]
        if not own:
            return ()
        asked = self._working.intersection(own) or self._working
        due = tuple(sorted({device for id in asked for device in self._jobs[id].question.due()}))
        return tuple(device for device in due if not self.members[device].late) or due

    def answered(self, link: DeviceLink, ask: str, answer: Answer | None) -> None:
        """A device's answer; None if it comes after the question has ended."""
        member = self.members.get(link.device)
        if member is not None and member.late:
            member.late = ""
            _log.info("zone %s: device %s answers again", self._zone, link.device, extra={"device": link.device})
        job = self._jobs.get(ask)
        if job is None or ask not in self._working or answer is None:
            return
        if isinstance(answer, Failed):
            if answer.diverged and job.ask.kind == "direction":
                job.diverged = f"device {link.device}: {answer.reason}"
            about = _about(job, link.device)
            _log.warning("zone %s: device %s cannot answer: %s", self._zone, link.device, answer.reason, extra=about)
            job.question.leave_out(link.device, answer.reason)
        else:
            job.question.receive(link.device, answer)
        self._proceed(job)

    async def _ask(self, ask: Ask, asker: str, seconds: float | None, only: str | None = None) -> ZoneAnswer:
        within = self._deadline if seconds is None else min(self._deadline, seconds * 0.9)
        job = self._jobs.get(ask.id)
        if job is None:
            loop = asyncio.get_running_loop()
            job = Job(ask, {asker}, within, loop.create_future(), loop.time())
            roster = [only] if only else list(self.members)
            window = max(1, BUDGET // (4 * self.known().length)) if ask.kind == "direction" else len(roster)
            job.question = Question(roster, quorum=self._quorum, window=window, fold=job.fold)
            self._jobs[ask.id] = job
            self._turns.add(asker, job)
        else:
            job.askers.add(asker)
            first = job.ask.request or "somebody"  # under its name devices and the rest of this log go on
            _log.debug("zone %s: shares %s with %s", self._zone, ask.id, first, extra={"request": ask.request})
            self._prolong(job, within)
        job.waiters += 1
        self._start_next()
        try:
            return await asyncio.shield(job.done)
        finally:
            job.waiters -= 1
            if not job.waiters and not job.done.done():
                self._end(job)

    def _start_next(self) -> None:
        while len(self._working) < self._at_once() and (job := self._turns.next()) is not None:
            self._working.add(job.ask.id)
            _log.debug("zone %s: asks its devices %s", self._zone, job.ask.id, extra=_about(job))
            job.timer = asyncio.get_running_loop().call_later(job.seconds, self._is_late, job)
            self._proceed(job)

    def _prolong(self, job: Job, within: float) -> None:
        """Another asker of the same, who has so long from now: nobody is hurried by who asked first."""
        if job.timer is None:
            job.seconds = max(job.seconds, within)
            return
        loop = asyncio.get_running_loop()
        if loop.time() + within > job.timer.when():
            job.timer.cancel()
            job.seconds, job.late = max(job.seconds, within), False
            job.timer = loop.call_later(within, self._is_late, job)

    def _at_once(self) -> int:
        return max(1, min(MOST_AT_ONCE, BUDGET // (16 * self.known().length)))

    def _is_late(self, job: Job) -> None:
        job.late = True
        if job.ask.kind == "initial":  # another device may be asked instead
            self._finish(job, UnavailableError(f"no device gave θ⁰ within {job.seconds:g} s"))
            return
        self._proceed(job)
        if not job.done.done():
            waits = self.waiting_for() or "a peer's question"
            _log.warning("zone %s: %s is late: %s", self._zone, job.ask.kind, waits, extra=_about(job))
            self._changed()

    def _proceed(self, job: Job) -> None:
        """Ask whose turn it is, or end the question if there are enough answers."""
        question = job.question
        quorate = question.answered >= question.needed
        unreliable = {device for device, member in self.members.items() if member.late} if quorate else set()
        if job.diverged:
            self._finish(job, DivergedError(f"{job.diverged}. Lower the learning rate"))
        elif question.enough(late=job.late, unreliable=unreliable):
            for device in sorted(question.owing):
                member = self.members[device]
                reason = member.away or f"has not answered within {job.seconds:g} s"
                if not member.late and job.seconds >= self._deadline:  # a hasty peer's haste is not its fault
                    if reason == NOT_YET:
                        member.away = reason = NOT_IN_TIME
                    about = _about(job, device)
                    _log.warning("zone %s: goes on without device %s: %s", self._zone, device, reason, extra=about)
                    member.late = reason
                question.leave_out(device, reason)
            self._finish(job, None)
        elif question.hopeless:
            told = "; ".join(f"{device}: {why}" for device, why in list(question.left_out.items())[:5])
            self._finish(
                job,
                UnavailableError(
                    f"{question.answered} devices of zone {self._zone!r} answered, {question.needed} are needed: {told}"
                ),
            )
        else:
            for device in question.newly_due():
                link = self.members[device].link
                if link is not None:  # or it is asked when it joins
                    link.ask(job.ask)

    def _finish(self, job: Job, error: SGFusionError | None) -> None:
        if not job.done.done():
            seconds = asyncio.get_running_loop().time() - job.began
            _log.debug(
                "zone %s: %d devices have answered %s after %.1f ms",
                self._zone,
                job.question.answered,
                job.ask.id,
                1000 * seconds,
                extra=_about(job),
            )
            if error is None:
                job.done.set_result(job.outcome())
            else:
                job.done.set_exception(error)
                job.done.exception()  # seen, even if nobody waits
        self._end(job)

    def _end(self, job: Job) -> None:
        if self._jobs.pop(job.ask.id, None) is None:
            return
        if job.timer is not None:
            job.timer.cancel()
        job.question.close()  # it calls back the job that has it: a ring, which would keep a large model's vectors
        self._turns.remove(job)
        self._working.discard(job.ask.id)
        for member in self.members.values():
            if member.link is not None:
                member.link.withdraw(job.ask)
        self._start_next()

    def known(self) -> Model:
        """The model of the zone's devices; an error before the first of them has attended."""
        if self.model is None:
            raise UnavailableError(f"no device of zone {self._zone!r} has attended yet")
        return self.model

    def attend(self, hello: Hello) -> DeviceLink:
        """A link for a device whose model is that of the zone; the first one says which that is."""
        model = self.model = self.model or hello.model
        return DeviceLink(hello, length=model.length, fingerprint=model.fingerprint)


def _about(job: Job, device: str = "") -> dict[str, object]:
    """Fields of an event, said with it: what runs here runs in whoever's task came last, with that one's round."""
    return {"request": job.ask.request, "device": device, "round": None}
