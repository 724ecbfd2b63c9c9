"""Which zone was meant by a name that is none."""

import pytest

from device.sources.kept_zones import kept_zones
from device.sources.zone_name import meant_zone, or_meant, zones_or_meant
from sgfusion.errors import DataError
from sgfusion.runfile import Zones


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Old Town", "Old-Town"),
        ("old town", "Old-Town"),
        ("Harbor", "Harbour"),
        ("HARBOUR", "Harbour"),
        ("town 1", "town-1"),
        ("New Town", None),
        ("town-3", None),  # numbers are not misspelt
        ("moon", None),
        ("", None),
    ],
)
def test_as_the_data_has_it_in_other_case_or_misspelt(given: str, meant: str | None) -> None:
    there = ("Harbour", "Old-Town", "town-1", "town-2")
    assert meant_zone(given, there) == meant
    asked = f"; did you mean {meant!r}?" if meant else ""
    assert or_meant(given, there) == asked
    assert zones_or_meant(given, there) == "Harbour, Old-Town, town-1, town-2" + asked


@pytest.mark.parametrize(
    ("given", "meant"),
    [("north-east", None), ("north-wst", "north-west"), ("nort-west", "north-west"), ("northwest", "north-west")],
)
def test_another_word_is_another_zone(given: str, meant: str | None) -> None:
    assert meant_zone(given, ("north-west", "south")) == meant


def test_a_zone_that_a_run_names_and_nobody_has() -> None:
    sizes = {"Harbour": 4, "Old-Town": 4}
    with pytest.raises(DataError, match=r"has 'Harbour', 'Old-Town'; did you mean 'Harbour'\?$"):
        kept_zones(sizes, sizes, Zones(names=("Harbor",)))
