"""Models are chosen on the validation split, never on test (method 9, "Measures")."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.tasks.task import ACCURACY, RMSE_UNITLESS, Metric
from simulator.evaluation import Choice, pooled, zone_point
from simulator.outcome import Point, Score
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import ByHand, near, tiny

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
    assert chosen(RMSE_UNITLESS, points) == 10
    assert chosen(ACCURACY, points) == 0


def test_the_earliest_among_equals_is_kept() -> None:
    assert (
        chosen(RMSE_UNITLESS, [point(0, (9.0, 1)), point(10, (4.0, 2)), point(20, (2.0, 1)), point(30, (6.0, 3))]) == 10
    )
    assert chosen(ACCURACY, [point(0, (1.0, 4)), point(10, (3.0, 4)), point(20, (6.0, 8))]) == 10


def test_of_accuracy_the_higher_is_the_better() -> None:
    assert chosen(ACCURACY, [point(0, (1.0, 4)), point(10, (0.0, 4)), point(20, (2.0, 4)), point(30, (1.0, 4))]) == 20
    assert chosen(ACCURACY, [point(0, (0.0, 4)), point(10, (0.0, 4))]) == 0


def test_without_validation_samples_the_last_is_kept() -> None:
    points = [point(0, (0.0, 0), (1.0, 1)), point(10, (0.0, 0), (0.5, 1)), point(20, (0.0, 0), (9.0, 1))]
    assert chosen(RMSE_UNITLESS, points) == 20
    assert chosen(ACCURACY, points) == 20
    assert chosen(RMSE_UNITLESS, [point(number, {}) for number in (0, 5)]) == 5


def test_a_zone_without_validation_samples_does_not_stop_the_others_from_choosing() -> None:
    points = [
        point(number, {"ash": (error, 2), "birch": (0.0, 0)}) for number, error in ((0, 5.0), (10, 1.0), (20, 3.0))
    ]
    assert chosen(RMSE_UNITLESS, points) == 10


@pytest.mark.parametrize("metric", [RMSE_UNITLESS, ACCURACY])
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
        _ = Choice[int](RMSE_UNITLESS).kept


# Scores


def test_the_pooled_measure_is_over_labels_not_over_zones() -> None:
    scores = {"ash": Score(8.0, 2), "birch": Score(1.0, 7), "cedar": Score(0.0, 0)}
    assert pooled(RMSE_UNITLESS, scores) == 1.0
    assert pooled(ACCURACY, scores) == 1.0
    assert pooled(ACCURACY, {"ash": Score(1.0, 4), "birch": Score(3.0, 4)}) == 0.5
    assert math.isnan(pooled(RMSE_UNITLESS, {}))
    assert math.isnan(pooled(RMSE_UNITLESS, {"cedar": Score(0.0, 0)}))


def test_a_zones_scores_are_sums_over_its_devices_held_out_samples() -> None:
    run = tiny("data.validation=3", "data.test=4")
    world, hand = load_world(run), ByHand(run)
    theta = np.array([0.5, -1.0, 2.0], np.float32)
    for z, zone in enumerate(world.data.zones):
        found = zone_point(world.learner, theta, zone, 7)
        assert found.round == 7
        for split, each, scores in (("validation", 3, found.validation), ("test", 4, found.test)):
            parts = [getattr(device, split) for device in hand.data[z]]
            errors = sum(float(((part.x.astype(np.float64) @ theta - part.y) ** 2).sum()) for part in parts)
            assert scores.keys() == {zone.name}
            assert scores[zone.name].count == each * len(parts)
            assert near(scores[zone.name].total, errors, 1e-5)


# In a run


def test_a_run_keeps_the_round_that_validation_chooses_where_test_would_choose_another() -> None:
    """Both splits of each zone are small and noisy, so that in some zones they choose different rounds."""
    run = tiny("data.validation=1", "data.test=2", "data.noise=1.5", rounds=40)
    differ = 0
    for zone in run.zones.names:
        trained = train(run, "sgeofl", zone)
        outcome = trained.outcome
        by_validation = [pooled(RMSE_UNITLESS, each.validation) for each in outcome.points]
        by_test = [pooled(RMSE_UNITLESS, each.test) for each in outcome.points]
        assert outcome.chosen == int(np.argmin(by_validation))
        differ += int(np.argmin(by_test)) != outcome.chosen
        again = tiny("data.validation=1", "data.test=2", "data.noise=1.5", rounds=max(1, outcome.chosen))
        if outcome.chosen:
            hand = ByHand(again).trajectory(run.zones.names.index(zone), ())[-1]
            assert near(trained.models[zone], hand, 1e-4)
    assert differ


def test_a_central_run_chooses_by_all_zones_together() -> None:
    run = tiny("data.validation=1", "data.test=2", "data.noise=1.5", rounds=40)
    for method in ("fedavg", "ifca", "fedsem", "feddelta"):
        outcome = train(run, method, None).outcome
        assert outcome.chosen == int(np.argmin([pooled(RMSE_UNITLESS, each.validation) for each in outcome.points]))
