"""Ridge regression whose gradients take their time and no processor's: a run that lasts while a test looks at it.

A cluster that trains as fast as it can takes both cores of a small machine for as long as anybody looks, from the tests
beside it too.
"""

import dataclasses
import time

import torch

from device.tasks import linear
from device.tasks.linear import Options
from device.tasks.task import Task

UNHURRIED = "task.name=tests.unhurried:make_task"
"""Sets it in a run file, for processes that are started in the repository."""
SECONDS = 0.01
"""Of each gradient: some rounds a second of four zones with three devices each."""


def make_task(options: Options) -> Task:
    """The task."""
    task = linear.make_task(options)

    def losses(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        time.sleep(SECONDS)
        return task.losses(output, y)

    return dataclasses.replace(task, losses=losses, stackable=False)


make_task.options = Options  # type: ignore[attr-defined]
