from hypothesis import given
from hypothesis import strategies as st

from edge.turns import Turns


def test_askers_take_turns_and_keep_their_own_order() -> None:
    turns: Turns[str] = Turns()
    for item in ("a1", "a2", "a3", "b1", "c1", "c2"):
        turns.add(item[0], item)
    assert [turns.next() for _ in range(7)] == ["a1", "b1", "c1", "a2", "c2", "a3", None]


def test_one_that_comes_late_waits_for_one_turn_of_each_other_at_most() -> None:
    """A zone's own question is served after one of each peer, however many those have."""
    turns: Turns[str] = Turns()
    for peer in "abc":
        for number in range(100):
            turns.add(peer, f"{peer}{number}")
    turns.add("own", "own")
    assert "own" in [turns.next() for _ in range(4)]


def test_what_nobody_wants_any_more_is_removed() -> None:
    turns: Turns[str] = Turns()
    turns.add("a", "a1")
    turns.add("b", "b1")
    turns.remove("a1")
    turns.remove("nothing")
    assert len(turns) == 1
    assert turns.next() == "b1"


@given(st.lists(st.sampled_from("abcd")))
def test_nothing_is_lost(askers: list[str]) -> None:
    turns: Turns[tuple[str, int]] = Turns()
    for number, asker in enumerate(askers):
        turns.add(asker, (asker, number))
    taken = []
    while (item := turns.next()) is not None:
        taken.append(item)
    assert sorted(taken, key=lambda item: item[1]) == list(zip(askers, range(len(askers)), strict=True))
