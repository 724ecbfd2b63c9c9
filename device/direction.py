"""What a device returns for requested weights (method 6): on a device, and in the simulator."""

import numpy as np
import numpy.typing as npt

from device.batch import Batch
from device.learner import Learner
from sgfusion.runfile import Update

Vector = npt.NDArray[np.float32]


def device_direction(learner: Learner, theta: Vector, batch: Batch, update: Update) -> Vector:
    """What a device returns for `θ`: its gradient, or the way its local epochs went."""
    return learner.gradient(theta, batch) if update.kind == "gradient" else learner.delta(theta, batch, update)


def direction_and_loss(learner: Learner, theta: Vector, batch: Batch, update: Update) -> tuple[Vector, float]:
    """`device_direction`, the same to the bit, and the mean loss that it met on the way."""
    if update.kind == "gradient":
        return learner.gradient_and_loss(theta, batch)
    return learner.delta_and_loss(theta, batch, update)


def passes_of(batch: Batch, update: Update) -> int:
    """Gradients that a device computes for its direction: one, or one for each step of its local epochs."""
    if update.kind == "gradient":
        return 1
    return (update.epochs or 1) * -(-len(batch) // (update.batch or len(batch)))
