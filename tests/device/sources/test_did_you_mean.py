"""Which name was meant by one that is not there."""

import pytest

from device.sources.did_you_mean import did_you_mean


@pytest.mark.parametrize(
    ("name", "there", "meant"),
    [
        ("kWh_used", ("house_id", "kwh", "town"), "kwh"),  # by letters alone house_id is nearer
        ("kwh", ("house_id", "kWh_used", "town"), "kWh_used"),
        ("KWHS", ("WS", "kwh"), "kwh"),
        ("MINUTS", ("minutes", "town"), "minutes"),
        ("Y", ("x", "y"), "y"),
        ("y", ("Y", "y_2"), "Y"),
        ("x_1", ("x", "x_2"), "x_2"),
    ],
)
def test_case_does_not_count_and_words_come_before_letters(name: str, there: tuple[str, ...], meant: str) -> None:
    assert did_you_mean(name, there) == f", did you mean {meant!r}?"


@pytest.mark.parametrize("name", ["volume", "", "_"])
def test_of_names_unlike_all_nothing_is_asked(name: str) -> None:
    assert did_you_mean(name, ("house_id", "kwh")) == "."
