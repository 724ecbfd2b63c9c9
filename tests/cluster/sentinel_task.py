"""A task of a test's own that fails on one device's labels, and says them: as anybody's code might."""

import warnings
from dataclasses import replace

import torch

from device.tasks import linear
from device.tasks.task import Task

BROKEN = 9_000.0
"""Labels above this are of the device whose gradients fail."""


def make_task(options: linear.Options) -> Task:
    task = linear.make_task(options)

    def losses(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if not torch._C._functorch.is_gradtrackingtensor(y) and bool((y > BROKEN).any()):
            odd = f"odd labels: {y.tolist()}"
            warnings.warn(odd, stacklevel=1)
            raise ValueError(odd) from OSError(odd)
        return task.losses(output, y)

    return replace(task, losses=losses, stackable=False)


make_task.options = linear.Options  # type: ignore[attr-defined]
