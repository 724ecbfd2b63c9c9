"""A task's model with its weights as one flat vector: gradients on requested weights, and evaluation (method 6).

Parameters are views into one tensor and their gradients views into another, so that weights come in and a gradient goes
out with one copy each. One thread: results do not depend on the number of cores, and processes share a machine well.
The model is in its evaluation mode throughout: dropout would make an answer more than a function of `θ` and the data.
"""

import hashlib
import math
import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from device.batch import Batch
from device.samples import Samples
from device.stack import Stack, row_gradients
from device.tasks.task import Task
from sgfusion.errors import GradientError, TaskError
from sgfusion.runfile import Update

Vector = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float32]

CHUNK = 1 << 20
"""Numbers in one pass, inputs and layers: bounds the memory of long sequences, and stays in the cache. Near the best by
measurement, for 15 features and for LSTMs of both sizes over 20 to 100 steps; a quarter of it cost up to 1.5 times.
"""

_SEEDING = threading.Lock()
"""Torch's generator is one for all threads: two models that are made at once would share its numbers."""


class Learner:
    """A task's model for samples of one shape. Not for several threads at once: it has one set of weights."""

    def __init__(self, task: Task, like: Samples) -> None:
        torch.set_num_threads(1)
        self.task = task
        self._features = like.x.shape[-1]
        self._context = 0 if like.context is None else like.context.shape[-1]
        self._model = self._build(seed=0).eval()
        parameters = list(self._model.parameters())
        self.size = sum(p.numel() for p in parameters)
        if not self.size or any(p.dtype != torch.float32 for p in parameters):
            raise TaskError(f"task {task.name!r}: its model needs parameters, and all of float32")
        self._theta = torch.zeros(self.size)
        self._gradient = torch.zeros(self.size)
        start = 0
        for parameter in parameters:
            part = slice(start, start + parameter.numel())
            parameter.data = self._theta[part].view(parameter.shape)
            parameter.grad = self._gradient[part].view(parameter.shape)
            start = part.stop
        self._theta_array, self._gradient_array = self._theta.numpy(), self._gradient.numpy()
        self._loaded: Vector | None = None
        steps = math.prod(like.x.shape[1:-1])
        # A model of P parameters has layers about √P wide.
        self._chunk = max(1, CHUNK // round(steps * (self._features + self._context + self.size**0.5)))

    @property
    def fingerprint(self) -> str:
        """Of the model's shape: weights of one fingerprint fit each other."""
        shapes = [(name, tuple(p.shape)) for name, p in self._model.named_parameters()]
        return hashlib.sha256(repr((self.task.name, shapes)).encode()).hexdigest()[:16]

    def initial(self, seed: int) -> Vector:
        """`θ⁰`: torch's own initial weights of the model, a function of the seed alone."""
        return torch.cat([p.detach().reshape(-1) for p in self._build(seed).parameters()]).numpy()

    def gradient(self, theta: Vector, batch: Batch) -> Vector:
        """`∇ℓ(θ)` of the batch's weighted mean loss."""
        self._load(theta)
        self._backward(batch)
        return self._gradient_array.copy()

    def gradient_and_loss(self, theta: Vector, batch: Batch) -> tuple[Vector, float]:
        """`gradient`, the same to the bit, and the mean loss `ℓ(θ)` itself, penalty included."""
        self._load(theta)
        loss = self._backward(batch, judged=True)
        return self._gradient_array.copy(), loss

    def gradients(self, theta: Vector, stack: Stack) -> Matrix:
        """`gradient` of each row of the stack, `[K, P]`, in one pass; for tasks that are `stackable`."""
        self._load(theta)
        rows = row_gradients(self._model, self.task.losses, stack)
        if self.task.penalty is not None:
            self._gradient.zero_()
            self.task.penalty(self._model).backward()  # type: ignore[no-untyped-call]
            rows = rows + self._gradient
        return rows.numpy()

    def delta(self, theta: Vector, samples: Batch, update: Update) -> Vector:
        """`θ_before - θ_after` of local epochs of SGD from `θ`, over batches in order of time (method 6).

        No shuffling: the answer is a function of `θ` and the device's data alone, whoever asks and whenever.
        """
        return self._local_epochs(theta, samples, update, judged=False)[0]

    def delta_and_loss(self, theta: Vector, samples: Batch, update: Update) -> tuple[Vector, float]:
        """`delta`, the same to the bit, and the mean loss over the samples as the first epoch met them.

        With one batch that is `ℓ(θ)`. With several, those after the first are judged by the weights that the steps
        before had come to: `ℓ(θ)` of all would cost a further pass.
        """
        return self._local_epochs(theta, samples, update, judged=True)

    def losses(self, theta: Vector, batch: Batch) -> Vector:
        """`ℓ` of each sample."""
        self._load(theta)
        with torch.inference_mode():
            losses = torch.cat([self._losses(part) for part in self._parts(batch)])
            if self.task.penalty is not None:
                losses += self.task.penalty(self._model)
        return losses.numpy()

    def evaluate(self, theta: Vector, batch: Batch | None) -> tuple[float, int]:
        """The sum of the metric's scores over all labels and their number; `(0, 0)` of no samples."""
        if batch is None:
            return 0.0, 0
        self._load(theta)
        total, count = 0.0, 0
        with torch.inference_mode():
            for part in self._parts(batch):
                scores = self.task.scores(self._model(part.x, part.context), part.y)
                total += float(scores.sum(dtype=torch.float64))
                count += scores.numel()
        return total, count

    def _load(self, theta: Vector) -> None:
        if theta.shape != (self.size,):
            raise GradientError(f"weights of shape {theta.shape} for a model of {self.size}: they are another model's")
        if theta is self._loaded:
            return
        self._theta_array[:] = theta
        sealed = theta.flags.owndata and not theta.flags.writeable  # the same object is then the same numbers
        self._loaded = theta if sealed else None

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """The batch in passes of nearly one size, none above the chunk."""
        passes = max(1, -(-len(batch) // self._chunk))
        return batch.chunks(-(-len(batch) // passes))

    def _losses(self, part: Batch) -> torch.Tensor:
        losses = self.task.losses(self._model(part.x, part.context), part.y)
        if losses.shape != part.weights.shape:
            shape = list(losses.shape)
            raise TaskError(
                f"task {self.task.name!r}: losses of shape {shape} for {len(part)} samples: give one a sample"
            )
        return losses

    def _backward(self, batch: Batch, *, judged: bool = False) -> float:
        """The batch's gradient, into its tensor; its mean loss if `judged`, else 0: asking torch for it takes time."""
        self._gradient.zero_()
        met = 0.0
        for part in self._parts(batch):
            loss = torch.dot(self._losses(part), part.weights)
            if self.task.penalty is not None:
                loss = loss + self.task.penalty(self._model) * part.weights.sum()
            loss.backward()  # type: ignore[no-untyped-call]
            if judged:
                met += loss.item()
        return met

    def _local_epochs(self, theta: Vector, samples: Batch, update: Update, *, judged: bool) -> tuple[Vector, float]:
        if update.epochs is None or update.rate is None:
            raise GradientError(f"update.kind = {update.kind!r} has no epochs: ask for a gradient")
        self._load(theta)
        self._loaded = None  # local epochs go on from here
        start, moved, met = self._theta.clone(), torch.zeros(self.size), 0.0
        for epoch in range(update.epochs):
            first = judged and epoch == 0
            for part in samples.chunks(update.batch or len(samples)):
                loss = self._backward(part if part is samples else part.part(slice(None)), judged=first)
                met += loss * len(part) / len(samples)
                # The sum is kept, not θ_before - θ_after of rounded weights: it has all its digits.
                moved.add_(self._gradient, alpha=update.rate)
                torch.sub(start, moved, out=self._theta)
        return moved.numpy(), met

    def _build(self, seed: int) -> torch.nn.Module:
        """A fresh model of the seed; torch's own random numbers go on as if it had not been made."""
        with _SEEDING, torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return self.task.build(self._features, self._context)
