"""Minutes in the air of a flight, from its distance, its destination's altitude, the season, the hour and the weather.

Distance alone explains most of it, so the model is linear with a small network beside it: plain SGD finds the line at
once, and the network the rest (head winds, climbs, the season).
"""

import numpy as np
import torch
from torch import nn

from device.samples import Array, Samples
from device.tasks.losses import squared_errors, squared_losses
from device.tasks.task import Metric, Task
from sgfusion.errors import DataError, TaskError
from sgfusion.runfile import Section

SCALES = {
    "distance": (1000.0, 700.0),  # miles
    "altitude": (600.0, 1000.0),  # feet, of the destination
    "temp": (57.0, 18.0),  # °F, as all weather at the origin
    "dewp": (42.0, 19.0),  # °F
    "humid": (60.0, 20.0),  # %
    "wind_speed": (11.0, 6.0),  # mph
    "precip": (0.0, 0.1),  # inches: nearly always none
    "pressure": (1018.0, 7.5),  # millibars
    "visib": (9.0, 2.0),  # miles
}
"""Mean and spread by which raw numbers are scaled. Public: round numbers of the size that the published data set as a
whole has, the same for every device; no device's own data is behind them.
"""

PERIODS = {"month": 12.0, "hour": 24.0, "wind_dir": 360.0}
"""Numbers that come round again; the model has the sine and the cosine of each."""

FEATURES = (
    *("distance", "altitude", "month", "hour"),
    *("temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib"),
)
"""The columns of raw samples."""

SCALED = len(SCALES) + 2 * len(PERIODS)
AIR_TIME_MINUTES = (150.0, 95.0)
EDGES = np.linspace(0.0, 700.0, 29)
"""Bins of 25 minutes."""

HIDDEN = 32
RMSE_MINUTES = Metric("RMSE", "min", root=True, lower_is_better=True)


class Options(Section):
    """None so far."""


class Flights(nn.Module):
    """Minutes in the air, `[N]`."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.line = nn.Linear(features, 1)
        self.hidden = nn.Linear(features, HIDDEN)
        self.bend = nn.Linear(HIDDEN, 1, bias=False)

    def forward(self, x: torch.Tensor, _context: torch.Tensor | None) -> torch.Tensor:
        """Of scaled features."""
        mean, spread = AIR_TIME_MINUTES
        out: torch.Tensor = (self.line(x) + self.bend(torch.tanh(self.hidden(x)))).squeeze(-1) * spread + mean
        return out


def make_task(_options: Options) -> Task:
    """The task; its labels and its error are in minutes, its loss in spreads of the air time squared."""
    return Task(
        name="flights",
        build=_build,
        losses=squared_losses(AIR_TIME_MINUTES[1]),
        scores=squared_errors,
        metric=RMSE_MINUTES,
        edges=EDGES,
        check=check,
        scale=scale,
        stackable=True,
    )


def check(samples: Samples) -> None:
    """Refuse samples that are neither raw nor scaled ones of flights."""
    _check(samples, len(FEATURES), SCALED)


def scale(samples: Samples) -> Samples:
    """Raw samples in the model's units: single numbers first, then sines and cosines; labels stay in minutes."""
    _check(samples, len(FEATURES))
    columns: list[Array] = []
    for name, (mean, spread) in SCALES.items():
        columns.append((samples.x[:, FEATURES.index(name)] - mean) / spread)
    for name, period in PERIODS.items():
        angle = samples.x[:, FEATURES.index(name)] * (2 * np.pi / period)
        columns += [np.sin(angle), np.cos(angle)]
    return Samples(np.stack(columns, axis=1), samples.y)


def _build(features: int, _context: int) -> nn.Module:
    if features != SCALED:
        raise TaskError(f"flights has {SCALED} scaled features, not {features}: scale the samples first")
    return Flights(features)


def _check(samples: Samples, *widths: int) -> None:
    shape = samples.x.shape
    if len(shape) != 2 or shape[1] not in widths:
        columns = " or ".join(f"x[N, {width}]" for width in widths)
        raise DataError(f"flights needs {columns} ({', '.join(FEATURES)}), not x{list(shape)}")
    if samples.y.ndim != 1:
        raise DataError(f"flights needs y[N], one air time a flight, not y{list(samples.y.shape)}")
