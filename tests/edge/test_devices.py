"""Questions to a zone's devices: quorum and deadline, who is late or away, turns, memory (architecture, Faults)."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edge import devices as module
from edge.devices import Devices
from edge.job import ZoneAnswer
from sgfusion.errors import DivergedError, UnavailableError
from sgfusion.evaluation import Score
from sgfusion.reports import NOT_YET
from sgfusion.wire.attending import Ask, Direction, Evaluated, Failed, Hello, hello_from_wire, hello_to_wire
from sgfusion.wire.cloud_messages import attendance_from_wire, attendance_to_wire
from sgfusion.wire.version import version
from tests.cluster.keys import run_async
from tests.edge.zones import MODEL, THETA, domain_hello


class Link:
    """A device's link that notes what it is asked."""

    def __init__(self, zone: Devices, device: str, said: str = "") -> None:
        self.device = device
        # Over the wire, and back.
        self.hello: Hello = hello_from_wire(hello_to_wire(replace(domain_hello(device), version=said)))
        self.zone = zone
        self.open: dict[str, Ask] = {}
        self.asked: list[Ask] = []
        self.closed = ""
        zone.model = MODEL
        zone.join(self)  # type: ignore[arg-type]

    def ask(self, ask: Ask) -> None:
        if ask.id not in self.open:
            self.open[ask.id] = ask
            self.asked.append(ask)

    def withdraw(self, ask: Ask) -> None:
        self.open.pop(ask.id, None)

    def close(self, reason: str) -> None:
        self.closed = reason

    def leave(self) -> None:
        self.zone.leave(self)  # type: ignore[arg-type]

    def answer(self, answer: Direction | Evaluated | Failed | float | None, id: str | None = None) -> None:
        """To the first ask that is open: a number is a direction of it."""
        id = id or next(iter(self.open))
        self.open.pop(id, None)
        if isinstance(answer, float):
            answer = Direction(np.full(MODEL.length, answer, np.float32), 1, answer)
        self.zone.answered(self, id, answer)  # type: ignore[arg-type]


def a_zone(*names: str, quorum: float = 1.0, deadline: float = 30.0) -> tuple[Devices, list[Link]]:
    zone = Devices(zone="ash", quorum=quorum, deadline=deadline, changed=lambda: None)
    return zone, [Link(zone, name) for name in names]


async def begun(question: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    task = asyncio.create_task(question)
    await asyncio.sleep(0)
    return task


def weights(number: float) -> Any:
    return np.full(MODEL.length, number, np.float32)


def at_rest(zone: Devices) -> bool:
    return not zone._jobs and not zone._working and not len(zone._turns)


def test_all_answers_are_averaged_and_nothing_is_left() -> None:
    async def work() -> None:
        zone, (a, b) = a_zone("a", "b")
        question = await begun(zone.direction(THETA, "ash"))
        b.answer(1.0)
        a.answer(4.0)
        found: ZoneAnswer = await question
        assert (found.mean.tolist(), found.devices, found.gradients, found.loss) == ([2.5] * 6, 2, 2, 2.5)
        assert found.left_out == {}
        assert at_rest(zone)

    run_async(work())


def test_an_evaluation_is_summed() -> None:
    async def work() -> None:
        zone, (a, b) = a_zone("a", "b")
        question = await begun(zone.evaluate(THETA))
        for link in (a, b):
            link.answer(Evaluated(Score(1.5, 2), Score(0.5, 1)))
        found = await question
        assert (found.validation, found.test) == (Score(3.0, 4), Score(1.0, 2))

    run_async(work())


def test_who_is_late_is_left_out_and_not_waited_for_until_it_answers() -> None:
    async def work() -> None:
        zone, (a, b) = a_zone("a", "b", quorum=0.5, deadline=0.2)
        question = await begun(zone.direction(weights(1), "ash"))
        a.answer(1.0)
        found = await question
        assert found.left_out == {"b": "has not answered within 0.2 s"}
        assert zone.attendance(2).missing == {"b": "has not answered within 0.2 s"}
        # Asked along, and not waited for.
        loop = asyncio.get_running_loop()
        start = loop.time()
        question = await begun(zone.direction(weights(2), "ash"))
        assert len(b.asked) == 2
        a.answer(1.0)
        assert (await question).left_out == {"b": "has not answered within 0.2 s"}
        assert loop.time() - start < 0.15
        # It answers, if only what nobody waits for: from here on it is waited for.
        b.answer(None, b.asked[0].id)
        assert zone.attendance(2).missing == {}
        question = await begun(zone.direction(weights(3), "ash"))
        a.answer(1.0)
        await asyncio.sleep(0.05)
        b.answer(3.0)
        assert (await question).mean.tolist() == [2.0] * 6

    run_async(work())


def test_who_was_late_since_it_was_away_is_not_once_it_attends_and_who_is_slow_still_is() -> None:
    """A zone that is done asks no more: nobody would be late for ever for want of a question."""

    async def work() -> None:
        zone, (a, b, _) = a_zone("a", "b", "c", quorum=0.3, deadline=0.05)
        b.leave()
        question = await begun(zone.direction(weights(1), "ash"))
        a.answer(1.0)
        await question
        assert zone.census() == {"attending": 1, "late": 1, "gone": 1}
        back = Link(zone, "b")
        Link(zone, "c")
        assert zone.attendance(3).missing == {"c": "has not answered within 0.05 s"}
        assert zone.census() == {"attending": 2, "late": 1, "gone": 0}
        question = await begun(zone.direction(weights(2), "ash"))  # b is waited for again, c is not
        a.answer(1.0)
        await asyncio.sleep(0)
        assert not question.done()
        back.answer(3.0)
        assert (await question).devices == 2

    run_async(work())


def test_one_that_has_not_come_in_time_is_no_longer_taken_for_one_that_starts() -> None:
    async def work() -> None:
        zone, (a,) = a_zone("a", quorum=0.3, deadline=0.05)
        zone.remember({"b": domain_hello("b").histogram}, {"b": 0.0})
        assert zone.attendance(2).missing == {"b": NOT_YET}
        question = await begun(zone.direction(weights(1), "ash"))
        a.answer(1.0)
        await question
        assert zone.attendance(2).missing == {"b": f"{NOT_YET}, and is no longer waited for"}
        Link(zone, "b")
        assert zone.attendance(2).missing == {}

    run_async(work())


def test_without_a_quorum_it_waits_beyond_the_deadline_and_says_so() -> None:
    async def work() -> None:
        zone, (a, _) = a_zone("a", "b", quorum=1.0, deadline=0.05)
        question = await begun(zone.direction(THETA, "ash"))
        a.answer(1.0)
        assert zone.waiting_for() == ""
        await asyncio.sleep(0.1)
        assert not question.done()
        assert zone.waiting_for() == (
            "1 devices answered within 0.05 s, 2 are needed (quorum.devices = 1), missing: b (has not answered)"
        )
        back = Link(zone, "b")
        assert [ask.id for ask in back.asked] == [a.asked[0].id]
        back.answer(3.0)
        assert (await question).devices == 2
        assert zone.waiting_for() == ""

    run_async(work())


def test_who_is_away_is_asked_when_it_returns() -> None:
    async def work() -> None:
        zone, (a, b) = a_zone("a", "b")
        b.leave()
        assert zone.attendance(2).missing == {"b": "its stream has ended"}
        question = await begun(zone.direction(THETA, "ash"))
        a.answer(1.0)
        again = Link(zone, "b")
        assert len(again.asked) == 1
        b.leave()  # the old stream ends late: the new one stays
        assert zone.attendance(2).attending == ("a", "b")
        again.answer(2.0)
        assert (await question).devices == 2
        assert len(b.asked) == 0

    run_async(work())


def test_who_owes_the_zones_own_question_an_answer() -> None:
    async def work() -> None:
        zone, (a, b, c) = a_zone("a", "b", "c")
        assert zone.owing() == ()
        peers = await begun(zone.direction(weights(2.0), "birch"))
        assert zone.owing() == (), "a peer's question is the peer's to tell of"
        own = await begun(zone.direction(THETA, "ash"))
        assert zone.owing() == ("a", "b", "c")
        b.answer(1.0, next(reversed(b.open)))
        assert zone.owing() == ("a", "c")
        zone.members["a"].late = "has not answered within 30 s"
        assert zone.owing() == ("c",)
        c.answer(1.0, next(reversed(c.open)))
        assert zone.owing() == ("a",), "nobody else is waited for"
        a.answer(1.0, next(reversed(a.open)))
        await own
        assert zone.owing() == ()
        peers.cancel()

    run_async(work())


def test_a_question_that_waits_for_its_turn_waits_for_those_who_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_AT_ONCE", 1)

    async def work() -> None:
        zone, (a, b, c) = a_zone("a", "b", "c")
        peers = await begun(zone.direction(weights(2.0), "birch"))
        own = await begun(zone.direction(THETA, "ash"))
        assert zone.queue() == {"waiting": 1, "asked": 1}
        for link in (a, b):
            link.answer(1.0)
        assert zone.owing() == ("c",), "the others have not been asked"
        c.answer(1.0)
        assert zone.owing() == ("a", "b", "c")
        await peers
        own.cancel()

    run_async(work())


def test_an_earlier_stream_is_closed_for_a_new_one() -> None:
    async def work() -> None:
        zone, (old,) = a_zone("a")
        Link(zone, "a")
        assert "attends anew" in old.closed

    run_async(work())


def test_two_askers_of_the_same_share_one_question() -> None:
    async def work() -> None:
        zone, (a,) = a_zone("a")
        own, peer = await begun(zone.direction(THETA, "ash")), await begun(zone.direction(THETA.copy(), "birch", 9.0))
        assert len(a.asked) == 1
        own.cancel()  # the other still waits
        await asyncio.sleep(0.01)
        assert not at_rest(zone)
        a.answer(1.0)
        assert (await peer).devices == 1
        assert at_rest(zone)

    run_async(work())


def test_a_hasty_asker_hurries_neither_another_one_nor_the_devices() -> None:
    async def work() -> None:
        zone, (a, b) = a_zone("a", "b", quorum=0.5, deadline=5.0)
        hasty = await begun(zone.direction(weights(1), "birch", 0.05))
        a.answer(1.0)
        assert (await hasty).left_out == {"b": "has not answered within 0.045 s"}
        assert zone.attendance(2).missing == {}  # it had no fair chance: our own rounds wait for it
        shared = await begun(zone.direction(weights(2), "birch", 0.05))
        own = await begun(zone.direction(weights(2), "ash"))
        a.answer(1.0)
        await asyncio.sleep(0.1)
        assert not shared.done()
        b.answer(None, b.asked[0].id)
        b.answer(3.0)
        assert (await own).devices == (await shared).devices == 2

    run_async(work())


def test_a_question_that_nobody_waits_for_ends() -> None:
    async def work() -> None:
        zone, (a,) = a_zone("a")
        question = await begun(zone.direction(THETA, "birch", 9.0))
        assert len(a.open) == 1
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)
        assert at_rest(zone)
        assert a.open == {}

    run_async(work())


def test_a_question_in_line_that_nobody_waits_for_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_AT_ONCE", 1)

    async def work() -> None:
        zone, (a,) = a_zone("a")
        first, second = await begun(zone.direction(weights(1), "ash")), await begun(zone.direction(weights(2), "birch"))
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        a.answer(1.0)
        await first
        assert len(a.asked) == 1
        assert at_rest(zone)

    run_async(work())


def test_so_many_questions_at_once_and_askers_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_AT_ONCE", 2)

    async def work() -> None:
        zone, (a,) = a_zone("a")
        numbers = {"birch": (1, 2, 3, 4), "ash": (10,), "cedar": (20, 21)}
        questions = [
            await begun(zone.direction(weights(number), asker)) for asker, own in numbers.items() for number in own
        ]
        assert len(a.open) == 2
        order = []
        while a.open:
            assert len(a.open) <= 2
            order.append(next(iter(a.open.values())).weights)
            a.answer(0.0)
        assert [int(found[0]) for found in order if found is not None] == [1, 2, 3, 10, 20, 4, 21]
        await asyncio.gather(*questions)

    run_async(work())


def test_devices_with_a_large_model_are_asked_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUDGET", 4 * MODEL.length * 2)  # two answers may wait

    async def work() -> None:
        zone, links = a_zone("a", "b", "c", "d")
        question = await begun(zone.direction(THETA, "ash"))
        other = await begun(zone.direction(2 * THETA, "birch"))
        assert [len(link.open) for link in links] == [1, 1, 0, 0]
        links[1].answer(1.0)
        assert [len(link.open) for link in links] == [1, 0, 0, 0]
        links[0].answer(1.0)
        assert [len(link.open) for link in links] == [0, 0, 1, 1]
        links[2].answer(1.0)
        links[3].answer(1.0)
        assert (await question).devices == 4
        assert [len(link.open) for link in links] == [1, 1, 0, 0]  # now the other asker's
        other.cancel()

    run_async(work())


def test_a_diverged_answer_ends_the_question() -> None:
    async def work() -> None:
        zone, (a, b) = a_zone("a", "b")
        question = await begun(zone.direction(THETA, "ash"))
        a.answer(Failed("its loss is not finite", diverged=True))
        with pytest.raises(DivergedError, match=r"device a: its loss is not finite\. Lower the learning rate"):
            await question
        assert b.open == {}
        assert at_rest(zone)

    run_async(work())


def test_who_cannot_answer_is_left_out_or_the_question_fails() -> None:
    async def work() -> None:
        zone, (a, b) = a_zone("a", "b", quorum=0.5)
        question = await begun(zone.direction(THETA, "ash"))
        a.answer(Failed("no memory"))
        b.answer(1.0)
        assert (await question).left_out == {"a": "no memory"}
        question = await begun(zone.direction(THETA, "ash"))
        a.answer(Failed("no memory"))
        b.answer(Failed("no samples"))
        with pytest.raises(
            UnavailableError, match=r"0 devices of zone 'ash' answered, 1 are needed: a: no mem.*no sam"
        ):
            await question
        assert at_rest(zone)

    run_async(work())


def test_initial_weights_are_asked_of_the_next_device_if_one_does_not_give_them() -> None:
    async def work() -> None:
        zone, (a, b, c) = a_zone("a", "b", "c", deadline=0.05)
        with pytest.raises(UnavailableError, match=r"no device gave θ⁰ within 0\.05 s"):
            await zone.initial()
        assert [len(link.asked) for link in (a, b, c)] == [1, 0, 0]
        question = await begun(zone.initial())
        b.answer(Failed("no torch"))
        with pytest.raises(UnavailableError, match="b: no torch"):
            await question
        question = await begun(zone.initial())
        c.answer(7.0)
        assert (await question).tolist() == [7.0] * 6
        assert [len(link.asked) for link in (a, b, c)] == [1, 1, 1]
        for link in (b, c):
            link.leave()
        with pytest.raises(UnavailableError):  # the only one here is asked, whatever it did before
            await zone.initial()
        assert len(a.asked) == 2
        a.leave()
        with pytest.raises(UnavailableError, match="no device of zone 'ash' attends"):
            await zone.initial()

    run_async(work())


def test_before_the_first_device_there_is_no_model() -> None:
    async def work() -> None:
        zone, _ = a_zone()
        with pytest.raises(UnavailableError, match="no device of zone 'ash' has attended yet"):
            await zone.direction(THETA, "ash")

    run_async(work())


def test_a_device_that_releases_a_new_histogram_changes_the_zones() -> None:
    zone, (first, second) = a_zone("a", "b")
    before = zone.changes
    zone.join(first)  # type: ignore[arg-type]  # again, as it was
    assert zone.changes == before
    bent = np.roll(second.hello.histogram, 1) * 0.5 + 0.5 / len(second.hello.histogram)
    second.hello = replace(second.hello, histogram=bent)
    zone.join(second)  # type: ignore[arg-type]
    assert zone.changes == before + 1


def test_only_a_direction_can_have_diverged() -> None:
    """A device that says so of an evaluation cannot answer, and is left out: it does not end its zone."""

    async def work() -> None:
        zone, (a, b) = a_zone("a", "b", quorum=0.5)
        question = await begun(zone.evaluate(weights(1.0)))
        a.answer(Failed("not finite", diverged=True))
        b.answer(Evaluated(Score(1.0, 1), Score(2.0, 1)))
        answer = await question
        assert answer.left_out == {"a": "not finite"}
        assert answer.test == Score(2.0, 1)

    run_async(work())


def test_while_devices_gather_one_that_left_does_not_fix_the_model() -> None:
    zone, (only,) = a_zone("a")
    zone.forget_if_empty()
    assert zone.members
    only.leave()
    zone.forget_if_empty()
    assert not zone.members
    assert zone.model is None


def test_devices_of_another_version_are_counted_while_they_attend() -> None:
    """Those that say nothing are not: a device need not be ours."""

    async def come_and_go() -> None:
        zone, _ = a_zone("u1")
        other = Link(zone, "u2", "0.0.1")
        Link(zone, "u3", version())
        said = zone.attendance(3)
        assert attendance_from_wire(attendance_to_wire(said)) == said, "the cloud hears it"
        assert said.other_versions == 1
        other.leave()
        assert zone.attendance(3).other_versions == 0
        Link(zone, "u2", version())
        assert zone.attendance(3).other_versions == 0

    run_async(come_and_go())


def test_streams_that_end_are_counted_also_those_that_are_replaced_at_once() -> None:
    """A report says who is here at its moment: who was gone and is back is seen by the count alone."""

    async def come_and_go() -> None:
        zone, (u1, u2) = a_zone("u1", "u2")
        before = zone.attendance(2)
        u1.leave()
        Link(zone, "u1")
        Link(zone, "u2")
        u2.leave()  # which was replaced, and counted then
        assert (before.departures, zone.attendance(2)) == (0, replace(before, departures=2))

    run_async(come_and_go())
