"""Samples as tensors, with the weights that make a mean loss of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from device.samples import Samples, joined
from sgfusion.errors import DataError


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples as tensors, each with the weight that its loss has in the mean. Invariant: weights sum to 1."""

    x: torch.Tensor
    y: torch.Tensor
    context: torch.Tensor | None
    weights: torch.Tensor

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def joined(cls, batches: Sequence["Batch"]) -> "Batch":
        """Batches of one device each as one batch in which every device counts the same."""
        contexts = [batch.context for batch in batches if batch.context is not None]
        return cls(
            torch.cat([batch.x for batch in batches]),
            torch.cat([batch.y for batch in batches]),
            torch.cat(contexts) if contexts else None,
            torch.cat([batch.weights for batch in batches]) / len(batches),
        )

    def every_other(self) -> tuple["Batch", "Batch"]:
        """Every other sample, and the rest; weights in each sum to 1. For batches of one device."""
        return self.part(slice(0, None, 2)), self.part(slice(1, None, 2))

    def part(self, which: slice) -> "Batch":
        """Those samples as a batch of their own."""
        context = None if self.context is None else self.context[which]
        weights = self.weights[which]
        return Batch(self.x[which], self.y[which], context, weights / weights.sum())

    def chunks(self, size: int) -> Iterator["Batch"]:
        """The batch in parts of `size` samples; their weights are still those in the whole."""
        if size >= len(self):
            yield self
            return
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            context = None if self.context is None else self.context[part]
            yield Batch(self.x[part], self.y[part], context, self.weights[part])


def batch_of(*devices: Samples) -> Batch:
    """All samples of the devices as one batch in which every device counts the same, whatever its size."""
    used = [samples for samples in devices if len(samples)]
    if not used:
        raise DataError("a batch of no samples has no mean loss: leave out who has none")
    together = joined(used)
    weights = np.concatenate([np.full(len(s), 1 / (len(used) * len(s)), np.float32) for s in used])
    return Batch(
        torch.from_numpy(together.x),
        torch.from_numpy(together.y),
        None if together.context is None else torch.from_numpy(together.context),
        torch.from_numpy(weights),
    )
