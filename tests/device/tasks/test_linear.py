"""Ridge regression, by hand."""

import numpy as np
import pytest

from device.batch import batch_of
from device.learner import Learner, Vector
from device.samples import Samples
from device.tasks.linear import Options, make_task
from device.tasks.task import load_task
from sgfusion.errors import DataError, RunFileError
from sgfusion.runfile import parse_run_file
from tests.run_files import BASE

RIDGE = make_task(Options(l2=0.5))


def samples(*rows: tuple[list[float], float]) -> Samples:
    return Samples(np.array([x for x, _ in rows], np.float32), np.array([y for _, y in rows], np.float32))


def weights(*numbers: float) -> Vector:
    return np.array(numbers, np.float32)


TWO = samples(([1, 2], 1), ([3, 0], 0))


def test_weights_begin_at_0() -> None:
    assert Learner(RIDGE, TWO).initial(7).tolist() == [0.0, 0.0]


def test_losses_and_gradient_by_hand() -> None:
    learner, batch, theta = Learner(RIDGE, TWO), batch_of(TWO), weights(2, -1)
    # x·w - y is -1 and 6; ||w||² is 5, so the ridge is 1.25
    assert learner.losses(theta, batch).tolist() == [0.5 + 1.25, 18 + 1.25]
    # mean of -1 (1, 2) and 6 (3, 0), and half of w
    assert learner.gradient(theta, batch).tolist() == [8.5 + 1, -1 - 0.5]
    assert learner.evaluate(theta, batch) == (37.0, 2)


def test_the_ridge_counts_once_whatever_the_chunks() -> None:
    learner, batch, theta = Learner(RIDGE, TWO), batch_of(TWO), weights(2, -1)
    learner._chunk = 1
    assert learner.gradient(theta, batch).tolist() == [9.5, -1.5]
    assert learner.losses(theta, batch).tolist() == [1.75, 19.25]


def test_each_device_counts_the_same_and_so_does_its_ridge() -> None:
    one, three = samples(([1], 0)), samples(([1], 3), ([1], 3), ([1], 3))
    learner = Learner(RIDGE, one)
    # mean over devices of w and w - 3 at w = 2, and half of w
    assert learner.gradient(weights(2), batch_of(one, three)) == pytest.approx([0.5 + 1])


def test_without_a_ridge_there_is_no_penalty() -> None:
    plain = make_task(Options(l2=0.0))
    assert plain.penalty is None
    assert Learner(plain, TWO).gradient(weights(2, -1), batch_of(TWO)).tolist() == [8.5, -1]


def test_a_bias_is_one_weight_more_and_has_its_ridge() -> None:
    learner = Learner(make_task(Options(l2=0.5, bias=True)), TWO)
    assert learner.initial(0).tolist() == [0, 0, 0]
    # x·w + b - y is 1 and 8
    assert learner.losses(weights(2, -1, 2), batch_of(TWO)).tolist() == [0.5 + 2.25, 32 + 2.25]
    assert learner.gradient(weights(2, -1, 2), batch_of(TWO)).tolist() == [12.5 + 1, 1 - 0.5, 4.5 + 1]


def test_gradient_descent_reaches_the_solution_of_the_linear_system() -> None:
    learner, batch, theta = Learner(RIDGE, TWO), batch_of(TWO), weights(0, 0)
    x, y = TWO.x.astype(np.float64), TWO.y.astype(np.float64)
    solution = np.linalg.solve(x.T @ x / 2 + 0.5 * np.eye(2), x.T @ y / 2)
    for _ in range(200):
        theta = theta - np.float32(0.15) * learner.gradient(theta, batch)
    assert theta == pytest.approx(solution, abs=1e-6)


def test_bins_are_options() -> None:
    assert RIDGE.edges.tolist() == list(range(-15, 16, 2))
    assert make_task(Options(low=0, high=1, bins=4)).edges.tolist() == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("task.l2=-0.1", r"task\.l2"),
        ("task.l2=inf", r"task\.l2"),
        ("task.low=20", r"low = 20\.0 is not below high = 15\.0"),
        ("task.bins=0", r"task\.bins"),
    ],
)
def test_options_that_make_no_task(override: str, named: str) -> None:
    with pytest.raises(RunFileError, match=named):
        load_task(parse_run_file(BASE, [override]))


@pytest.mark.parametrize(
    ("x", "y", "got"),
    [
        ((2, 3, 4), (2,), r"x\[N, F\], not x\[2, 3, 4\]"),
        ((2, 0), (2,), r"x\[N, F\], not x\[2, 0\]"),
        ((2, 4), (2, 3), r"y\[N\], one label a sample, not y\[2, 3\]"),
    ],
)
def test_samples_of_another_shape(x: tuple[int, ...], y: tuple[int, ...], got: str) -> None:
    with pytest.raises(DataError, match=got):
        RIDGE.check(Samples(np.zeros(x, np.float32), np.zeros(y, np.float32)))
