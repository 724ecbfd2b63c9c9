"""Words that several tiers put together from reports."""

import pytest

from sgfusion.reports import by_reason, duration


def test_who_is_missing_is_told_by_reason_and_most_of_all_first() -> None:
    lost = {f"u{n}": "its stream has ended" for n in range(5)}
    assert by_reason({"a": "late", **lost, "z": "late"}) == "u0, u1, u2 and 2 more (its stream has ended); a, z (late)"
    assert by_reason(lost, most=5) == "u0, u1, u2, u3, u4 (its stream has ended)"
    assert by_reason({}) == ""


def test_of_many_reasons_the_commonest_are_told() -> None:
    whys = {**{f"u{n}": f"reason {n}" for n in range(7)}, "v": "reason 5"}
    assert by_reason(whys) == "u5, v (reason 5); u0 (reason 0); u1 (reason 1); and 4 more for other reasons"


@pytest.mark.parametrize(
    ("seconds", "says"), [(0.4, "0 s"), (119, "119 s"), (130, "2 min"), (7300, "2 h"), (7100, "118 min")]
)
def test_durations_are_rough(seconds: float, says: str) -> None:
    assert duration(seconds) == says
