"""Fusing a zone's gradient with those of the zones it drew, by attention (method 7).

Sums run in float64 in the order given, row by row and without BLAS, so the result has the same bits in one process, on
another core count, or in a container.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from sgfusion.errors import GradientError

Vector = npt.NDArray[np.floating]
Floats = npt.NDArray[np.float64]
Similarity = Literal["inner", "cosine"]

PART = 1 << 20
"""Elements that are widened to float64 at a time. It is part of the arithmetic: sums run over parts, part by part."""


def attention(local: Vector, shared: npt.NDArray[np.floating], similarity: Similarity = "inner") -> Floats:
    """`λ = softmax(sigmoid(⟨g_z, g_z'⟩))` over the drawn zones: `[K]`, summing to 1; empty if none was drawn."""
    if similarity not in get_args(Similarity):
        raise GradientError(f"similarity = {similarity!r}: choose 'inner' or 'cosine'")
    return attention_of_checked(*_checked(local, shared), similarity)


def attention_of_checked(local: Vector, shared: npt.NDArray[np.floating], similarity: Similarity) -> Floats:
    """`attention` of vectors that were checked before."""
    if not len(shared):
        return np.empty(0)
    alike = np.zeros(len(shared))
    for part in _parts(len(local)):
        wide = local[part].astype(np.float64)
        alike += [np.multiply(wide, row, out=row).sum() for row in _widened(shared[:, part])]
    if similarity == "cosine":
        lengths = np.array([norm(row) for row in shared]) * norm(local)
        alike = np.divide(alike, lengths, out=np.zeros_like(alike), where=lengths > 0)
    # math.exp, not np.exp: that one has other last bits on processors with other vector instructions.
    weights = [math.exp(_sigmoid(x)) for x in alike.tolist()]
    return np.array(weights) / math.fsum(weights)


def fuse(local: Vector, shared: npt.NDArray[np.floating], similarity: Similarity = "inner") -> Vector:
    """The direction `g_z + Σ λ_z' g_z'` of the size and type of `local`; `g_z` itself if no zone was drawn."""
    return fuse_weighted(local, shared, attention(local, shared, similarity))


def fuse_weighted(local: Vector, shared: npt.NDArray[np.floating], weights: Floats) -> Vector:
    """`fuse` with the attention weights already known."""
    return weighted_sum(*_checked(local, shared), weights)


def weighted_sum(local: Vector, shared: npt.NDArray[np.floating], weights: Floats) -> Vector:
    """`fuse_weighted` of vectors that were checked before."""
    fused = np.empty_like(local)
    for part in _parts(len(local)):
        total = local[part].astype(np.float64)
        for weight, row in zip(weights, _widened(shared[:, part]), strict=True):
            total += np.multiply(row, weight, out=row)
        fused[part] = total
    return fused


class RunningMean:
    """`1/m Σ_u g_u`, one direction at a time: an edge with many devices need not hold all their answers.

    Its memory is one float64 buffer of the size of a direction, and the mean itself once that is asked for.
    """

    def __init__(self) -> None:
        self._total: Floats | None = None
        self.count = 0

    def add(self, direction: Vector) -> None:
        """The next in order: that of the devices' ids, on which the last bits hang."""
        self.add_all((direction,))

    def add_all(self, directions: Iterable[Vector]) -> None:
        """The next ones in order."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite the trainer finds out
            for direction in directions:
                if self._total is None:
                    self._total = direction.astype(np.float64)
                elif direction.shape == self._total.shape:
                    # A float32 vector is widened in blocks on the way, not as a whole.
                    np.add(self._total, direction, out=self._total)
                else:
                    shapes = f"{direction.shape} after those of {self._total.shape}"
                    raise GradientError(f"a direction of shape {shapes}: it is another model's")
                self.count += 1

    def mean(self) -> npt.NDArray[np.float32]:
        """Of all that were added; more may follow."""
        if self._total is None:
            raise GradientError("the mean of no gradients: a zone has at least one device")
        mean = np.empty(self._total.shape, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            # Divided in float64 and rounded once, block by block.
            np.divide(self._total, self.count, out=mean, dtype=np.float64, casting="same_kind")
        return mean


def mean_direction(directions: Iterable[Vector]) -> npt.NDArray[np.float32]:
    """`1/m Σ_u g_u` of a zone's devices, added in the order given (that of their ids) and in float64 (method 6)."""
    mean = RunningMean()
    mean.add_all(directions)
    return mean.mean()


def norm(vector: Vector) -> float:
    """The Euclidean length, in float64 whatever the vector's type."""
    return math.sqrt(sum(_square(vector[part]) for part in _parts(len(vector))))


def distance(a: Vector, b: Vector) -> float:
    """`norm(a - b)`."""
    return math.sqrt(sum(_square(a[part] - b[part]) for part in _parts(len(a))))


def _square(vector: Vector) -> np.float64:
    wide = vector.astype(np.float64)
    square: np.float64 = np.multiply(wide, wide, out=wide).sum()
    return square


def _parts(length: int) -> Iterator[slice]:
    """A vector in parts, so that what is widened to float64 on the way stays small beside a large model."""
    return (slice(start, start + PART) for start in range(0, length, PART))


def _widened(rows: npt.NDArray[np.floating]) -> Iterator[Floats]:
    """Each row in float64, in one buffer that the next row overwrites: making one takes as long as filling it."""
    buffer = np.empty(rows.shape[1:])
    for row in rows:
        buffer[:] = row
        yield buffer


def _sigmoid(x: float) -> float:
    """`1 / (1 + exp(-x))`, written so that exp cannot overflow. It is in [0, 1]: the softmax needs no such care."""
    decay = math.exp(-abs(x))
    return (1.0 if x >= 0 else decay) / (1.0 + decay)


def _usable(vector: Vector) -> npt.NDArray[np.bool_]:
    """Where numbers are finite, as float32: their products then are too, in float64."""
    if vector.dtype == np.float32:
        return np.isfinite(vector)
    return np.abs(vector) <= np.finfo(np.float32).max


def _floating(vector: npt.ArrayLike) -> Vector:
    array = np.asarray(vector)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _checked(local: Vector, shared: npt.NDArray[np.floating]) -> tuple[Vector, npt.NDArray[np.floating]]:
    local, shared = _floating(local), _floating(shared)
    if shared.ndim and not len(shared):
        shared = np.empty((0, local.size), local.dtype)
    if local.ndim != 1 or shared.ndim != 2 or shared.shape[1] != len(local):
        raise GradientError(f"gradients of shapes {local.shape} and {shared.shape}: give [P] and [K, P] of one model")
    if not _usable(local).all():
        raise GradientError(f"the zone's own gradient is {local[~_usable(local)][0]} in places: it has diverged")
    bad = ~_usable(shared).all(axis=1)
    if bad.any():
        raise GradientError(f"shared gradient {int(np.argmax(bad))} is not finite: leave that zone out of the round")
    return local, shared
