"""Rows of rounds and evaluations, the pooled metric, rounds a minute: exact on tiny cases."""

import json
from functools import partial

import pytest

from cloud.page.history import MOST_LEFT_OUT, MOST_ROWS, History, LeftOut, Pace, number, value_of
from sgfusion.evaluation import Metric, Score
from tests.cloud.values import RMSE

MEAN = Metric("error", "", root=False, lower_is_better=True)


def a_history(rounds: int = 20) -> History:
    return History(["ash", "elm"], rounds, every=1)


def rows(history: History) -> dict[str, dict[str, list[list[float | None]]]]:
    found: dict[str, dict[str, list[list[float | None]]]] = json.loads(history.series())
    return found


def test_rows_are_in_the_order_of_rounds() -> None:
    history = a_history()
    history.judge_by(lambda _, drawn: len(list(drawn)) / 3 or None)
    history.add_round("elm", 2, drawn=[], left_out={})
    history.add_round("elm", 1, drawn=["ash"], left_out={0: "late"}, sent=4096)
    history.add_evaluation("elm", 0, 2.0, None, best=True)
    assert rows(history) == {
        "ash": {"evaluations": [], "rounds": []},
        "elm": {
            "evaluations": [[0, 2.0, None, 1]],
            "rounds": [[1, 1, 0.333333333], [2, 0, None]],
        },
    }


def test_a_round_that_is_reported_again_replaces_itself_and_costs_nothing_more() -> None:
    history = a_history()
    assert history.add_round("ash", 1, drawn=["elm"], left_out={1: "late"}, sent=10)
    history.take_news()
    assert not history.add_round("ash", 1, drawn=["elm"], left_out={1: "late"}, sent=10)
    assert not history.news
    assert not history.add_round("ash", 1, drawn=["elm", "fir"], left_out={}, sent=10)
    assert history.news.rounds == {"ash": {1: "[1,2,null]"}}
    assert rows(history)["ash"]["rounds"] == [[1, 2, None]]
    assert (history.bytes_of("ash"), history.bytes_of("elm"), history.bytes) == (10, 0, 10)
    assert history.left_out_of("ash") == {1: LeftOut(1, 1, "late")}


def test_all_rounds_are_judged_by_the_latest_distances_and_told_if_that_changes_them() -> None:
    history = a_history()
    history.judge_by(lambda *_: 1.0)
    history.add_round("ash", 1, drawn=["elm"], left_out={})
    history.add_round("elm", 1, drawn=["ash"], left_out={})
    history.take_news()
    history.judge_by(lambda zone, drawn: 2.0 if (zone, *drawn) == ("ash", "elm") else 1.0)
    assert history.take_news().rounds == {"ash": {1: "[1,1,2.0]"}}
    assert rows(history)["elm"]["rounds"] == [[1, 1, 1.0]]


def test_rounds_are_judged_when_somebody_wants_them_and_not_with_every_plan() -> None:
    history = a_history()
    judged: list[float] = []

    def judge(distance: float, *_: object) -> float:
        judged.append(distance)
        return distance

    history.add_round("ash", 1, drawn=["elm"], left_out={})
    for distance in (1.0, 2.0, 3.0):
        history.judge_by(partial(judge, distance))
        history.drop_news()
    assert judged == []
    assert rows(history)["ash"]["rounds"] == [[1, 1, 3.0]]
    assert rows(history)["ash"]["rounds"] == [[1, 1, 3.0]]
    assert judged == [3.0]


def test_peers_left_out_are_counted_whatever_the_order_in_which_rounds_are_read() -> None:
    history = a_history()
    for round, why in ((7, "late"), (2, "gone"), (3, "away")):
        history.add_round("ash", round, drawn=["elm"], left_out={1: why})
    assert history.left_out_of("ash") == {1: LeftOut(3, 7, "late")}
    assert history.left_out_of("elm") == {}


def test_of_very_many_peers_left_out_those_of_the_latest_rounds_are_known() -> None:
    history = a_history(1000)
    for round in range(1, MOST_LEFT_OUT + 4):
        history.add_round("ash", round, drawn=[], left_out={round: "late"})
    assert list(history.left_out_of("ash")) == list(range(4, MOST_LEFT_OUT + 4))
    history.add_round("ash", 900, drawn=[], left_out={1: "late"})
    assert history.left_out_of("ash")[1] == LeftOut(2, 900, "late")  # of one that was not told of for a while too


def test_rounds_of_before_a_restart_that_come_after_new_ones_count_too() -> None:
    history = History(["ash"], 100, 10)
    for round in (57, *range(1, 58)):
        history.add_round("ash", round, drawn=["elm"], left_out={}, sent=1000)
    assert history.bytes_of("ash") == 57_000


def test_news_are_told_once() -> None:
    history = a_history()
    history.add_round("ash", 1, drawn=[], left_out={})
    history.add_evaluation("elm", 0, 1.0, 2.0, best=False)
    history.add_pooled(0, 1.0, 2.0)
    news = history.take_news()
    assert json.loads(news.series()) == {
        "elm": {"evaluations": [[0, 1.0, 2.0, 0]], "rounds": []},
        "ash": {"evaluations": [], "rounds": [[1, 0, None]]},
    }
    assert news.pooled == {0: "[0,1.0,2.0]"}
    assert not history.take_news()


def test_of_a_long_run_some_rounds_are_drawn_the_first_and_the_last_among_them() -> None:
    rounds = 3 * MOST_ROWS - 1
    history = a_history(rounds)
    for round in range(1, rounds + 1):
        history.add_round("ash", round, drawn=[], left_out={}, sent=1)
    drawn = [row[0] for row in rows(history)["ash"]["rounds"]]
    assert drawn == [1, *range(3, rounds, 3), rounds]
    assert history.bytes_of("ash") == rounds


def test_evaluations_of_a_long_run_likewise() -> None:
    """Every tenth round of 25,000 is 2,500 evaluations: every third of them, and the last."""
    history = History(["ash"], 25_000, every=10)
    for round in range(0, 25_001, 10):
        history.add_evaluation("ash", round, 1.0, 1.0, best=False)
        history.add_scores("ash", round, Score(1.0, 1), Score(1.0, 1))
    history.pool(["ash"], RMSE)
    expected = [*range(0, 25_000, 30), 25_000]
    assert [row[0] for row in rows(history)["ash"]["evaluations"]] == expected
    assert [row[0] for row in json.loads(history.pooled())] == expected


def kept(history: History) -> list[float | None]:
    return [row[0] for row in rows(history)["ash"]["evaluations"]]


def test_of_a_long_run_the_evaluations_of_models_that_were_kept_are_all_there() -> None:
    history = History(["ash"], 25_000, every=10)
    for round in (0, 10, 20, 30, 40):
        history.add_evaluation("ash", round, 1.0, 1.0, best=round in (0, 20))
    assert kept(history) == [0, 20, 30]
    assert list(history.take_news().evaluations["ash"]) == [0, 20, 30]


def test_of_very_many_models_that_were_kept_the_latest_are_there() -> None:
    """Of 10,000 evaluations every tenth, and of those between the last thousand that were the best until then."""
    history = History(["ash"], 10_000, every=1)
    bests = [round for round in range(1, 2000) if round % 10]
    for round in (*bests[500:], *bests[:500]):  # those of before a restart are read while new ones come
        history.add_evaluation("ash", round, 1.0, 1.0, best=True)
    assert kept(history) == bests[-MOST_ROWS:]
    history.take_news()
    history.add_evaluation("ash", 1, 1.0, 1.0, best=True)
    assert not history.news


def test_the_pooled_metric_is_over_labels_at_rounds_that_all_have_evaluated() -> None:
    history = a_history()
    history.add_scores("ash", 0, Score(4.0, 1), Score(0.0, 0))
    history.add_scores("elm", 0, Score(12.0, 3), Score(9.0, 1))
    history.add_scores("ash", 5, Score(1.0, 1), Score(1.0, 1))
    history.pool(["ash", "elm"], RMSE)
    assert json.loads(history.pooled()) == [[0, 2.0, 3.0]]  # √(16/4), √(9/1)
    history.add_scores("elm", 5, Score(3.0, 3), Score(3.0, 3))
    history.pool(["ash", "elm"], RMSE, {5})
    assert json.loads(history.pooled()) == [[0, 2.0, 3.0], [5, 1.0, 1.0]]
    history.pool([], RMSE)
    history.pool(["ash"], None)
    assert len(json.loads(history.pooled())) == 2


def test_numbers_are_ones_that_json_has() -> None:
    assert [number(value) for value in (None, float("nan"), float("inf"), 1.0, 123456.7894)] == [
        None, None, None, 1.0, 123456.789,
    ]  # fmt: skip
    assert value_of(RMSE, [Score(float("nan"), 3)]) is None
    assert value_of(RMSE, []) is None
    assert value_of(MEAN, [Score(1.0, 2), Score(2.0, 2)]) == 0.75
    assert value_of(None, [Score(1.0, 2)]) is None


def test_rounds_a_minute() -> None:
    pace = Pace()
    assert pace.per_minute(100.0, 2) is None
    pace.add(100.0, 2)  # when these began nobody knows
    assert pace.per_minute(101.0, 2) is None  # too soon to tell
    for second in range(101, 111):
        pace.add(second, 2)
    # 20 rounds of 2 zones in 10 s: one round a second
    assert pace.per_minute(110.0, 2) == pytest.approx(60.0)
    assert pace.per_minute(110.0, 0) is None
    assert pace.per_minute(160.0, 2) == pytest.approx(10.0)  # of the last minute, in which they stopped
    assert pace.per_minute(171.0, 2) == 0.0


def test_many_reports_a_second_are_one_entry() -> None:
    pace = Pace()
    pace.add(0.0, 1)
    for step in range(1000):
        pace.add(1.0 + step / 1000, 1)
    assert len(pace._seconds) == 1
    assert pace.per_minute(10.0, 10) == pytest.approx(600.0)
