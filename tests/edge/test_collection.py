"""One question to many devices: in any order of answers the sum is that of the order of ids."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.collection import Question, needed


def question(devices: Sequence[str], quorum: float = 1.0, window: int = 100) -> tuple[Question[str], list[str]]:
    folded: list[str] = []
    return Question(devices, quorum=quorum, window=window, fold=lambda _device, value: folded.append(value)), folded


@pytest.mark.parametrize(
    ("quorum", "devices", "expected"), [(1.0, 4, 4), (0.5, 4, 2), (0.5, 5, 3), (0.01, 3, 1), (0.1, 10, 1), (0.7, 10, 7)]
)
def test_a_quorum_is_a_share_rounded_up(quorum: float, devices: int, expected: int) -> None:
    assert needed(quorum, devices) == expected


def test_answers_are_folded_in_the_order_of_ids() -> None:
    asked, folded = question(["b", "d10", "d2", "a"])
    for device in ("d2", "b", "d10"):
        asked.receive(device, device)
    assert folded == []
    asked.receive("a", "a")
    assert folded == ["a", "b", "d10", "d2"]
    assert asked.enough(late=False, unreliable=())


def test_only_a_window_of_devices_is_asked_at_a_time() -> None:
    asked, folded = question(["a", "b", "c", "d"], window=2)
    assert asked.due() == ("a", "b")
    asked.receive("b", "b")
    assert asked.due() == ("a",)  # b waits to be folded: the window is full
    asked.receive("a", "a")
    assert asked.due() == ("c", "d")
    assert folded == ["a", "b"]


def test_late_it_is_enough_to_have_the_quorum() -> None:
    asked, _ = question(["a", "b", "c", "d"], quorum=0.5)
    asked.receive("a", "a")
    assert not asked.enough(late=True, unreliable=("b", "c", "d"))
    asked.receive("b", "b")
    assert not asked.enough(late=False, unreliable=("c",))
    assert asked.enough(late=False, unreliable=("c", "d"))
    assert asked.enough(late=True, unreliable=())


def test_a_device_that_is_left_out_is_passed_over() -> None:
    asked, folded = question(["a", "b", "c"], quorum=0.5)
    asked.receive("c", "c")
    asked.receive("b", "b")
    asked.leave_out("a", "late")
    assert folded == ["b", "c"]
    assert asked.left_out == {"a": "late"}
    asked.receive("a", "too late")
    assert folded == ["b", "c"]
    assert asked.answered == 2


def test_nobody_left_and_no_quorum_is_hopeless() -> None:
    asked, _ = question(["a", "b"])
    asked.receive("a", "a")
    before = asked.hopeless
    asked.leave_out("b", "cannot")
    assert (before, asked.hopeless) == (False, True)
    assert not asked.enough(late=True, unreliable=())


@given(st.data())
def test_whatever_the_order_the_fold_is_sorted_and_the_window_holds(data: st.DataObject) -> None:
    devices = data.draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=12, unique=True))
    window = data.draw(st.integers(1, 13))
    asked, folded = question(devices, quorum=0.01, window=window)
    gone = set()
    while asked.owing:
        due = asked.due()
        assert due
        device = data.draw(st.sampled_from(due))
        if data.draw(st.booleans()):
            asked.receive(device, device)
        else:
            gone.add(device)
            asked.leave_out(device, "x")
        waiting = asked.answered - len(folded)
        assert waiting < window
    assert folded == sorted(set(devices) - gone)


def test_a_device_is_newly_due_once() -> None:
    asked, _ = question(["a", "b", "c", "d"], window=2)
    assert asked.newly_due() == ("a", "b")
    assert asked.newly_due() == ()
    asked.receive("a", "a")
    assert asked.newly_due() == ("c",)
    asked.leave_out("d", "it has gone")
    asked.receive("b", "b")
    assert asked.newly_due() == ()
    assert asked.due() == ("c",)  # who joins again is asked for all that is due
