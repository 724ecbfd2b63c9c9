from sgfusion.wire.repeats import Repeats


def test_the_first_is_told_then_one_a_minute_with_how_many_were_not() -> None:
    repeats = Repeats(every=60.0)
    assert repeats.told("away", 0.0) == 0
    assert [repeats.told("away", now) for now in (0.0, 1.0, 59.9)] == [None] * 3
    assert repeats.told("away", 60.0) == 3
    assert repeats.told("away", 61.0) is None
    assert repeats.told("away", 500.0) == 1
    assert repeats.told("away", 900.0) == 0


def test_each_kind_counts_for_itself() -> None:
    repeats = Repeats()
    assert repeats.told("away", 0.0) == 0
    assert repeats.told("odd", 1.0) == 0
    assert repeats.told("away", 2.0) is None


def test_kinds_that_somebody_makes_up_take_no_more_room_than_is_set_aside() -> None:
    repeats = Repeats(most=3)
    for kind in "abcd":
        assert repeats.told(kind, 0.0) == 0
    assert repeats.told("d", 1.0) is None
    assert repeats.told("a", 1.0) == 0, "forgotten, so it is new"
