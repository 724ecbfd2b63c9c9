"""Steps and schedules (method 7): exact float32 arithmetic, pure functions, state that can be kept."""

import dataclasses
import itertools
import math
import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.errors import GradientError, StepError
from sgfusion.optimiser import SLOTS, Kind, Optimiser, OptimiserState, Schedule, ScheduleKind, first_state, step

Vector = npt.NDArray[np.float32]
KINDS: tuple[Kind, ...] = ("sgd", "momentum", "adam")


def vector(*values: float) -> Vector:
    return np.array(values, np.float32)


def constant(rate: float) -> Schedule:
    return Schedule("constant", rate)


def steps(optimiser: Optimiser, theta: Vector, *directions: Vector) -> tuple[list[list[float]], OptimiserState]:
    """The weights after each step, and the last state."""
    state, path = first_state(optimiser, len(theta)), []
    for direction in directions:
        theta, state = step(optimiser, state, theta, direction)
        path.append(theta.tolist())
    return path, state


# Schedules


@pytest.mark.parametrize(
    ("schedule", "rates"),  # at t = 1, 2, 4 (the last), 5, 100 (past the end)
    [
        (Schedule("constant", rate=0.3, steps=4), [0.3] * 5),
        (Schedule("inverse", strong_convexity=0.5, steps=4), [2.0, 1.0, 0.5, 0.4, 0.02]),
        (Schedule("inverse", strong_convexity=4), [0.25, 0.125, 0.0625, 0.05, 0.0025]),
        (Schedule("cosine", rate=2, steps=4), [2.0, 1 + math.sqrt(0.5), 1 - math.sqrt(0.5), 0.0, 0.0]),
        (Schedule("cosine", rate=2, steps=1), [2.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_a_schedule_has_these_rates(schedule: Schedule, rates: list[float]) -> None:
    assert [schedule.rate_at(t) for t in (1, 2, 4, 5, 100)] == pytest.approx(rates, rel=1e-15, abs=0)


@given(st.integers(2, 500), st.floats(1e-6, 1e3))
def test_cosine_falls_from_the_rate_to_zero_and_is_half_way_in_the_middle(total: int, rate: float) -> None:
    schedule = Schedule("cosine", rate, steps=total)
    rates = [schedule.rate_at(t) for t in range(1, total + 2)]
    assert rates[0] == rate
    assert rates[-1] == 0.0
    assert all(now > later for now, later in itertools.pairwise(rates))
    for t in range(total + 1):
        assert rates[t] + rates[total - t] == pytest.approx(rate)


# Steps, tiny and exact


def test_sgd() -> None:
    path, state = steps(Optimiser("sgd", constant(0.5)), vector(1, 2), vector(2, -4), vector(0, 1))
    assert path == [[0.0, 4.0], [0.0, 3.5]]
    assert (state.t, dict(state.slots)) == (2, {})


def test_sgd_with_a_falling_rate() -> None:
    path, _ = steps(Optimiser("sgd", Schedule("inverse", strong_convexity=0.5)), vector(8), *[vector(1)] * 4)
    assert path[:2] == [[6.0], [5.0]]  # rates 2, 1, 2/3, 1/2
    assert path[3][0] == pytest.approx(5 - 2 / 3 - 1 / 2, rel=1e-7)


def test_momentum() -> None:
    optimiser = Optimiser("momentum", constant(0.5), momentum=0.5)
    path, state = steps(optimiser, vector(1, 1), vector(2, 0), vector(4, 0), vector(0, 8))
    # velocities 2, 0.5 * 2 + 4 = 5, 0.5 * 5 = 2.5
    assert path == [[0.0, 1.0], [-2.5, 1.0], [-3.75, -3.0]]
    assert state.t == 3
    assert state.slots["velocity"].tolist() == [2.5, 8.0]


def test_adam() -> None:
    optimiser = Optimiser("adam", constant(0.75), beta1=0.5, beta2=0.75, delta=2.0)
    path, state = steps(optimiser, vector(1), vector(2), vector(-2))
    # t = 1: mean 1, square 1; unbiased 1/0.5 and 1/0.25; the step is 0.75 * 2 / (2 + 2)
    # t = 2: mean 0.5 - 1, square 0.75 + 1; unbiased -0.5/0.75 and 1.75/0.4375 = 4; 0.75 * (-0.5/0.75) / (2 + 2)
    assert path == [[0.625], [0.75]]
    assert state.t == 2
    assert {slot: values.tolist() for slot, values in state.slots.items()} == {"mean": [-0.5], "square": [1.75]}


def test_the_first_step_of_adam_is_the_rate_whatever_the_gradient() -> None:
    path, _ = steps(Optimiser("adam", constant(0.125)), vector(0, 0, 0), vector(1e-3, -7, 1e6))
    assert path[0] == pytest.approx([-0.125, 0.125, -0.125], rel=2e-5)


def test_adam_stays_where_the_gradient_is_zero() -> None:
    path, _ = steps(Optimiser("adam"), vector(3), *[vector(0)] * 3)
    assert path == [[3.0]] * 3


# Steps, to the bit


def f32(value: float) -> float:
    """`value` rounded to float32: one operation in doubles, so rounded, is that operation in float32."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def by_hand(optimiser: Optimiser, theta: float, directions: list[float]) -> float:
    mean = square = velocity = 0.0
    for t, d in enumerate(directions, 1):
        rate = optimiser.schedule.rate_at(t)
        if optimiser.kind == "sgd":
            move = f32(f32(rate) * d)
        elif optimiser.kind == "momentum":
            velocity = f32(f32(f32(optimiser.momentum) * velocity) + d)
            move = f32(f32(rate) * velocity)
        else:
            keep, new = f32(optimiser.beta1), f32(1 - optimiser.beta1)
            mean = f32(f32(keep * mean) + f32(new * d))
            keep, new = f32(optimiser.beta2), f32(1 - optimiser.beta2)
            square = f32(f32(keep * square) + f32(f32(new * d) * d))
            root = f32(math.sqrt(f32(square / f32(1 - optimiser.beta2**t))))
            move = f32(f32(f32(rate / (1 - optimiser.beta1**t)) * mean) / f32(root + f32(optimiser.delta)))
        theta = f32(theta - move)
    return theta


numbers = st.floats(-1024, 1024, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@given(
    schedule=st.sampled_from(
        [constant(0.1), Schedule("inverse", strong_convexity=3), Schedule("cosine", 0.7, steps=5)]
    ),
    theta=numbers,
    directions=st.lists(numbers, min_size=1, max_size=6),
)
def test_every_operation_rounds_to_float32_once(
    kind: Kind, schedule: Schedule, theta: float, directions: list[float]
) -> None:
    optimiser = Optimiser(kind, schedule)
    path, _ = steps(optimiser, vector(theta, theta), *(vector(d, -d) for d in directions))
    assert path[-1][0] == by_hand(optimiser, theta, directions)
    assert path[-1][1] == by_hand(optimiser, theta, [-d for d in directions])


# Pure: state in, state out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_inputs_are_left_as_they_are_and_everything_comes_out_as_float32(kind: Kind, dtype: str) -> None:
    optimiser = Optimiser(kind)
    theta, direction = (np.array(values, dtype) for values in ([1.0, 2.0], [0.5, -0.5]))
    state = first_state(optimiser, 2)
    for array in (theta, direction, *state.slots.values()):
        array.flags.writeable = False  # a step that wrote to it would raise
    moved, after = step(optimiser, state, theta, direction)
    again, after_again = step(optimiser, state, theta, direction)
    assert moved.tolist() == again.tolist() != [1.0, 2.0]
    assert (state.t, after.t, after_again.t) == (0, 1, 1)
    assert {array.dtype for array in (moved, *after.slots.values())} == {np.dtype(np.float32)}
    assert {slot: values.tolist() for slot, values in state.slots.items()} == {slot: [0.0, 0.0] for slot in SLOTS[kind]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_a_number_and_named_vectors_that_another_state_can_be_made_of(kind: Kind) -> None:
    optimiser = Optimiser(kind, Schedule("cosine", 0.5, steps=9))
    theta, state = vector(1, -1), first_state(optimiser, 2)
    assert set(state.slots) == set(SLOTS[kind])
    for _ in range(3):
        theta, state = step(optimiser, state, theta, theta)
    copied = OptimiserState(int(state.t), {slot: vector(*values.tolist()) for slot, values in state.slots.items()})
    going_on, from_copy = (step(optimiser, each, theta, theta) for each in (state, copied))
    assert going_on[0].tobytes() == from_copy[0].tobytes()
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.t = 0  # type: ignore[misc]


# Refusals


@pytest.mark.parametrize(("kind", "other"), [(a, b) for a in KINDS for b in KINDS if a != b])
def test_the_state_of_another_optimiser_is_refused(kind: Kind, other: Kind) -> None:
    with pytest.raises(StepError, match=rf"is not one of {kind!r}, which keeps"):
        step(Optimiser(kind), first_state(Optimiser(other), 1), vector(1), vector(1))


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GradientError, match=r"direction of shape \(3,\) does not fit weights of shape \(2,\)"):
        step(Optimiser(), OptimiserState(), vector(1, 2), vector(1, 2, 3))
    with pytest.raises(GradientError, match=r"velocity of shape \(3,\) does not fit"):
        step(Optimiser("momentum"), first_state(Optimiser("momentum"), 3), vector(1, 2), vector(1, 2))


@pytest.mark.parametrize("name", ["rate", "strong_convexity", "steps"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
@pytest.mark.parametrize("kind", ["constant", "inverse", "cosine"])
def test_a_schedule_refuses_what_is_not_positive(kind: ScheduleKind, name: str, value: float) -> None:
    with pytest.raises(StepError, match=rf"^{name} = {value}: give a finite number > 0"):
        Schedule(kind, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["momentum", "beta1", "beta2"])
@pytest.mark.parametrize("value", [1, -0.1, math.nan, math.inf])
def test_an_optimiser_refuses_decays_outside_0_to_1(name: str, value: float) -> None:
    with pytest.raises(StepError, match=rf"^{name} = {value}: give a number in \[0, 1\)"):
        Optimiser(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1e-8, math.nan, math.inf])
def test_an_optimiser_refuses_a_delta_that_is_not_positive(value: float) -> None:
    with pytest.raises(StepError, match="delta = "):
        Optimiser("adam", delta=value)


def test_other_kinds_are_refused_by_name() -> None:
    with pytest.raises(StepError, match=r"optimiser = 'adagrad': choose one of 'sgd', 'momentum', 'adam'"):
        Optimiser("adagrad")  # type: ignore[arg-type]
    with pytest.raises(StepError, match=r"schedule = 'linear': choose 'constant', 'inverse' or 'cosine'"):
        Schedule("linear")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Optimiser("adam", delta=1e-50), "delta = 1e-50: give a number that float32 tells from 0"),
        (lambda: Schedule(steps=2.5), "steps = 2.5: give a whole number"),  # type: ignore[arg-type]
        (lambda: Schedule("inverse").rate_at(0), "step 0: steps are numbered from 1"),
    ],
)
def test_settings_that_would_give_nan_or_nonsense(make: Callable[[], object], says: str) -> None:
    with pytest.raises(StepError, match=says):
        make()
