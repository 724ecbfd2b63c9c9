"""A zone's model for use outside: named weights, and a program that any torch can load and run.

What leaves is checked: loaded again, it gives the model's own numbers to the bit, for another number of samples too.
"""

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from torch import nn

from device.samples import Array, Samples
from device.tasks.task import Task
from sgfusion.errors import GradientError, TaskError

Vector = npt.NDArray[np.float32]
Format = Literal["safetensors", "torchscript", "torch.export"]
Inputs = tuple[torch.Tensor, ...]
CHUNK = 1024
"""Samples that are predicted at once."""


class Program(NamedTuple):
    """A model as one file."""

    content: bytes
    steps: int | None
    """The number of steps that every sequence must have; None if any will do."""


class _WithoutContext(nn.Module):
    """A model that is given no context: its program then takes one argument."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.model(x, None)
        return out


def model_of(task: Task, like: Samples, theta: Vector) -> nn.Module:
    """The task's model for samples like these, with the weights `theta`, in its evaluation mode."""
    torch.set_num_threads(1)  # as devices compute
    model = task.build(like.x.shape[-1], 0 if like.context is None else like.context.shape[-1]).eval()
    size = sum(parameter.numel() for parameter in model.parameters())
    if theta.shape != (size,):
        raise GradientError(f"weights of shape {theta.shape} for a model of {size}: they are another model's")
    start = 0
    for parameter in model.parameters():
        part = theta[start : start + parameter.numel()]
        parameter.data = torch.from_numpy(part.astype(np.float32)).view(parameter.shape)
        parameter.requires_grad = False
        start += parameter.numel()
    return model


def named_weights(model: nn.Module) -> bytes:
    """The state dict as safetensors: each parameter with its name and shape."""
    content: bytes = safetensors.torch.save({name: value.contiguous() for name, value in model.state_dict().items()})
    return content


def predicted(model: nn.Module, samples: Samples) -> Array:
    """The model's output for scaled samples, in the task's units."""
    with torch.inference_mode():
        parts = [model(*_both(samples.part(start, start + CHUNK))) for start in range(0, max(1, len(samples)), CHUNK)]
    return torch.cat(parts).numpy()


def program(model: nn.Module, like: Samples, form: Literal["torchscript", "torch.export"]) -> Program:
    """The model as a program, which takes `x`, and `context` if the task has one, of scaled samples."""
    inputs = _probe(like)
    bare = model if like.context is not None else _WithoutContext(model)
    if form == "torchscript":
        content, steps = _traced(bare, inputs(3)), None
        with _quiet():
            loaded: Callable[..., torch.Tensor] = torch.jit.load(io.BytesIO(content))  # type: ignore[no-untyped-call]
    else:
        content, steps = _exported(bare, inputs(3))
        # Its guards are too strict: of an LSTM with 5 features of context one says that there are not 5 samples.
        loaded = torch.export.load(io.BytesIO(content)).module(check_guards=False)
    longer = 0 if steps is not None else 2
    with torch.no_grad(), _quiet():
        for probe in (inputs(3), inputs(5, longer), inputs(1, longer)):
            if not torch.equal(loaded(*probe), bare(*probe)):
                raise TaskError(f"{type(model).__name__} as {form} gives other numbers than the model: use another")
    return Program(content, steps)


def _both(samples: Samples) -> tuple[torch.Tensor, torch.Tensor | None]:
    context = None if samples.context is None else torch.from_numpy(samples.context)
    return torch.from_numpy(samples.x), context


def _probe(like: Samples) -> Callable[..., Inputs]:
    """Made-up samples of the same shape: any number of them, any number of steps more."""
    shapes = [array.shape[1:] for array in (like.x, like.context) if array is not None]
    random = torch.Generator().manual_seed(0)

    def inputs(count: int, longer: int = 0) -> Inputs:
        return tuple(
            torch.randn(count, *((shape[0] + longer, *shape[1:]) if len(shape) > 1 else shape), generator=random)
            for shape in shapes
        )

    return inputs


def _traced(model: nn.Module, inputs: Inputs) -> bytes:
    content = io.BytesIO()
    with torch.no_grad(), _quiet():
        traced = torch.jit.trace(model, inputs, check_trace=False)  # type: ignore[no-untyped-call]
        torch.jit.save(traced, content)
    return content.getvalue()


def _exported(model: nn.Module, inputs: Inputs) -> tuple[bytes, int | None]:
    """Any number of samples; any number of steps too, unless the model's layers want a fixed one, as LSTMs do."""
    free = dict.fromkeys(range(inputs[0].ndim - 1), torch.export.Dim.AUTO)
    with torch.no_grad(), _quiet():
        made = torch.export.export(model, inputs, dynamic_shapes=(tuple(free for _ in inputs)))
        content = io.BytesIO()
        torch.export.save(made, content)
    shapes = [node.meta["val"].shape for node in made.graph.nodes if node.op == "placeholder"][-len(inputs) :]
    # A dimension that was found to be fixed may still be a symbol, of one value.
    if str(shapes[0][0]).isdecimal():
        raise TaskError(f"{type(model).__name__} as torch.export takes {shapes[0][0]} samples alone: use torchscript")
    fixed = inputs[0].ndim == 3 and str(shapes[0][1]).isdecimal()
    return content.getvalue(), inputs[0].shape[1] if fixed else None


@contextmanager
def _quiet() -> Iterator[None]:
    """TorchScript is deprecated and says so at every step; it is the one form that takes sequences of any length."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
