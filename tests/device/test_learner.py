"""Gradients on requested weights (method 6)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from device.batch import Batch, batch_of
from device.learner import Learner, Vector
from device.samples import Samples
from device.tasks import flights, heart_rate, linear
from device.tasks.task import RMSE_UNITLESS, Task
from sgfusion.errors import DataError, GradientError, TaskError
from sgfusion.runfile import Update
from sgfusion.streams import raw_stream

SMALL = heart_rate.make_task(heart_rate.Options(size="small"))
FLIGHTS = flights.make_task(flights.Options())
RIDGE = linear.make_task(linear.Options(l2=0.5))


def workouts(count: int, place: int = 0) -> Samples:
    draw = np.random.Generator(raw_stream(3, "learner tests", place))
    return Samples(
        draw.normal(size=(count, 5, 3)).astype(np.float32),
        (140 + 25 * draw.normal(size=(count, 5))).astype(np.float32),
        draw.normal(size=(count, 5, 5)).astype(np.float32),
    )


def rows(count: int, place: int = 0) -> Samples:
    draw = np.random.Generator(raw_stream(3, "learner tests", place))
    y = (150 + 95 * draw.normal(size=count)).astype(np.float32)
    return Samples(draw.normal(size=(count, 15)).astype(np.float32), y)


def single(*labels: float) -> Samples:
    """Samples whose one feature is 1: at weight `w` of the ridge, the gradient is the mean of `w - y`, and `w/2`."""
    return Samples(np.ones((len(labels), 1), np.float32), np.array(labels, np.float32))


def weight(number: float) -> Vector:
    return np.array([number], np.float32)


Data = Callable[..., Samples]
CASES = pytest.mark.parametrize(("task", "data"), [(SMALL, workouts), (FLIGHTS, rows)], ids=["lstm", "mlp"])


def by_torch(task: Task, theta: Vector, samples: Samples) -> Vector:
    """The gradient of the mean loss, by a plain module and nothing of ours."""
    model = task.build(samples.x.shape[-1], 0 if samples.context is None else samples.context.shape[-1])
    torch.nn.utils.vector_to_parameters(torch.from_numpy(theta.copy()), model.parameters())
    context = None if samples.context is None else torch.from_numpy(samples.context)
    loss = task.losses(model(torch.from_numpy(samples.x), context), torch.from_numpy(samples.y)).mean()
    flat = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(model.parameters()))])
    gradient: Vector = flat.numpy()
    return gradient


def close(a: Vector, b: Vector, share: float = 1e-5) -> bool:
    return float(np.abs(a - b).max()) <= share * float(np.abs(b).max())


# Gradients


@CASES
def test_a_gradient_is_torchs_own(task: Task, data: Data) -> None:
    samples = data(12)
    learner = Learner(task, samples)
    theta = learner.initial(1)
    assert close(learner.gradient(theta, batch_of(samples)), by_torch(task, theta, samples), 1e-6)


@CASES
@pytest.mark.parametrize("chunk", [1, 5, 11])
def test_chunks_change_it_by_rounding_alone(task: Task, data: Data, chunk: int) -> None:
    samples = data(12)
    learner, batch = Learner(task, samples), batch_of(samples)
    theta = learner.initial(1)
    whole = learner.gradient(theta, batch), learner.losses(theta, batch), learner.evaluate(theta, batch)
    learner._chunk = chunk
    assert close(learner.gradient(theta, batch), whole[0])
    assert learner.losses(theta, batch) == pytest.approx(whole[1], rel=1e-5)
    assert learner.evaluate(theta, batch) == pytest.approx(whole[2], rel=1e-6)


@CASES
def test_one_batch_of_all_devices_is_the_mean_over_devices(task: Task, data: Data) -> None:
    devices = [data(count, place) for place, count in enumerate((1, 7, 30))]
    learner = Learner(task, devices[0])
    theta = learner.initial(1)
    mean = np.mean([learner.gradient(theta, batch_of(device)).astype(np.float64) for device in devices], axis=0)
    assert close(learner.gradient(theta, batch_of(*devices)), mean.astype(np.float32))


@CASES
def test_it_depends_on_the_weights_and_the_data_alone(task: Task, data: Data) -> None:
    samples, others = data(9), data(20, 1)
    fresh, used = Learner(task, samples), Learner(task, others)
    theta = fresh.initial(1)
    used.gradient(used.initial(2), batch_of(others))
    used.delta(used.initial(3), batch_of(others), Update(kind="delta", epochs=2, rate=0.1, batch=4))
    used.evaluate(used.initial(4), batch_of(others))
    torch.manual_seed(99)
    update = Update(kind="delta", epochs=2, rate=0.1, batch=4)
    for _ in range(2):
        assert np.array_equal(fresh.gradient(theta, batch_of(samples)), used.gradient(theta, batch_of(samples)))
        assert np.array_equal(
            fresh.delta(theta, batch_of(samples), update), used.delta(theta, batch_of(samples), update)
        )


def test_answers_are_the_callers_to_keep() -> None:
    samples = rows(4)
    learner, batch = Learner(FLIGHTS, samples), batch_of(samples)
    theta = learner.initial(1)
    asked = theta.copy()
    gradient = learner.gradient(theta, batch)
    kept = gradient.copy()
    moved = learner.delta(theta, batch, Update(kind="delta", epochs=1, rate=0.5))
    learner.gradient(theta + 1, batch)
    assert np.array_equal(gradient, kept)
    assert np.array_equal(theta, asked)
    gradient[:] = moved[:] = 0
    assert np.array_equal(learner.gradient(theta, batch), kept)


@pytest.mark.parametrize("between", ["nothing", "other weights", "local epochs", "an evaluation"])
def test_sealed_weights_that_come_again_are_the_same_weights(between: str) -> None:
    """They are not copied again, unless the model has gone elsewhere meanwhile."""
    learner, batch = Learner(FLIGHTS, rows(4)), batch_of(rows(4))
    theta = learner.initial(1).copy()
    theta.flags.writeable = False
    first = learner.gradient(theta, batch)
    if between == "other weights":
        learner.gradient(theta + 1, batch)
    elif between == "local epochs":
        learner.delta(theta, batch, Update(kind="delta", epochs=2, batch=2, rate=0.1))
    elif between == "an evaluation":
        learner.evaluate(theta - 1, batch)
    np.testing.assert_array_equal(learner.gradient(theta, batch), first)


def test_weights_that_can_be_written_to_are_read_anew() -> None:
    learner, batch = Learner(FLIGHTS, rows(4)), batch_of(rows(4))
    theta = learner.initial(1).copy()
    view = theta.view()
    view.flags.writeable = False  # of numbers that are not: its owner changes them
    first = learner.gradient(view, batch), learner.gradient(theta, batch)
    theta += 1
    for weights, before in zip((view, theta), first, strict=True):
        assert (learner.gradient(weights, batch) != before).any()


def test_wrong_weights_are_named() -> None:
    samples = rows(4)
    learner, batch = Learner(FLIGHTS, samples), batch_of(samples)
    for call in (learner.gradient, learner.losses, learner.evaluate):
        with pytest.raises(GradientError, match=r"shape \(559,\) for a model of 560"):
            call(np.zeros(559, np.float32), batch)
    with pytest.raises(GradientError, match=r"shape \(1, 560\)"):
        learner.gradient(np.zeros((1, 560), np.float32), batch)


# Local epochs


def test_one_epoch_over_all_is_the_gradient_times_the_rate() -> None:
    samples = workouts(12)
    learner, batch = Learner(SMALL, samples), batch_of(samples)
    theta = learner.initial(1)
    moved = learner.delta(theta, batch, Update(kind="delta", epochs=1, rate=0.25))
    assert np.array_equal(moved, np.float32(0.25) * learner.gradient(theta, batch))


def test_epochs_go_over_batches_in_order_of_time() -> None:
    learner, samples = Learner(RIDGE, single(0)), single(4, 0, 1)
    # w: 0, then -(0 - 4)/4 = 1, then 1 - (1 - 0 + 1/2)/4 = 0.625, then 0.625 - (0.625 - 1 + 0.3125)/4 = 0.640625
    moved = learner.delta(weight(0), batch_of(samples), Update(kind="delta", epochs=1, rate=0.25, batch=1))
    assert moved.tolist() == [-0.640625]


def test_a_last_batch_that_is_smaller_counts_as_a_mean_of_its_own() -> None:
    learner, samples = Learner(RIDGE, single(0)), single(4, 2, 1)
    # w: 0, then (4 + 2)/2/4 = 0.75, then 0.75 - (0.75 - 1 + 0.375)/4 = 0.71875
    moved = learner.delta(weight(0), batch_of(samples), Update(kind="delta", epochs=1, rate=0.25, batch=2))
    assert moved.tolist() == pytest.approx([-0.71875])


def test_two_epochs_start_where_one_ended() -> None:
    learner, batch = Learner(RIDGE, single(0)), batch_of(single(4))
    # w: 0, 1, then 1 - (1 - 4 + 1/2)/4 = 1.625
    assert learner.delta(weight(0), batch, Update(kind="delta", epochs=2, rate=0.25)).tolist() == [-1.625]


def test_a_gradients_update_has_no_epochs() -> None:
    learner = Learner(RIDGE, single(0))
    with pytest.raises(GradientError, match=r"update\.kind = 'gradient' has no epochs"):
        learner.delta(weight(0), batch_of(single(1)), Update())


# Batches


# Losses on the way


@CASES
def test_a_gradient_with_its_loss_is_the_gradient_to_the_bit(task: Task, data: Data) -> None:
    samples = batch_of(data(12), data(5, place=1))
    learner = Learner(task, data(1))
    theta = learner.initial(1)
    alone = learner.gradient(theta, samples)
    gradient, loss = learner.gradient_and_loss(theta, samples)
    assert gradient.tobytes() == alone.tobytes()
    assert loss == pytest.approx(float(samples.weights.numpy() @ learner.losses(theta, samples)), rel=1e-5)


def test_a_loss_by_hand_has_its_penalty_whatever_the_chunks() -> None:
    learner = Learner(RIDGE, single(0))
    for chunk in (1, 2, 100):
        learner._chunk = chunk
        gradient, loss = learner.gradient_and_loss(weight(2), batch_of(single(1, 3, 6)))
        # 1/2 of the mean of 1, 1 and 16, and 1/4 of 2².
        assert gradient.tolist() == pytest.approx([-4 / 3 + 1])
        assert loss == pytest.approx(3 + 1)


@CASES
@pytest.mark.parametrize("batch", [None, 5])
def test_local_epochs_with_their_loss_are_the_same_to_the_bit(task: Task, data: Data, batch: int | None) -> None:
    samples = batch_of(data(12))
    learner = Learner(task, data(1))
    theta = learner.initial(1)
    update = Update(kind="delta", epochs=2, rate=0.01, batch=batch)
    alone = learner.delta(theta, samples, update)
    delta, loss = learner.delta_and_loss(theta, samples, update)
    assert delta.tobytes() == alone.tobytes()
    if batch is None:
        assert loss == learner.gradient_and_loss(theta, samples)[1]


def test_the_loss_of_local_epochs_is_that_which_the_first_one_met() -> None:
    learner = Learner(RIDGE, single(0))
    update = Update(kind="delta", epochs=3, rate=0.5, batch=2)
    _, loss = learner.delta_and_loss(weight(0), batch_of(single(1, 3, 6)), update)
    # The first two by weight 0: 1/2 of the mean of 1 and 9. The third by 0 + 0.5 * 2 = 1: 1/2 of 25, and 1/4 of 1.
    assert loss == pytest.approx(2 / 3 * 2.5 + 1 / 3 * (12.5 + 0.25))


def test_every_device_counts_the_same() -> None:
    batch = batch_of(single(1), single(2, 3), single())
    assert batch.weights.tolist() == [0.5, 0.25, 0.25]
    assert batch.y.tolist() == [1, 2, 3]
    assert len(batch) == 3


def test_a_batch_of_nothing_is_refused() -> None:
    for nothing in ((), (single(),)):
        with pytest.raises(DataError, match="no samples"):
            batch_of(*nothing)


def test_some_with_and_some_without_a_context_make_no_batch() -> None:
    bare = Samples(workouts(2).x, workouts(2).y)
    for mixed in ((bare, workouts(2)), (workouts(2), bare)):
        with pytest.raises(DataError, match="context"):
            batch_of(*mixed)


def test_batches_of_devices_join_as_their_samples_do() -> None:
    devices = [workouts(2), workouts(5, 1)]
    apart, together = Batch.joined([batch_of(device) for device in devices]), batch_of(*devices)
    assert apart.context is not None
    assert together.context is not None
    assert torch.equal(apart.x, together.x)
    assert torch.equal(apart.context, together.context)
    assert apart.weights.tolist() == pytest.approx(together.weights.tolist())


def test_every_other_sample() -> None:
    first, second = batch_of(single(1, 2, 3)).every_other()
    assert (first.y.tolist(), first.weights.tolist()) == ([1, 3], [0.5, 0.5])
    assert (second.y.tolist(), second.weights.tolist()) == ([2], [1])
    assert not len(batch_of(single(1)).every_other()[1])


def test_parts_are_of_nearly_one_size() -> None:
    learner = Learner(RIDGE, single(0))
    learner._chunk = 4
    for count, sizes in ((3, [3]), (4, [4]), (5, [3, 2]), (9, [3, 3, 3])):
        assert [len(part) for part in learner._parts(batch_of(single(*range(count))))] == sizes


# Initial weights and evaluation


@CASES
def test_initial_weights_are_a_function_of_the_seed(task: Task, data: Data) -> None:
    learner = Learner(task, data(1))
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first = learner.initial(8)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(6)
    assert np.array_equal(Learner(task, data(3)).initial(8), first)
    assert not np.array_equal(learner.initial(9), first)
    assert learner.initial(2**63 - 1).shape == (learner.size,)


def test_making_a_learner_leaves_torchs_random_numbers_alone() -> None:
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    Learner(SMALL, workouts(1))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_initial_weights_are_torchs_own() -> None:
    torch.manual_seed(8)
    fresh = FLIGHTS.build(15, 0)
    own = torch.cat([p.detach().reshape(-1) for p in fresh.parameters()]).numpy()
    assert np.array_equal(Learner(FLIGHTS, rows(1)).initial(8), own)


def test_a_score_for_each_label() -> None:
    learner = Learner(RIDGE, single(0))
    assert learner.evaluate(weight(1), batch_of(single(1, 3), single(0))) == (5.0, 3)
    assert learner.evaluate(weight(1), None) == (0.0, 0)


def test_a_fingerprint_is_that_of_the_models_shape() -> None:
    learner = Learner(SMALL, workouts(1))
    paper = heart_rate.make_task(heart_rate.Options())
    assert learner.fingerprint == Learner(SMALL, workouts(7)).fingerprint
    assert learner.fingerprint != Learner(paper, workouts(1)).fingerprint
    assert len(learner.fingerprint) == 16


def test_a_model_needs_parameters_of_float32() -> None:
    def task(model: torch.nn.Module) -> Task:
        return Task(
            name="mine",
            build=lambda _features, _context: model,
            losses=RIDGE.losses,
            scores=RIDGE.scores,
            metric=RMSE_UNITLESS,
            edges=RIDGE.edges,
            check=RIDGE.check,
            scale=RIDGE.scale,
        )

    for model in (torch.nn.Identity(), torch.nn.Linear(1, 1).double()):
        with pytest.raises(TaskError, match=r"task 'mine'.*float32"):
            Learner(task(model), single(1))


def test_one_thread() -> None:
    torch.set_num_threads(2)
    Learner(RIDGE, single(0))
    assert torch.get_num_threads() == 1


def test_initial_weights_are_the_seeds_in_whatever_thread_and_however_many() -> None:
    """Torch has one generator for all threads: without care two that seed it at once would mix their numbers."""
    task = heart_rate.make_task(heart_rate.Options(size="small"))
    x, y, context = (np.zeros(shape, np.float32) for shape in ((1, 4, 3), (1, 4), (1, 4, 5)))
    like = Samples(x, y, context)
    expected = Learner(task, like).initial(7).tobytes()
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: Learner(task, like).initial(7).tobytes(), range(60)))
    assert set(made) == {expected}
