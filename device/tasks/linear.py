"""Ridge regression: strongly convex, with all its numbers known by hand, to test the theorem on (method 10).

The loss of a sample is `1/2 (x·w - y)² + l2/2 ||w||²`, so `F` is `l2`-strongly convex at least and its minimum is the
solution of a linear system. Weights begin at 0.
"""

from typing import Annotated, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from device.samples import Samples
from device.tasks.losses import squared_errors
from device.tasks.task import RMSE_UNITLESS, Task
from sgfusion.errors import DataError
from sgfusion.runfile import Count, Section

Number = Annotated[float, Field(allow_inf_nan=False)]


class Options(Section):
    """`l2` counts for every weight, the bias too; labels are counted in `bins` equal bins from `low` to `high`."""

    l2: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.01
    bias: bool = False
    low: Number = -15.0
    high: Number = 15.0
    bins: Count = 15

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low = {self.low} is not below high = {self.high}: labels are counted between them")
        return self


class Linear(nn.Module):
    """`x·w`, and the bias if there is one: `[N]`."""

    def __init__(self, features: int, *, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(features))
        self.bias = nn.Parameter(torch.zeros(())) if bias else None

    def forward(self, x: torch.Tensor, _context: torch.Tensor | None) -> torch.Tensor:
        """Of features, `[N, F]`."""
        out = torch.mv(x, self.weight)
        return out if self.bias is None else out + self.bias


def make_task(options: Options) -> Task:
    """The task; its penalty is the ridge."""

    def build(features: int, _context: int) -> nn.Module:
        return Linear(features, bias=options.bias)

    def penalty(model: nn.Module) -> torch.Tensor:
        return torch.stack([p.square().sum() for p in model.parameters()]).sum() * (options.l2 / 2)

    return Task(
        name="linear",
        build=build,
        losses=lambda output, y: squared_errors(output, y) / 2,
        scores=squared_errors,
        metric=RMSE_UNITLESS,
        edges=np.linspace(options.low, options.high, options.bins + 1),
        check=check,
        scale=lambda samples: samples,
        penalty=penalty if options.l2 else None,
        stackable=True,
    )


def check(samples: Samples) -> None:
    """Refuse samples that are not a row of numbers and a label each."""
    if samples.x.ndim != 2 or not samples.x.shape[1]:
        raise DataError(f"linear needs x[N, F], not x{list(samples.x.shape)}")
    if samples.y.ndim != 1:
        raise DataError(f"linear needs y[N], one label a sample, not y{list(samples.y.shape)}")
