"""Words that several tiers put together from reports."""

from sgfusion.reports import by_reason


def test_who_is_missing_is_told_by_reason_and_most_of_all_first() -> None:
    lost = {f"u{n}": "its stream has ended" for n in range(5)}
    assert by_reason({"a": "late", **lost, "z": "late"}) == "u0, u1, u2 and 2 more (its stream has ended); a, z (late)"
    assert by_reason(lost, most=5) == "u0, u1, u2, u3, u4 (its stream has ended)"
    assert by_reason({}) == ""
