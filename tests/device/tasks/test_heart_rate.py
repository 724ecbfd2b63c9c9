"""The LSTM of method 10."""

import numpy as np
import pytest
import torch

from device.batch import batch_of
from device.learner import Learner
from device.samples import Samples
from device.tasks import heart_rate
from device.tasks.heart_rate import Options, make_task, scale
from sgfusion.errors import DataError, TaskError
from sgfusion.histogram import label_mass
from sgfusion.streams import raw_stream

PAPER, SMALL, PLAIN = Options(), Options(size="small"), Options(size="small", context=False)


def workouts(count: int, steps: int, *, context: int = 5, step_labels: bool = True) -> Samples:
    """Scaled samples."""
    draw = np.random.Generator(raw_stream(3, "heart rate tests", count, steps))
    labels = (count, steps) if step_labels else (count,)
    return Samples(
        draw.normal(size=(count, steps, 3)).astype(np.float32),
        (140 + 25 * draw.normal(size=labels)).astype(np.float32),
        draw.normal(size=(count, steps, context)).astype(np.float32) if context else None,
    )


def test_the_papers_model_has_98401_parameters() -> None:
    assert Learner(make_task(PAPER), workouts(1, 4)).size == 98_401


@pytest.mark.parametrize(("options", "size"), [(SMALL, 2_809), (PLAIN, 1_361)])
def test_the_small_model_has_a_few_thousand(options: Options, size: int) -> None:
    assert Learner(make_task(options), workouts(1, 4)).size == size


@pytest.mark.parametrize("options", [PAPER, SMALL, PLAIN])
@pytest.mark.parametrize("steps", [1, 2, 7, 60])
def test_any_number_of_steps(options: Options, steps: int) -> None:
    task, samples = make_task(options), workouts(3, steps)
    task.check(samples)
    learner, batch = Learner(task, samples), batch_of(samples)
    theta = learner.initial(0)
    assert learner.losses(theta, batch).shape == (3,)
    assert learner.evaluate(theta, batch)[1] == 3 * steps
    gradient = learner.gradient(theta, batch)
    assert np.isfinite(gradient).all()
    assert gradient.any()


def test_the_loss_is_the_mean_over_steps_in_spreads_and_the_score_in_bpm() -> None:
    task = make_task(SMALL)
    output, y = torch.tensor([[140.0, 165.0], [100.0, 100.0]]), torch.tensor([[140.0, 140.0], [150.0, 50.0]])
    assert task.losses(output, y).tolist() == pytest.approx([0.5, 4.0])
    assert task.scores(output, y).tolist() == [[0.0, 625.0], [2500.0, 2500.0]]
    assert task.metric.value(5625.0, 4) == 37.5
    assert task.metric.unit == "bpm"


def test_a_sequence_with_one_label_is_judged_by_its_last_step() -> None:
    task = make_task(SMALL)
    output = torch.tensor([[140.0, 165.0], [100.0, 120.0]])
    assert task.losses(output, torch.tensor([140.0, 120.0])).tolist() == pytest.approx([1.0, 0.0])
    assert task.scores(output, torch.tensor([140.0, 110.0])).tolist() == [625.0, 100.0]
    samples = workouts(4, 6, step_labels=False)
    task.check(samples)
    learner = Learner(task, samples)
    assert learner.evaluate(learner.initial(1), batch_of(samples))[1] == 4


def test_an_untrained_model_says_about_140_bpm() -> None:
    task, samples = make_task(PAPER), workouts(8, 10)
    model = task.build(3, 5)
    assert samples.context is not None
    out = model(torch.from_numpy(samples.x), torch.from_numpy(samples.context)).detach()
    assert out.shape == (8, 10)
    assert float((out - 140).abs().max()) < 25


def test_a_step_depends_on_no_later_one() -> None:
    samples = workouts(2, 9)
    assert samples.context is not None
    torch.manual_seed(0)  # some models hardly hear a step of 1
    model = make_task(SMALL).build(3, 5)
    x, context = torch.from_numpy(samples.x), torch.from_numpy(samples.context)
    later_x, later_context = x.clone(), context.clone()
    later_x[:, 5:] += 1
    later_context[:, 5:] += 1
    with torch.no_grad():
        before, after = model(x, context), model(later_x, later_context)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-4)
    assert (before[:, 5:] - after[:, 5:]).abs().min() > 1e-3


@pytest.mark.parametrize("feature", range(5))
def test_every_number_of_the_context_counts(feature: int) -> None:
    samples = workouts(1, 3)
    assert samples.context is not None
    other = samples.context.copy()
    other[..., feature] += 1
    learner = Learner(make_task(SMALL), samples)
    theta = learner.initial(0)
    changed = Samples(samples.x, samples.y, other)
    assert learner.losses(theta, batch_of(samples)) != learner.losses(theta, batch_of(changed))


def test_without_context_that_of_the_data_is_ignored() -> None:
    task, given, bare = make_task(PLAIN), workouts(2, 4), workouts(2, 4, context=0)
    assert given.x.tolist() == bare.x.tolist()
    task.check(given)
    task.check(bare)
    theta = Learner(task, given).initial(5)
    first, second = (Learner(task, samples).gradient(theta, batch_of(samples)) for samples in (given, bare))
    assert np.array_equal(first, second)


def test_data_without_the_context_it_needs_names_the_remedy() -> None:
    task, bare = make_task(SMALL), workouts(2, 4, context=0)
    with pytest.raises(DataError, match=r"task\.context=false"):
        task.check(bare)
    with pytest.raises(TaskError, match=r"task\.context=false"):
        Learner(task, bare)


@pytest.mark.parametrize(
    ("x", "y", "context", "got"),
    [
        ((4, 6), (4, 6), (4, 6, 5), r"x\[N, T, 3\].*not x\[4, 6\]"),
        ((4, 6, 2), (4, 6), (4, 6, 5), r"distance, altitude, elapsed.*not x\[4, 6, 2\]"),
        ((4, 0, 3), (4, 0), (4, 0, 5), r"not x\[4, 0, 3\]"),
        ((4, 6, 3), (4, 5), (4, 6, 5), r"y\[4, 6\] or y\[4\] beside x\[4, 6, 3\], not y\[4, 5\]"),
        ((4, 6, 3), (4, 6), (4, 5, 5), r"context\[4, 6, 5\].*not context\[4, 5, 5\]"),
        ((4, 6, 3), (4, 6), (4, 6, 4), r"since_last, heart_rate.*not context\[4, 6, 4\]"),
    ],
)
def test_samples_of_another_shape(x: tuple[int, ...], y: tuple[int, ...], context: tuple[int, ...], got: str) -> None:
    samples = Samples(np.zeros(x, np.float32), np.zeros(y, np.float32), np.zeros(context, np.float32))
    with pytest.raises(DataError, match=got):
        make_task(SMALL).check(samples)


def test_a_model_for_other_features_is_refused() -> None:
    with pytest.raises(TaskError, match=r"3 features.*not 4"):
        make_task(SMALL).build(4, 5)
    with pytest.raises(TaskError, match=r"5 of context.*not 6"):
        make_task(SMALL).build(3, 6)


# Public scaling constants


def test_the_means_scale_to_0_and_a_spread_more_to_1() -> None:
    x = np.array([[[10.0, 200.0, 40.0], [20.0, 500.0, 70.0]]], np.float32)
    hours = np.expm1([3.5, 5.0])
    context = np.array([[[10.0, 200.0, 40.0, hours[0], 140.0], [20.0, 500.0, 70.0, hours[1], 165.0]]], np.float32)
    y = np.array([[120.0, 130.0]], np.float32)
    scaled = scale(Samples(x, y, context))
    assert scaled.context is not None
    assert scaled.x.tolist() == [[[0.0] * 3, [1.0] * 3]]
    assert scaled.context == pytest.approx(np.array([[[0.0] * 5, [1.0] * 5]]), abs=1e-6)
    assert scaled.y.tolist() == y.tolist()


def test_scaling_can_be_undone() -> None:
    raw = np.array([[[3.25, -12.0, 17.5], [42.0, 1800.0, 300.0]]], np.float32)
    scaled = scale(Samples(raw, np.zeros((1, 2), np.float32))).x
    constants = np.array([heart_rate.DISTANCE_KM, heart_rate.ALTITUDE_M, heart_rate.ELAPSED_MINUTES])
    assert scaled * constants[:, 1] + constants[:, 0] == pytest.approx(raw, rel=1e-5, abs=1e-4)


def test_no_previous_workout_stays_all_zeros() -> None:
    samples = workouts(3, 4)
    context = np.zeros((3, 4, 5), np.float32)
    context[1] = [5.0, 100.0, 30.0, 48.0, 150.0]
    context[2, 0] = [0.0, 0.0, 0.0, 48.0, 150.0]
    scaled = scale(Samples(samples.x, samples.y, context)).context
    assert scaled is not None
    assert not scaled[0].any()
    assert scaled[1].all()
    assert scaled[2].all(), "zeros within a workout are numbers as any other"


def test_overlapping_workouts_are_no_hours_apart() -> None:
    samples = workouts(1, 1)
    context = np.array([[[5.0, 100.0, 30.0, -2.0, 150.0]]], np.float32)
    scaled = scale(Samples(samples.x, samples.y, context)).context
    assert scaled is not None
    assert scaled[0, 0, 3] == pytest.approx(-3.5 / 1.5)


def test_bins_are_public_and_take_any_heart_rate() -> None:
    edges = make_task(SMALL).edges
    assert edges.tolist() == list(range(60, 221, 10))
    mass = label_mass(np.array([[30.0, 65.0, 219.0, 260.0]]), edges)
    assert mass[[0, -1]].tolist() == [0.5, 0.5]
    assert mass.sum() == 1


def test_it_learns() -> None:
    """Heart rate that follows the altitude: a hundred plain steps halve the error."""
    samples = workouts(24, 8)
    told = Samples(samples.x, 140 + 20 * samples.x[..., 1], samples.context)
    learner, batch = Learner(make_task(SMALL), told), batch_of(told)
    theta = learner.initial(0)
    before = learner.evaluate(theta, batch)[0]
    for _ in range(100):
        theta = theta - np.float32(0.5) * learner.gradient(theta, batch)
    assert learner.evaluate(theta, batch)[0] < before / 4
