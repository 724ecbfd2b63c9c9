"""Squared errors of a number at each label, for the tasks of regression."""

from collections.abc import Callable

import torch

Losses = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def squared_errors(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One a label, in its unit squared. A sequence with one label (`y[N]`) is judged by its last step."""
    return torch.square(_beside(output, y) - y)


def squared_losses(spread: float) -> Losses:
    """One a sample: the mean over its labels of the squared error in units of `spread`, near 1 before training."""
    scale = spread**-2

    def losses(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        errors = squared_errors(output, y)
        return (errors.mean(1) if errors.ndim == 2 else errors) * scale

    return losses


def _beside(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return output[:, -1] if output.ndim > y.ndim else output
