"""The step that an edge takes along a fused direction (method 7): SGD, momentum or Adam, as pure functions.

State in, state out, on flat float32 vectors. `torch.optim` is not used: edges have no torch, and a step is one line.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from sgfusion.errors import GradientError, StepError

Vector = npt.NDArray[np.float32]
Kind = Literal["sgd", "momentum", "adam"]
ScheduleKind = Literal["constant", "inverse", "cosine"]

SLOTS: Mapping[Kind, tuple[str, ...]] = {"sgd": (), "momentum": ("velocity",), "adam": ("mean", "square")}


@dataclass(frozen=True)
class Schedule:
    """`η_t` for step `t = 1, 2, …`.

    `constant`: `rate`. `inverse`: `1/(μt)`, the theorem's, with `strong_convexity` as `μ`. `cosine`: from `rate` at the
    first step down to zero after `steps` steps.
    """

    kind: ScheduleKind = "constant"
    rate: float = 0.1
    strong_convexity: float = 1.0
    steps: int = 1

    def __post_init__(self) -> None:
        if self.kind not in get_args(ScheduleKind):
            raise StepError(f"schedule = {self.kind!r}: choose 'constant', 'inverse' or 'cosine'")
        for name in ("rate", "strong_convexity", "steps"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise StepError(f"{name} = {value}: give a finite number > 0")
        if self.steps != int(self.steps):
            raise StepError(f"steps = {self.steps}: give a whole number")

    def rate_at(self, t: int) -> float:
        """`η_t`."""
        if t < 1:
            raise StepError(f"step {t}: steps are numbered from 1")
        if self.kind == "inverse":
            return 1.0 / (self.strong_convexity * t)
        if self.kind == "cosine":
            done = min(t - 1, self.steps) / self.steps
            return self.rate * 0.5 * (1.0 + math.cos(math.pi * done))
        return self.rate


@dataclass(frozen=True)
class Optimiser:
    """The settings of a step. `momentum` is the momentum's decay, `beta1`, `beta2` and `delta` are Adam's."""

    kind: Kind = "sgd"
    schedule: Schedule = Schedule()
    momentum: float = 0.9
    beta1: float = 0.9
    beta2: float = 0.999
    delta: float = 1e-8

    def __post_init__(self) -> None:
        if self.kind not in SLOTS:
            raise StepError(f"optimiser = {self.kind!r}: choose one of {', '.join(map(repr, SLOTS))}")
        for name in ("momentum", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise StepError(f"{name} = {getattr(self, name)}: give a number in [0, 1)")
        if not (math.isfinite(self.delta) and self.delta >= np.finfo(np.float32).tiny):
            raise StepError(f"delta = {self.delta}: give a number that float32 tells from 0, at least 1.2e-38")


@dataclass(frozen=True, eq=False)
class OptimiserState:
    """What a step needs of the steps before it. Invariant: `t` steps were taken; one vector for each slot."""

    t: int = 0
    slots: Mapping[str, Vector] = field(default_factory=dict)


def first_state(optimiser: Optimiser, size: int) -> OptimiserState:
    """The state before the first step on `size` weights."""
    return OptimiserState(0, {slot: np.zeros(size, np.float32) for slot in SLOTS[optimiser.kind]})


def check_fits(optimiser: Optimiser, state: OptimiserState) -> None:
    """Refuse a state that another kind of optimiser has left."""
    expected = SLOTS[optimiser.kind]
    if set(state.slots) != set(expected):
        raise StepError(
            f"state with {sorted(state.slots)} is not one of {optimiser.kind!r}, which keeps {list(expected)}"
        )


def step(
    optimiser: Optimiser, state: OptimiserState, theta: Vector, direction: Vector
) -> tuple[Vector, OptimiserState]:
    """`θ - η_t · direction` with the optimiser's own idea of a direction; the new weights and the new state."""
    check_fits(optimiser, state)
    for name, vector in (("direction", direction), *state.slots.items()):
        if vector.shape != theta.shape:
            raise GradientError(f"{name} of shape {vector.shape} does not fit weights of shape {theta.shape}")
    t = state.t + 1
    rate = optimiser.schedule.rate_at(t)
    theta, direction = theta.astype(np.float32, copy=False), direction.astype(np.float32, copy=False)
    if optimiser.kind == "momentum":
        velocity = optimiser.momentum * state.slots["velocity"] + direction
        return theta - rate * velocity, OptimiserState(t, {"velocity": velocity})
    if optimiser.kind == "adam":
        mean = optimiser.beta1 * state.slots["mean"] + (1 - optimiser.beta1) * direction
        square: Vector = optimiser.beta2 * state.slots["square"] + (1 - optimiser.beta2) * direction * direction
        unbiased = np.float32(1 - math.pow(optimiser.beta2, t))
        scale = np.sqrt(square / unbiased) + np.float32(optimiser.delta)
        moved: Vector = theta - rate / (1 - math.pow(optimiser.beta1, t)) * mean / scale
        return moved, OptimiserState(t, {"mean": mean, "square": square})
    stride = rate * direction
    return np.subtract(theta, stride, out=stride), OptimiserState(t, {})
