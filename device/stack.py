"""Several owners' batches side by side, so that one pass gives each owner's gradient on the same weights.

For small models a pass is nearly all overhead, and a zone asks many others for gradients on one set of weights. Rows
are padded with samples of weight 0. Not for LSTMs: they do not run under `vmap`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.func import functional_call, grad, vmap

from device.batch import Batch

WORTHWHILE = 6
"""Owners from which on one pass for all costs less than a pass for each, by measurement (560 weights: 3 to 4 ms against
0.6 ms each)."""
CHUNK = 1 << 22
"""Numbers in one pass: bounds the memory."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Batches as rows. Invariant: every row's weights sum to 1, and are 0 where it is padded."""

    x: torch.Tensor
    y: torch.Tensor
    weights: torch.Tensor

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> "Stack":
        """Each batch as a row."""
        longest = max(map(len, batches))

        def padded(parts: Sequence[torch.Tensor]) -> torch.Tensor:
            rows = torch.zeros(len(parts), longest, *parts[0].shape[1:])
            for row, part in zip(rows, parts, strict=True):
                row[: len(part)] = part
            return rows

        return cls(*(padded([getattr(batch, name) for batch in batches]) for name in ("x", "y", "weights")))

    def __len__(self) -> int:
        return len(self.weights)

    def rows(self, which: Sequence[int]) -> "Stack":
        """Those rows, cut to the longest of them."""
        index = torch.as_tensor(which)
        weights = self.weights[index]
        used = int((weights != 0).any(dim=0).sum())
        return Stack(self.x[index, :used], self.y[index, :used], weights[:, :used])


def row_gradients(
    model: torch.nn.Module, losses: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], stack: Stack
) -> torch.Tensor:
    """`[K, P]`: the gradient of each row's weighted mean loss on the model's weights."""
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def mean_loss(of: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        return torch.dot(losses(functional_call(model, of, (x, None)), y), shares)

    numbers = stack.x[0].numel() + stack.weights.shape[1] * round(sum(w.numel() for w in weights.values()) ** 0.5)
    at_once = max(1, CHUNK // numbers)
    of_rows = vmap(grad(mean_loss), in_dims=(None, 0, 0, 0), chunk_size=at_once)
    found: dict[str, torch.Tensor] = of_rows(weights, stack.x, stack.y, stack.weights)
    return torch.cat([part.reshape(len(stack), -1) for part in found.values()], dim=1)
