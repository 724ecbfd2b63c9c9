"""Which of several classes a sample is, such as the activity that a wearer is at (method 1: a class is its own bin).

A hidden layer, then a linear one. A sequence goes through the hidden layer step by step and its mean over the steps
goes on, so any number of steps will do, and one step is the same as none. Features are taken as they are: scale them in
the source.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from device.samples import Samples
from device.tasks.task import ACCURACY, Task
from sgfusion.errors import DataError
from sgfusion.histogram import class_edges
from sgfusion.runfile import Count, Section


class Options(Section):
    """Labels are `0` to `classes - 1`; `hidden` is the width of the hidden layer."""

    classes: Count
    hidden: Count = 32


class Activity(nn.Module):
    """A score for each class, `[N, classes]`: the logarithm of its odds."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor, _context: torch.Tensor | None) -> torch.Tensor:
        """Of features, `[N, F]` or `[N, T, F]`."""
        seen = torch.relu(self.hidden(x))
        out: torch.Tensor = self.head(seen.mean(1) if seen.ndim == 3 else seen)
        return out


def make_task(options: Options) -> Task:
    """The task: cross-entropy as the loss, and the share of samples whose class has the highest score."""

    def build(features: int, _context: int) -> nn.Module:
        return Activity(features, options.hidden, options.classes)

    def check(samples: Samples) -> None:
        _check(samples, options.classes)

    return Task(
        name="activity",
        build=build,
        losses=_losses,
        scores=_scores,
        metric=ACCURACY,
        edges=class_edges(options.classes),
        check=check,
        scale=lambda samples: samples,
        stackable=True,
    )


def _losses(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(output, y.long(), reduction="none")


def _scores(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (output.argmax(-1) == y).float()


def _check(samples: Samples, classes: int) -> None:
    shape = samples.x.shape
    if len(shape) not in (2, 3) or not all(shape[1:]):
        raise DataError(f"activity needs x[N, F] or x[N, T, F], not x{list(shape)}")
    if samples.y.ndim != 1:
        raise DataError(f"activity needs y[N], one class a sample, not y{list(samples.y.shape)}")
    wrong = np.flatnonzero((samples.y % 1 != 0) | (samples.y < 0) | (samples.y >= classes))
    if len(wrong):
        label = f"{samples.y[wrong[0]]:g}"
        raise DataError(
            f"activity: sample {wrong[0]} has label {label}: with task.classes = {classes}, labels are "
            f"whole numbers from 0 to {classes - 1}",
            shows=f"label {label}",
        )
