"""Many owners' gradients in one pass are those of a pass for each."""

import numpy as np
import pytest
import torch

from device.batch import Batch, batch_of
from device.learner import Learner
from device.samples import Samples
from device.stack import Stack
from device.tasks import activity, flights, linear
from device.tasks.task import Task


def owners(task: Task, features: int, sizes: tuple[int, ...]) -> list[Batch]:
    random = np.random.default_rng(5)
    classes = task.name == "activity"
    return [
        batch_of(
            Samples(
                random.normal(size=(n, features)).astype(np.float32),
                (random.integers(3, size=n) if classes else random.normal(size=n)).astype(np.float32),
            )
        )
        for n in sizes
    ]


TASKS = [
    linear.make_task(linear.Options(l2=0.3)),
    linear.make_task(linear.Options(l2=0.0)),
    flights.make_task(flights.Options()),
    activity.make_task(activity.Options(classes=3)),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_each_row_has_the_gradient_of_its_own_batch(task: Task) -> None:
    features = flights.SCALED if task.name == "flights" else 4
    batches = owners(task, features, (3, 1, 8, 5))
    learner = Learner(task, Samples(np.zeros((1, features), np.float32), np.zeros(1, np.float32)))
    theta = np.random.default_rng(1).normal(size=learner.size).astype(np.float32)
    rows = learner.gradients(theta, Stack.of(batches))
    assert rows.shape == (4, learner.size)
    for row, batch in zip(rows, batches, strict=True):
        np.testing.assert_allclose(row, learner.gradient(theta, batch), rtol=1e-4, atol=1e-6)


def test_rows_are_picked_in_the_order_asked_and_cut_to_the_longest() -> None:
    batches = owners(TASKS[0], 4, (3, 1, 8, 5))
    stack = Stack.of(batches)
    picked = stack.rows([3, 0])
    assert picked.weights.shape == (2, 5)
    assert torch.equal(picked.x[0], batches[3].x)
    assert torch.equal(picked.x[1, :3], batches[0].x)
    assert not picked.weights[1, 3:].any()
    assert picked.weights.sum(dim=1).tolist() == pytest.approx([1, 1])


def test_passes_that_are_cut_small_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = owners(TASKS[0], 4, (3, 1, 8, 5, 2))
    learner = Learner(TASKS[0], Samples(np.zeros((1, 4), np.float32), np.zeros(1, np.float32)))
    theta = np.ones(learner.size, np.float32)
    whole = learner.gradients(theta, Stack.of(batches))
    monkeypatch.setattr("device.stack.CHUNK", 1)
    np.testing.assert_allclose(learner.gradients(theta, Stack.of(batches)), whole, rtol=1e-6)
