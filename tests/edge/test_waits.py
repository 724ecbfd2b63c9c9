"""When a wait is unusual: decided by how long rounds take, without a clock; and the timer that looks."""

import asyncio
import time

import pytest

from edge import waits as module
from edge.waits import AGAIN, FIRST, LEAST, NAMED, Alarm, Kind, Waits, Who
from sgfusion.waiting import Waiting
from tests.cluster.keys import run_async


def nobody() -> tuple[tuple[int, ...], tuple[str, ...]]:
    return (), ()


def a_peer() -> tuple[tuple[int, ...], tuple[str, ...]]:
    return (1,), ()


def after(*seconds: float, kind: Kind = "round", who: Who = a_peer, waits: Waits | None = None) -> Waits:
    """A zone whose rounds have taken so long."""
    waits = waits or Waits()
    for round, lasted in enumerate(seconds, 1):
        waits.begin(kind, round, 0.0, who)
        waits.end(lasted)
    return waits


def patience(waits: Waits, who: Who = a_peer) -> float:
    waits.begin("round", 99, 100.0, who)
    assert waits.due is not None
    return waits.due - 100.0


def test_a_wait_is_told_once_it_is_unusual_and_once_it_is_over() -> None:
    waits = after(0.1)
    waits.begin("round", 12, 50.0, lambda: ([1, 4], ["u3"]))
    assert waits.due == 53.0
    assert not waits.look(52.9)
    assert waits.waiting(52.9) is None
    assert waits.look(53.0)
    assert waits.waiting(54.5) == Waiting(12, 4.5, (1, 4), ("u3",))
    assert not waits.look(60.0), "once"
    assert waits.end(61.0)
    assert waits.waiting(61.0) is None
    assert not waits.end(62.0)


def test_who_has_not_answered_is_as_of_the_report() -> None:
    missing = [1, 4]
    waits = after(0.1)
    waits.begin("round", 12, 0.0, lambda: (missing, ()))
    assert waits.look(3.0)
    missing.remove(1)
    assert waits.waiting(4.0) == Waiting(12, 4.0, (4,))


def test_who_has_answered_since_is_not_blamed_until_the_next_report() -> None:
    zones, devices = [1, 4], ["u1", "u2"]
    waits = after(0.1)
    waits.begin("round", 12, 0.0, lambda: (zones, devices))
    assert waits.look(3.0)
    assert waits.due == 3.0 + AGAIN
    assert not waits.look(4.0), "nothing but time"
    zones.remove(1)
    assert not waits.look(4.5), "not at every answer of many"
    assert waits.look(5.0)
    devices.remove("u1")
    assert waits.look(6.0)
    assert not waits.look(7.0)


def test_of_many_devices_a_few_are_named_and_the_others_counted() -> None:
    devices = [f"u{number}" for number in range(100_000)]
    waits = after(0.1, who=nobody)
    waits.begin("round", 12, 0.0, lambda: ((), devices))
    assert waits.look(3.0)
    assert waits.waiting(4.0) == Waiting(12, 4.0, (), tuple(devices[:NAMED]), 100_000 - NAMED)
    devices.pop()
    assert waits.look(4.0), "one fewer"


def test_a_usual_wait_is_never_told() -> None:
    waits = after(2.0)
    waits.begin("round", 2, 0.0, a_peer)
    assert not waits.look(7.9)
    assert not waits.end(7.9)


@pytest.mark.parametrize(
    ("lasted", "seconds"),
    [
        ((), FIRST * 60.0),
        ((0.01,), LEAST),
        ((2.0, 2.0, 2.0), 8.0),
        ((2.0, 2.0, 2.0, 2.0, 60.0), 8.0),  # one that had to wait
        ((2.0,) * 9 + (60.0,) * 5, 240.0),  # they have become slow
        ((60.0,) * 9 + (2.0,) * 5, 8.0),
    ],
)
def test_what_is_usual_is_what_most_of_the_last_rounds_took(lasted: tuple[float, ...], seconds: float) -> None:
    assert patience(after(*lasted)) == pytest.approx(seconds)


def test_evaluations_take_their_own_time() -> None:
    waits = after(0.1)
    waits.begin("evaluation", 1, 0.0, nobody)
    assert waits.due == FIRST * waits.deadline
    waits.end(1.0)
    assert patience(waits) == LEAST


def test_a_first_round_has_half_of_the_runs_deadline() -> None:
    """Where a round takes long, nobody would know in the first one."""
    waits = Waits()
    for deadline, seconds in ((120.0, 60.0), (10.0, 5.0), (1.0, LEAST)):
        waits.deadline = deadline
        assert patience(waits) == seconds


def test_who_is_asked_may_be_at_its_evaluation() -> None:
    waits = after(5.0, 60.0, kind="evaluation", who=nobody, waits=after(0.5))
    assert patience(waits) == 10.0
    assert patience(after(0.3, 0.3, kind="evaluation", who=nobody, waits=after(0.5))) == LEAST


def test_rounds_that_draw_nobody_say_nothing_of_the_others() -> None:
    waits = after(*(0.1,) * 9, who=nobody, waits=after(6.0))
    assert patience(waits) == 24.0
    assert patience(waits, nobody) == LEAST


def test_a_process_that_stood_still_begins_to_wait_anew() -> None:
    """Answers came while it did, perhaps: they are read first."""
    waits = after(0.1)
    waits.begin("round", 2, 0.0, a_peer)
    assert not waits.look(20.0)
    assert waits.due == 23.0
    assert waits.look(23.0)


def test_the_alarm_looks_when_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST", 0.05)

    async def see() -> None:
        waits, told = Waits(), asyncio.Event()
        alarm = Alarm(waits, told.set)
        for round in range(3):
            with alarm.set("round", round, a_peer):
                await asyncio.sleep(0)
        assert not told.is_set()
        alarm.off()  # and on again
        with alarm.set("round", 3, lambda: ((7,), ())):  # sooner than the first one's patience would end
            async with asyncio.timeout(4):
                await told.wait()
            found = waits.waiting(time.monotonic())
            assert found is not None
            assert (found.round, found.zones) == (3, (7,))
            told.clear()
        assert told.is_set(), "it is over"
        alarm.off()

    run_async(see())


def test_many_short_rounds_set_one_timer() -> None:
    async def see() -> None:
        loop = asyncio.get_running_loop()
        made = []
        plain = loop.call_at

        def counted(*given: object, **more: object) -> asyncio.TimerHandle:
            made.append(given)
            return plain(*given, **more)  # type: ignore[arg-type]

        loop.call_at = counted  # type: ignore[method-assign]
        alarm = Alarm(Waits(), lambda: None)
        for round in range(1000):
            with alarm.set("round", round, nobody):
                pass
        alarm.off()
        assert len(made) == 2, "of the first one's patience, and of what is usual"

    run_async(see())
