"""Heart rate along a workout, from where it goes and how the one before it went: the LSTM of method 10.

Two encoders read the previous workout and its heart rate step by step; what they make of it is joined, at each step,
with the features of this workout, and two further layers give the heart rate there. Any number of steps.

Samples: `x[N, T, 3]` is distance, altitude and time since the start; `y[N, T]` the heart rate, or `y[N]` that of the
last step; `context[N, T, 5]` the three of the previous workout, the time between the two, and its heart rate.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from device.samples import Array, Samples
from device.tasks.losses import squared_errors, squared_losses
from device.tasks.task import Metric, Task
from sgfusion.errors import DataError, TaskError
from sgfusion.runfile import Section

FEATURES = ("distance", "altitude", "elapsed")
CONTEXT = (*FEATURES, "since_last", "heart_rate")

DISTANCE_KM = (10.0, 10.0)
"""Mean and spread by which raw numbers are scaled. Public: chosen for workouts at large, from nobody's data."""
ALTITUDE_M = (200.0, 300.0)
ELAPSED_MINUTES = (40.0, 30.0)
SINCE_LAST_LOG_HOURS = (3.5, 1.5)
"""Of `log(1 + hours)`: a day and a month are both within one and two spreads. Overlapping workouts count as 0 hours."""
HEART_RATE_BPM = (140.0, 25.0)
EDGES = np.linspace(60.0, 220.0, 17)
"""Bins of 10 bpm."""

RMSE_BPM = Metric("RMSE", "bpm", root=True, lower_is_better=True)


@dataclass(frozen=True)
class Size:
    """The widths of the two encoders, of what they are joined into, and of the layers that follow."""

    encoder: int
    joined: int
    hidden: int
    layers: int


SIZES = {"paper": Size(encoder=64, joined=32, hidden=64, layers=2), "small": Size(8, 8, 16, 1)}


class Options(Section):
    """`small` is for demos: 2,809 parameters, not 98,401. Without `context`, that of the data is ignored."""

    size: Literal["paper", "small"] = "paper"
    context: bool = True


class HeartRate(nn.Module):
    """Heart rate in bpm at each step, `[N, T]`."""

    def __init__(self, size: Size, *, context: bool) -> None:
        super().__init__()
        self.has_context = context
        if context:
            self.workout = nn.LSTM(len(CONTEXT) - 1, size.encoder, batch_first=True)
            self.pulse = nn.LSTM(1, size.encoder, batch_first=True)
            self.join = nn.Linear(2 * size.encoder, size.joined)
        width = len(FEATURES) + (size.joined if context else 0)
        self.body = nn.LSTM(width, size.hidden, size.layers, batch_first=True)
        self.head = nn.Linear(size.hidden, 1)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None) -> torch.Tensor:
        """Of scaled features and context."""
        if self.has_context:
            if context is None:
                raise TaskError(_NO_CONTEXT)
            before = torch.cat([self.workout(context[..., :-1])[0], self.pulse(context[..., -1:])[0]], dim=-1)
            x = torch.cat([self.join(before), x], dim=-1)
        mean, spread = HEART_RATE_BPM
        out: torch.Tensor = self.head(self.body(x)[0]).squeeze(-1) * spread + mean
        return out


_NO_CONTEXT = (
    "heart_rate needs context[N, T, 5] (the previous workout, since-last, its heart rate) and the data has none: "
    "give it, or set task.context=false"
)


def make_task(options: Options) -> Task:
    """The task; its labels and its error are in bpm, its loss in spreads of the heart rate squared."""

    def build(features: int, context: int) -> nn.Module:
        if features != len(FEATURES):
            raise TaskError(f"heart_rate has {len(FEATURES)} features ({', '.join(FEATURES)}), not {features}")
        if options.context and not context:
            raise TaskError(_NO_CONTEXT)
        if options.context and context != len(CONTEXT):
            raise TaskError(f"heart_rate has {len(CONTEXT)} of context ({', '.join(CONTEXT)}), not {context}")
        return HeartRate(SIZES[options.size], context=options.context)

    def check(samples: Samples) -> None:
        _check(samples, context=options.context)

    return Task(
        name="heart_rate",
        build=build,
        losses=squared_losses(HEART_RATE_BPM[1]),
        scores=squared_errors,
        metric=RMSE_BPM,
        edges=EDGES,
        check=check,
        scale=scale,
    )


def scale(samples: Samples) -> Samples:
    """Raw samples (km, metres, minutes, hours, bpm) in the model's units; labels stay in bpm.

    No previous workout is a context of zeros before and after.
    """
    context = None if samples.context is None else _scaled_context(samples.context)
    return Samples(_scaled(samples.x, DISTANCE_KM, ALTITUDE_M, ELAPSED_MINUTES), samples.y, context)


def _scaled_context(raw: Array) -> Array:
    hours = np.log1p(np.maximum(raw[..., 3:4], 0))
    numbers = np.concatenate([raw[..., :3], hours, raw[..., 4:]], axis=-1)
    parts = (DISTANCE_KM, ALTITUDE_M, ELAPSED_MINUTES, SINCE_LAST_LOG_HOURS, HEART_RATE_BPM)
    there = raw.any(axis=(1, 2), keepdims=True)
    return np.where(there, _scaled(numbers, *parts), np.float32(0))


def _scaled(raw: Array, *constants: tuple[float, float]) -> Array:
    means, spreads = np.array(constants, np.float32).T
    scaled: Array = (raw - means) / spreads
    return scaled


def _check(samples: Samples, *, context: bool) -> None:
    shape = samples.x.shape
    if len(shape) != 3 or not shape[1] or shape[2] != len(FEATURES):
        raise DataError(f"heart_rate needs x[N, T, {len(FEATURES)}] ({', '.join(FEATURES)}), not x{list(shape)}")
    if samples.y.shape not in (shape[:1], shape[:2]):
        expected = f"y{list(shape[:2])} or y{list(shape[:1])}"
        raise DataError(f"heart_rate needs {expected} beside x{list(shape)}, not y{list(samples.y.shape)}")
    if not context:
        return
    if samples.context is None:
        raise DataError(_NO_CONTEXT)
    if samples.context.shape != (*shape[:2], len(CONTEXT)):
        raise DataError(
            f"heart_rate needs context{[*shape[:2], len(CONTEXT)]} ({', '.join(CONTEXT)}), "
            f"not context{list(samples.context.shape)}"
        )
