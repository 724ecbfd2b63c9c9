"""Waiting and trying again, without a clock."""

import asyncio
from collections.abc import Callable

import pytest

from sgfusion.errors import IdentityError, UnavailableError
from sgfusion.wire.channel import backoff, retrying


def test_the_bound_doubles_up_to_the_most() -> None:
    assert [backoff(attempt, lambda: 1.0) for attempt in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert backoff(3, lambda: 1.0, first=1.0, most=60.0) == 8.0
    assert backoff(100_000, lambda: 1.0) == 5.0


def test_it_is_anywhere_below_the_bound() -> None:
    assert [backoff(2, lambda: share) for share in (0.0, 0.25, 0.5)] == [0.0, 0.1, 0.2]  # noqa: B023 (called at once)


class World:
    """A clock that only sleeping and calling move."""

    def __init__(self, answers: list[Callable[[], str]], takes: float = 0.0) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self.heard: list[tuple[int, str]] = []
        self._answers = iter(answers)
        self._takes = takes

    async def call(self) -> str:
        self.now += self._takes
        return next(self._answers)()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 9))
        self.now += seconds

    def retry(self, budget: float) -> str:
        return asyncio.run(
            retrying(
                self.call,
                budget_seconds=budget,
                clock=lambda: self.now,
                random=lambda: 1.0,
                sleep=self.sleep,
                failed=lambda attempt, error: self.heard.append((attempt, str(error))),
            )
        )


def fails(error: Exception) -> Callable[[], str]:
    def failing() -> str:
        raise error

    return failing


def test_what_succeeds_is_called_once() -> None:
    world = World([lambda: "answer"])
    assert world.retry(1.0) == "answer"
    assert world.slept == []


def test_unavailable_is_tried_again_until_it_is_there() -> None:
    world = World([fails(UnavailableError("one")), fails(UnavailableError("two")), lambda: "answer"])
    assert world.retry(10.0) == "answer"
    assert world.slept == [0.1, 0.2]
    assert world.heard == [(0, "one"), (1, "two")]


def test_the_last_error_is_raised_when_the_budget_is_spent() -> None:
    world = World([fails(UnavailableError(str(number))) for number in range(9)])
    with pytest.raises(UnavailableError, match=r"^3$"):
        world.retry(0.5)
    assert world.slept == [0.1, 0.2, 0.2]  # the last wait is cut to what is left
    assert world.now == pytest.approx(100.5)


def test_slow_calls_spend_the_budget_too() -> None:
    world = World([fails(UnavailableError(str(number))) for number in range(9)], takes=3.0)
    with pytest.raises(UnavailableError, match=r"^1$"):
        world.retry(4.0)
    assert world.slept == [0.1]


def test_no_budget_is_one_call() -> None:
    world = World([fails(UnavailableError("once")), lambda: "never"])
    with pytest.raises(UnavailableError, match=r"^once$"):
        world.retry(0.0)
    assert world.slept == []


def test_what_will_not_change_is_not_tried_again() -> None:
    world = World([fails(IdentityError("no")), lambda: "never"])
    with pytest.raises(IdentityError, match=r"^no$"):
        world.retry(10.0)
    assert world.slept == []
