"""Classes."""

import math

import numpy as np
import pytest
import torch

from device.batch import batch_of
from device.learner import Learner
from device.samples import Samples
from device.tasks.activity import Options, make_task
from sgfusion.errors import DataError, RunFileError
from sgfusion.histogram import label_mass
from sgfusion.runfile import parse_run_file
from tests.run_files import BASE

TASK = make_task(Options(classes=3))


def samples(x: tuple[int, ...], *labels: float) -> Samples:
    return Samples(np.ones(x, np.float32), np.array(labels, np.float32))


def test_losses_are_cross_entropy_and_scores_are_hits() -> None:
    output = torch.tensor([[0.0, 0.0, 0.0], [math.log(6), 0.0, math.log(3)], [0.0, 1.0, 0.0]])
    y = torch.tensor([2.0, 0.0, 1.0])
    chance = [1 / 3, 6 / 10, math.e / (math.e + 2)]
    assert TASK.losses(output, y).tolist() == pytest.approx([-math.log(p) for p in chance])
    assert TASK.scores(output, y).tolist() == [0.0, 1.0, 1.0]
    assert TASK.metric.value(2.0, 4) == 0.5
    assert not TASK.metric.lower_is_better


def test_a_class_is_its_own_bin() -> None:
    assert label_mass(np.array([0.0, 2.0, 2.0]), TASK.edges).tolist() == [1.0, 0.0, 2.0]


def test_features_are_as_many_as_the_data_has() -> None:
    for features in (1, 4, 9):
        assert Learner(make_task(Options(classes=3, hidden=5)), samples((1, features), 0)).size == features * 5 + 5 + 18
    assert Learner(TASK, samples((1, 4), 0)).size == 4 * 32 + 32 + 32 * 3 + 3


def test_one_step_is_the_same_as_none_and_a_sequence_is_the_mean_of_its_steps() -> None:
    model = TASK.build(4, 0)
    x = torch.arange(24.0).reshape(2, 3, 4) - 12
    with torch.no_grad():
        assert torch.allclose(model(x[:, :1], None), model(x[:, 0], None))
        assert torch.allclose(model(x, None), torch.stack([model(x[:, t], None) for t in range(3)]).mean(0), atol=1e-5)


@pytest.mark.parametrize("label", [3.0, -1.0, 0.5, 2.0000002])
def test_a_label_that_is_no_class_is_named(label: float) -> None:
    with pytest.raises(DataError, match=rf"sample 1 has label {label:g}: with task.classes = 3, .* from 0 to 2"):
        TASK.check(samples((2, 4), 0, label))


@pytest.mark.parametrize(
    ("x", "y", "got"),
    [
        ((2,), (2,), r"x\[N, F\] or x\[N, T, F\], not x\[2\]"),
        ((2, 0, 4), (2,), r"not x\[2, 0, 4\]"),
        ((2, 0), (2,), r"not x\[2, 0\]"),
        ((2, 3, 4), (2, 3), r"y\[N\], one class a sample, not y\[2, 3\]"),
    ],
)
def test_samples_of_another_shape(x: tuple[int, ...], y: tuple[int, ...], got: str) -> None:
    with pytest.raises(DataError, match=got):
        TASK.check(Samples(np.zeros(x, np.float32), np.zeros(y, np.float32)))


def test_classes_are_a_matter_of_the_run_file() -> None:
    from device.tasks.task import load_task

    for overrides in ((), ("task.classes=0",), ("task.classes=2.5",)):
        with pytest.raises(RunFileError, match=r"task\.classes"):
            load_task(parse_run_file(BASE, ("task.name=activity", *overrides)))


def test_features_are_taken_as_they_are() -> None:
    given = samples((2, 4), 0, 1)
    assert TASK.scale(given) is given


@pytest.mark.parametrize("steps", [(), (5,)])
def test_it_learns(steps: tuple[int, ...]) -> None:
    labels = np.arange(30) % 3
    x = np.zeros((30, *steps, 4), np.float32)
    x[np.arange(30), ..., labels] = 1
    data = Samples(x, labels.astype(np.float32))
    TASK.check(data)
    learner, batch = Learner(TASK, data), batch_of(data)
    theta = learner.initial(0)
    for _ in range(40):
        theta = theta - np.float32(0.5) * learner.gradient(theta, batch)
    assert learner.evaluate(theta, batch) == (30.0, 30)
