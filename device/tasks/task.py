"""What a task is, and how a run file names one.

A task is a module of this package, or one of yours as `module:name`. It has a pydantic `Options(Section)` for its keys
of `[task]` and a function `make_task(options) -> Task`; yours names that function, and has its options' type as the
attribute `options`; a task without options may be named itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from device.named import Kind
from device.samples import Samples
from sgfusion.errors import TaskError
from sgfusion.evaluation import Metric
from sgfusion.histogram import checked_edges
from sgfusion.runfile import RunFile

__all__ = ["ACCURACY", "RMSE_UNITLESS", "TASKS", "Metric", "Task", "load_task"]

Floats = npt.NDArray[np.float64]

TASKS = ("activity", "flights", "heart_rate", "linear")
_KIND = Kind("task.name", "device.tasks", TASKS, "make_task", TaskError)

RMSE_UNITLESS = Metric("RMSE", "", root=True, lower_is_better=True)
ACCURACY = Metric("accuracy", "", root=False, lower_is_better=False)


@dataclass(frozen=True)
class Task:
    """Model, loss, metric, label bins and public scaling constants.

    `build(features, context)` makes the model for samples with so many features (and so many of context, 0 for none);
    its `forward(x, context)` takes scaled samples. `losses(output, y)` is `ℓ` of each sample, `[N]`: for a sequence the
    mean over its steps. `scores(output, y)` are the metric's scores, one a label. `check` refuses samples that
    are not the task's, `scale` puts raw ones into the model's units. `penalty(model)` is added to the loss of every
    sample: what a loss has of the weights alone, such as a ridge. `stackable` models run under `torch.func.vmap`, and
    take no context: many owners' gradients then cost one pass.
    """

    name: str
    build: Callable[[int, int], torch.nn.Module]
    losses: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    metric: Metric
    edges: Floats
    check: Callable[[Samples], None]
    scale: Callable[[Samples], Samples]
    penalty: Callable[[torch.nn.Module], torch.Tensor] | None = None
    stackable: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", checked_edges(self.edges))


def load_task(run: RunFile) -> Task:
    """The task that the run file names, with its options checked."""
    name = run.task.name
    maker, options = _KIND.find(name)
    task = maker(run.task.options_as("task", options)) if callable(maker) else maker
    if not isinstance(task, Task):
        raise TaskError(f"task.name = {name!r}: it gave {task!r}; name a function of the options that returns a Task")
    return task
