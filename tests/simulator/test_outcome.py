"""An outcome written and read again is the same, to the bit."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.errors import DataError
from simulator.outcome import Outcome, Point, Score

count = st.integers(0, 2**60)
finite = st.floats(allow_nan=False)
name = st.text(max_size=5)
scores = st.dictionaries(name, st.builds(Score, finite, count), max_size=3)
points = st.lists(st.builds(Point, count, scores, scores), max_size=4).map(tuple)
outcomes = st.builds(
    Outcome,
    method=name,
    seed=count,
    zone=st.none() | name,
    points=points,
    chosen=count,
    rounds=count,
    parameters=count,
    device_gradients=count,
    bytes_sent=count,
    drawn=st.none() | finite,
    homophily=st.none() | finite,
    diverged=st.none() | name,
)
SCORE = Score(0.1 + 0.2, 7)
PLAIN = Outcome(
    method="sgfusion",
    seed=3,
    zone="ash",
    points=(Point(0, {"ash": SCORE}, {"ash": SCORE}), Point(10, {"ash": Score(1e-320, 1)}, {"ash": Score(5e300, 0)})),
    chosen=10,
    rounds=10,
    parameters=3,
    device_gradients=20,
    bytes_sent=480,
    drawn=1 / 3,
    homophily=None,
)


@given(outcomes)
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    text = outcome.to_json()
    again = Outcome.from_json(text)
    assert again == outcome
    assert again.to_json() == text
    assert Outcome.from_json(text.encode()) == outcome


def test_an_outcome_is_one_line() -> None:
    text = replace(PLAIN, method="a\nb").to_json()
    assert text.endswith("\n")
    assert text.count("\n") == 1


@pytest.mark.parametrize("total", [math.inf, -math.inf, math.nan])
def test_scores_of_models_on_their_way_out_come_back_too(total: float) -> None:
    outcome = replace(PLAIN, points=(Point(0, {"ash": Score(total, 2)}, {}),), chosen=0)
    found = Outcome.from_json(outcome.to_json()).best.validation["ash"].total
    assert found == total or (math.isnan(found) and math.isnan(total))


def test_the_best_is_the_point_of_the_chosen_round() -> None:
    assert PLAIN.best is PLAIN.points[1]
    assert replace(PLAIN, chosen=0).best is PLAIN.points[0]


def without(key: str) -> str:
    document = json.loads(PLAIN.to_json())
    del document[key]
    return json.dumps(document)


def with_points(points: Any) -> str:
    return json.dumps({**json.loads(PLAIN.to_json()), "points": points})


@pytest.mark.parametrize(
    "text",
    [
        "",
        PLAIN.to_json()[:-20],
        "[]",
        "{}",
        "5",
        "null",
        '"text"',
        without("method"),
        without("points"),
        json.dumps({**json.loads(PLAIN.to_json()), "more": 1}),
        with_points(5),
        with_points([5]),
        with_points([{"round": 0, "validation": [], "test": {}}]),
        with_points([{"round": 0, "validation": {"ash": 3}, "test": {}}]),
        with_points([{"round": 0, "validation": {"ash": {"total": 1.0}}, "test": {}}]),
        with_points([{"round": 0, "test": {}}]),
    ],
)
def test_what_is_no_outcome_is_an_error_of_ours_that_says_what_to_do(text: str) -> None:
    with pytest.raises(DataError, match="Remove the file, and the job is done again"):
        Outcome.from_json(text)


def test_bytes_that_are_no_text_are_an_error_of_ours() -> None:
    with pytest.raises(DataError, match="not an outcome of a job"):
        Outcome.from_json(b"\xff\xfe\x00")
