"""Models are chosen on the validation split, never on test (method 9, "Measures")."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.evaluation import Choice, Metric, Point, Score, pooled

RMSE = Metric("RMSE", "", root=True, lower_is_better=True)
ACCURACY = Metric("accuracy", "", root=False, lower_is_better=False)
Pair = tuple[float, int]


def point(round: int, validation: Pair | dict[str, Pair], test: Pair = (0.0, 0)) -> Point:
    given_ = validation if isinstance(validation, dict) else {"ash": validation}
    return Point(round, {zone: Score(*pair) for zone, pair in given_.items()}, {"ash": Score(*test)})


def chosen(metric: Metric, points: Sequence[Point]) -> int:
    choice: Choice[int] = Choice(metric)
    for each in points:
        choice.offer(each, each.round)
    assert choice.points == list(points)
    assert choice.kept == choice.round
    return choice.round


# The choice


def test_the_best_on_validation_is_kept_whatever_the_test_scores_are() -> None:
    points = [point(0, (9.0, 1), (1.0, 1)), point(10, (4.0, 1), (100.0, 1)), point(20, (5.0, 1), (0.0, 1))]
    assert chosen(RMSE, points) == 10
    assert chosen(ACCURACY, points) == 0


def test_the_earliest_among_equals_is_kept() -> None:
    assert chosen(RMSE, [point(0, (9.0, 1)), point(10, (4.0, 2)), point(20, (2.0, 1)), point(30, (6.0, 3))]) == 10
    assert chosen(ACCURACY, [point(0, (1.0, 4)), point(10, (3.0, 4)), point(20, (6.0, 8))]) == 10


def test_of_accuracy_the_higher_is_the_better() -> None:
    assert chosen(ACCURACY, [point(0, (1.0, 4)), point(10, (0.0, 4)), point(20, (2.0, 4)), point(30, (1.0, 4))]) == 20
    assert chosen(ACCURACY, [point(0, (0.0, 4)), point(10, (0.0, 4))]) == 0


def test_without_validation_samples_the_last_is_kept() -> None:
    points = [point(0, (0.0, 0), (1.0, 1)), point(10, (0.0, 0), (0.5, 1)), point(20, (0.0, 0), (9.0, 1))]
    assert chosen(RMSE, points) == 20
    assert chosen(ACCURACY, points) == 20
    assert chosen(RMSE, [point(number, {}) for number in (0, 5)]) == 5


def test_a_zone_without_validation_samples_does_not_stop_the_others_from_choosing() -> None:
    points = [
        point(number, {"ash": (error, 2), "birch": (0.0, 0)}) for number, error in ((0, 5.0), (10, 1.0), (20, 3.0))
    ]
    assert chosen(RMSE, points) == 10


@pytest.mark.parametrize("metric", [RMSE, ACCURACY])
def test_a_model_whose_score_is_no_number_is_never_chosen_over_one_that_has_one(metric: Metric) -> None:
    """A diverging model overflows before its weights do: NaN of samples that there are is not "no samples"."""
    for broken in (math.nan, math.inf if metric.lower_is_better else -math.inf):
        assert chosen(metric, [point(0, (9.0, 1)), point(10, (broken, 1))]) == 0
        last = (4.0 if metric.lower_is_better else 40.0, 1)
        assert chosen(metric, [point(0, (9.0, 1)), point(10, (broken, 1)), point(20, last)]) == 20
        worse = (50.0 if metric.lower_is_better else 2.0, 1)
        assert chosen(metric, [point(0, (9.0, 1)), point(10, (broken, 1)), point(20, worse)]) == 0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=8), st.booleans())
def test_the_choice_is_that_of_the_validation_scores_alone(scores: list[tuple[float, float]], lower: bool) -> None:
    metric = Metric("x", "", root=False, lower_is_better=lower)
    points = [point(number, (ours, 1), (theirs, 1)) for number, (ours, theirs) in enumerate(scores)]
    best = (min if lower else max)(ours for ours, _ in scores)
    assert chosen(metric, points) == [ours for ours, _ in scores].index(best)


def test_nothing_offered_is_nothing_kept() -> None:
    with pytest.raises(AssertionError, match="nothing was offered"):
        _ = Choice[int](RMSE).kept


def test_an_offer_says_whether_it_is_now_the_chosen_one() -> None:
    choice: Choice[int] = Choice(RMSE)
    offers = [choice.offer(point(number, (error, 1)), number) for number, error in enumerate((4.0, 9.0, 1.0, 1.0))]
    assert offers == [True, False, True, False]


# Scores


def test_a_metric_is_the_mean_of_its_scores_or_the_root_of_that() -> None:
    assert (RMSE.value(8.0, 2), ACCURACY.value(3.0, 4)) == (2.0, 0.75)
    assert math.isnan(RMSE.value(0.0, 0))


def test_the_pooled_measure_is_over_labels_not_over_zones() -> None:
    scores = {"ash": Score(8.0, 2), "birch": Score(1.0, 7), "cedar": Score(0.0, 0)}
    assert pooled(RMSE, scores) == 1.0
    assert pooled(ACCURACY, scores) == 1.0
    assert pooled(ACCURACY, {"ash": Score(1.0, 4), "birch": Score(3.0, 4)}) == 0.5
    assert math.isnan(pooled(RMSE, {}))
    assert math.isnan(pooled(RMSE, {"cedar": Score(0.0, 0)}))
