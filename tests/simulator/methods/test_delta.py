"""DELTA's draws: `p_i ∝ sqrt(α1 ‖∇F_i - ∇f‖² + α2 σ_i²)`, reweighted by `1/(n p_i)` (method 9)."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sgfusion.runfile import Baselines
from simulator.methods import delta
from tests.simulator.tiny import luck, pick

Floats = npt.NDArray[np.float64]
number = st.floats(-(2.0**50), 2.0**50, width=32)


def rows(*values: list[float]) -> npt.NDArray[np.float32]:
    return np.array(values, np.float32)


def test_chances_by_hand() -> None:
    gradients = rows([3, 0], [0, 0], [0, 3])  # their mean is (1, 1)
    variances = np.array([1.0, 6.0, 3.0])
    both = [math.sqrt(0.5 * 5 + 0.5 * 1), math.sqrt(0.5 * 2 + 0.5 * 6), math.sqrt(0.5 * 5 + 0.5 * 3)]
    for settings, worth in (
        (Baselines(), both),
        (Baselines(alpha1=1.0, alpha2=0.0), [math.sqrt(5), math.sqrt(2), math.sqrt(5)]),
        (Baselines(alpha1=0.0, alpha2=4.0), [2.0, 2 * math.sqrt(6), 2 * math.sqrt(3)]),
    ):
        chances = delta.probabilities(gradients, variances, settings)
        assert chances.tolist() == pytest.approx([number / sum(worth) for number in worth])


def test_clients_that_are_all_alike_are_drawn_alike() -> None:
    for gradients in (rows([1, 2], [1, 2], [1, 2]), rows([0, 0], [0, 0])):
        chances = delta.probabilities(gradients, np.zeros(len(gradients)), Baselines())
        assert chances.tolist() == [1 / len(gradients)] * len(gradients)
    off = Baselines(alpha1=0.0, alpha2=0.0)
    assert delta.probabilities(rows([1, 2], [5, 0]), np.ones(2), off).tolist() == [0.5, 0.5]


def test_a_single_client_is_always_drawn() -> None:
    for variance in (0.0, 3.0):
        chances = delta.probabilities(rows([1, 2]), np.array([variance]), Baselines())
        times = delta.draw(chances, 4, 1, "test", 2)
        assert (chances.tolist(), times.tolist(), delta.reweighted(chances, times).tolist()) == ([1.0], [4], [1.0])


def test_draws_are_with_replacement_and_by_the_luck_of_their_place() -> None:
    chances = np.array([0.1, 0.0, 0.6, 0.3])
    for place in range(20):
        expected = [0] * 4
        for number in luck(9, "test", place, 3, count=5):
            expected[pick(chances, number)] += 1
        assert delta.draw(chances, 5, 9, "test", place, 3).tolist() == expected


def test_a_draw_has_its_law() -> None:
    chances = np.array([0.1, 0.2, 0.7])
    times = np.array([delta.draw(chances, 2, 3, "test", place) for place in range(4000)])
    assert (times.sum(axis=1) == 2).all()
    assert times.mean(axis=0) / 2 == pytest.approx(chances, abs=0.025)
    assert (times == 2).mean(axis=0) == pytest.approx(chances**2, abs=0.03)  # with replacement


def test_weights_by_hand() -> None:
    weights = delta.reweighted(np.array([0.1, 0.2, 0.7, 0.0]), np.array([0, 3, 1, 0]))
    assert weights.tolist() == pytest.approx([0.0, 3 / (4 * 0.2 * 4), 1 / (4 * 0.7 * 4), 0.0])


@pytest.mark.parametrize("count", [1, 3])
def test_the_reweighted_aggregate_is_unbiased(count: int) -> None:
    """Weights whose expectation is `1/N` each, whatever the chances: any aggregate is then unbiased."""
    chances = np.array([0.05, 0.2, 0.3, 0.45])
    draws = 6000
    weights = np.array(
        [delta.reweighted(chances, delta.draw(chances, count, 7, "test", place)) for place in range(draws)]
    )
    errors = np.sqrt(((1 / chances - 1) / 16 / count) / draws)  # of a mean of binomial counts
    assert (np.abs(weights.mean(axis=0) - 0.25) < 5 * errors).all()
    assert weights.std(axis=0) == pytest.approx(errors * math.sqrt(draws), rel=0.15)


@given(
    arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=number),
    st.floats(0, 1e10),
    st.integers(0, 2**32),
)
def test_chances_are_chances_and_draws_are_of_clients_that_have_one(
    gradients: npt.NDArray[np.float32], variance: float, place: int
) -> None:
    variances = variance * np.arange(len(gradients), dtype=np.float64)
    chances = delta.probabilities(gradients, variances, Baselines())
    assert (chances >= 0).all()
    assert chances.sum() == pytest.approx(1)
    times = delta.draw(chances, 7, 1, "test", place)
    weights = delta.reweighted(chances, times)
    assert times.sum() == 7
    assert (chances[times > 0] > 0).all()
    assert np.isfinite(weights).all()
    assert ((weights > 0) == (times > 0)).all()
