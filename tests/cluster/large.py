"""A task with as many weights as one likes, of which few matter: to see large models pass."""

import numpy as np
import torch
from torch import nn

from device.samples import Samples
from device.tasks.losses import squared_errors
from device.tasks.task import RMSE_UNITLESS, Task
from sgfusion.runfile import Count, Section


class Options(Section):
    """The keys of `[task]`."""

    weights: Count


class Large(nn.Module):
    """Linear in the features by the first weights; the others are there, and come back with gradients of 0."""

    def __init__(self, weights: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((weights,), 0.01))

    def forward(self, x: torch.Tensor, _context: torch.Tensor | None) -> torch.Tensor:
        return torch.mv(x, self.weight[: x.shape[1]])


def make_task(options: Options) -> Task:
    """The task."""
    return Task(
        name="large",
        build=lambda _features, _context: Large(options.weights),
        losses=lambda output, y: squared_errors(output, y) / 2,
        scores=squared_errors,
        metric=RMSE_UNITLESS,
        edges=np.linspace(-15, 15, 16),
        check=check,
        scale=lambda samples: samples,
    )


def check(_samples: Samples) -> None:
    """All are."""


make_task.options = Options  # type: ignore[attr-defined]
