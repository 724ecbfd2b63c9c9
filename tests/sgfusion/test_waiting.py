"""Who holds others up, in words."""

from sgfusion.waiting import Waiting, held_up

NAMES = {0: "ash", 1: "birch", 2: "cedar", 3: "elm"}


def test_several_who_wait_for_the_same_one_are_one_line_that_names_it() -> None:
    waiting = {name: Waiting(12, seconds, (1,)) for name, seconds in (("ash", 3.2), ("cedar", 5.4), ("elm", 4.0))}
    assert held_up(waiting, NAMES) == [("birch", "3 zones wait for it, the longest 5 s")]


def test_one_who_waits_is_named() -> None:
    assert held_up({"ash": Waiting(12, 4.0, (1,))}, NAMES) == [("birch", "ash waits 4 s for it in round 12")]


def test_devices_are_named_and_those_who_wait_for_their_zone_come_after_them() -> None:
    waiting = {
        "ash": Waiting(9, 4.0, (1,)),
        "birch": Waiting(7, 6.0, (), ("u1", "u2", "u3", "u4")),
        "cedar": Waiting(9, 4.0, (), ("v1",)),
    }
    assert held_up(waiting, NAMES) == [
        ("birch", "round 7 waits 6 s for its devices u1, u2, u3 and 1 more; ash waits 4 s for it in round 9"),
        ("cedar", "round 9 waits 4 s for its device v1"),
    ]


def test_devices_that_are_only_counted_are_told_with_the_others() -> None:
    named = ("u1", "u2", "u3", "u4")
    (line,) = held_up({"ash": Waiting(7, 6.0, (), named, 96)}, NAMES)
    assert line == ("ash", "round 7 waits 6 s for its devices u1, u2, u3 and 97 more")


def test_the_one_that_most_wait_for_is_first_and_of_whom_more_is_known_nothing() -> None:
    waiting = {"ash": Waiting(1, 4.0, (2, 3)), "birch": Waiting(1, 4.0, (3,)), "cedar": Waiting(1, 4.0, (3, 9))}
    assert [who for who, _ in held_up(waiting, NAMES)] == ["elm", "9", "cedar"]
    assert [who for who, _ in held_up(waiting, NAMES, known={"elm"})] == ["9", "cedar"]
    assert held_up({}, NAMES) == []
