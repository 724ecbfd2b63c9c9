import math

import pytest

from console import formats
from console.report.measure import Measure
from simulator.outcome import Score
from tests.console.report.fake_suite import ACCURACY, RMSE


def test_the_measure_is_the_root_of_the_mean_or_the_mean() -> None:
    rmse, accuracy = Measure.of(RMSE), Measure.of(ACCURACY)
    assert (rmse.value(Score(36.0, 4)), accuracy.value(Score(3.0, 4))) == (3.0, 0.75)
    assert math.isnan(rmse.value(Score(0.0, 0)))
    assert rmse.pooled([Score(36.0, 4), Score(0.0, 0), Score(60.0, 2)]) == 4.0
    assert (rmse.label, accuracy.label) == ("RMSE (bpm)", "accuracy")


def test_what_is_better_costs_less() -> None:
    rmse, accuracy = Measure.of(RMSE), Measure.of(ACCURACY)
    assert rmse.cost(1.0) < rmse.cost(2.0) < rmse.cost(math.nan) == math.inf
    assert accuracy.cost(0.9) < accuracy.cost(0.8) < accuracy.cost(math.nan) == math.inf
    assert [rmse.gain(9.0, 10.0), accuracy.gain(0.9, 0.8)] == pytest.approx([0.1, 0.125])
    assert math.isnan(rmse.gain(math.inf, 1.0))


@pytest.mark.parametrize(
    ("value", "text"),
    [(20.041, "20.04"), (9.99951, "10.000"), (0.1234, "0.123"), (None, "–"), (math.nan, "–"), (math.inf, "∞")],
)
def test_numbers(value: float | None, text: str) -> None:
    assert formats.number(value) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(1.0, "1.0"), (0.03125, "0.031"), (0.5, "0.50"), (0.00049, "0.00049"), (4.7e-10, "4.7e-10"), (None, "–")],
)
def test_p_values_have_two_digits(p: float | None, text: str) -> None:
    assert formats.p_value(p) == text


def test_the_deviation_is_the_samples() -> None:
    assert formats.deviation([1.0, 2.0, 3.0]) == 1.0
    assert formats.deviation([1.0]) is None
    assert formats.spread([19.0, 20.0, 21.0]) == "20.00 ± 1.00"
    assert formats.spread([0.5]) == "0.500"
    assert formats.spread([1.0, math.inf]) == "∞"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_960, "1 MB"), (4_076_800_000, "4.08 GB")]
)
def test_bytes(count: int, text: str) -> None:
    assert formats.size(count) == text


def test_lists_and_names_of_files() -> None:
    assert formats.listed(["a"]) == "a"
    assert formats.listed(["a", "b", "c"]) == "a, b and c"
    assert formats.listed(["a", "b", "c", "d"], 3) == "a, b and 2 more"
    assert formats.file_stem("Zones won", "top-k: 3/5") == "zones-won-top-k-3-5"


def test_one_is_one_and_more_are_many() -> None:
    assert [formats.counted(n, "job") for n in (0, 1, 2, 1432)] == ["0 jobs", "1 job", "2 jobs", "1,432 jobs"]


def test_sentences_end_once() -> None:
    assert formats.sentences("it is away", "", "is it there?", "try again") == "it is away. is it there? try again"
    assert formats.sentences("", "") == ""
    assert formats.sentences("one.") == "one."
