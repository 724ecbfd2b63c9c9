"""Minutes in the air."""

import numpy as np
import pytest
import torch

from device.batch import batch_of
from device.learner import Learner
from device.samples import Samples
from device.tasks import flights
from device.tasks.flights import FEATURES, SCALED, SCALES, Options, make_task, scale
from sgfusion.errors import DataError, TaskError
from sgfusion.streams import raw_stream

MEANS = {name: mean for name, (mean, _) in SCALES.items()}


def flight(**numbers: float) -> list[float]:
    """A raw row: the means, midnight of December with wind from the north, and what is given."""
    usual = {**MEANS, "month": 12.0, "hour": 0.0, "wind_dir": 0.0, **numbers}
    return [usual[name] for name in FEATURES]


def raw(*rows: list[float]) -> Samples:
    return Samples(np.array(rows, np.float32), np.full(len(rows), 150, np.float32))


def test_raw_columns_are_those_of_the_source() -> None:
    from device.sources.flights import FEATURES as GIVEN

    assert FEATURES == GIVEN
    assert {*SCALES, *flights.PERIODS} == set(FEATURES)


def test_means_scale_to_0_and_a_spread_more_to_1() -> None:
    more = {name: mean + spread for name, (mean, spread) in SCALES.items()}
    scaled = scale(raw(flight(), flight(**more))).x
    assert scaled.shape == (2, SCALED) == (2, 15)
    assert scaled[0] == pytest.approx([0] * 9 + [0, 1] * 3, abs=1e-6)
    assert scaled[1] == pytest.approx([1] * 9 + [0, 1] * 3, abs=1e-5)


def test_scaling_can_be_undone() -> None:
    row = flight(distance=2475.0, altitude=126.0, temp=39.02, precip=0.31, month=4.0, hour=17.0, wind_dir=250.0)
    scaled = scale(raw(row)).x[0]
    for i, (name, (mean, spread)) in enumerate(SCALES.items()):
        assert scaled[i] * spread + mean == pytest.approx(row[FEATURES.index(name)], rel=1e-5, abs=1e-5)
    for i, (name, period) in enumerate(flights.PERIODS.items()):
        sine, cosine = scaled[9 + 2 * i : 11 + 2 * i]
        turn = np.arctan2(sine, cosine) / (2 * np.pi) % 1
        assert turn * period == pytest.approx(row[FEATURES.index(name)], rel=1e-4)


def test_what_comes_round_has_no_seam() -> None:
    north, december = scale(raw(flight(wind_dir=0), flight(wind_dir=360))).x, flight(month=0)
    assert north[0] == pytest.approx(north[1], abs=1e-5)
    assert scale(raw(december, flight(month=12))).x[0] == pytest.approx(north[0], abs=1e-5)


def test_labels_stay_in_minutes() -> None:
    task = make_task(Options())
    assert scale(raw(flight())).y.tolist() == [150.0]
    output, y = torch.tensor([150.0, 245.0]), torch.tensor([150.0, 150.0])
    assert task.losses(output, y).tolist() == pytest.approx([0.0, 1.0])
    assert task.scores(output, y).tolist() == [0.0, 95.0**2]
    assert (task.metric.unit, task.metric.value(95.0**2, 1)) == ("min", 95.0)
    assert task.edges.tolist() == list(range(0, 701, 25))


def test_raw_and_scaled_samples_are_both_its_own() -> None:
    task = make_task(Options())
    samples = raw(flight(), flight(hour=3))
    task.check(samples)
    task.check(task.scale(samples))


@pytest.mark.parametrize(
    ("x", "y", "got"),
    [
        ((4, 11), (4,), r"x\[N, 12\] or x\[N, 15\] \(distance, altitude.*not x\[4, 11\]"),
        ((4, 3, 12), (4,), r"not x\[4, 3, 12\]"),
        ((4, 12), (4, 2), r"y\[N\].*not y\[4, 2\]"),
    ],
)
def test_samples_of_another_shape(x: tuple[int, ...], y: tuple[int, ...], got: str) -> None:
    with pytest.raises(DataError, match=got):
        make_task(Options()).check(Samples(np.zeros(x, np.float32), np.zeros(y, np.float32)))


def test_scaled_samples_are_not_scaled_again() -> None:
    with pytest.raises(DataError, match=r"x\[N, 12\].*not x\[1, 15\]"):
        scale(scale(raw(flight())))


def test_a_model_for_raw_features_is_refused() -> None:
    with pytest.raises(TaskError, match="15 scaled features, not 12"):
        Learner(make_task(Options()), raw(flight()))


def test_plain_sgd_finds_the_line_in_a_few_steps() -> None:
    draw = np.random.Generator(raw_stream(1, "flights tests"))
    distances = draw.uniform(100, 2500, 200)
    rows = [flight(distance=d, hour=h) for d, h in zip(distances, draw.integers(5, 24, 200), strict=True)]
    samples = scale(Samples(np.array(rows, np.float32), (20 + distances / 8).astype(np.float32)))
    learner, batch = Learner(make_task(Options()), samples), batch_of(samples)
    theta = learner.initial(0)
    for _ in range(60):
        theta = theta - np.float32(0.1) * learner.gradient(theta, batch)
    assert learner.size == 560
    assert make_task(Options()).metric.value(*learner.evaluate(theta, batch)) < 10
