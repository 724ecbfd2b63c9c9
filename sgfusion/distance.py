"""How far apart zones are: distances between their label histograms (method 3)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from sgfusion.arrays import as_floats
from sgfusion.errors import DistanceError
from sgfusion.histogram import checked_histograms

Floats = npt.NDArray[np.float64]
Metric = Literal["euclidean", "manhattan", "minkowski"]

_EXPONENT = {"euclidean": 2, "manhattan": 1}


def zone_distances(
    histograms: Sequence[npt.ArrayLike] | Floats,
    metric: Metric = "euclidean",
    p: float = 2,
    *,
    zones: Sequence[str] | None = None,
) -> Floats:
    """The full graph `d(Y_z, Y_z')`: symmetric, zero on the diagonal, exactly zero between equal histograms.

    `p` is Minkowski's exponent and is refused with another metric. `zones` are names for error messages.
    """
    rows = checked_histograms(histograms, "zone", zones)
    norm = _norm(metric, p)
    distances = np.zeros((len(rows), len(rows)))
    for z in range(len(rows) - 1):
        # Differences, not the faster a² + b² - 2ab: that one cancels, and equal histograms would not be at distance 0.
        distances[z, z + 1 :] = norm(np.abs(rows[z + 1 :] - rows[z]))
    return distances + distances.T


def checked_distances(distances: npt.ArrayLike) -> Floats:
    """The matrix as contiguous float64, refused unless square, finite, >= 0, symmetric and zero on the diagonal."""
    array = np.ascontiguousarray(as_floats(distances, "distances", DistanceError))
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise DistanceError(f"distances of shape {array.shape}: give a square matrix, one row and column for each zone")
    for what, wrong in (
        ("is not finite: a zone cannot be infinitely far away, bound the metric", ~np.isfinite(array)),
        ("is negative", array < 0),
        ("is on the diagonal: a zone is at distance 0 from itself", np.diag(np.diag(array) != 0)),
        ("differs from its mirror image: distances are symmetric", array != array.T),
    ):
        if wrong.any():
            a, b = np.argwhere(wrong)[0]
            raise DistanceError(f"distances[{a}, {b}] = {array[a, b]} {what}")
    return array


def _norm(metric: Metric, p: float) -> Callable[[Floats], Floats]:
    """The norm of each row of absolute differences."""
    if metric not in ("euclidean", "manhattan", "minkowski"):
        raise DistanceError(f"metric = {metric!r}: choose 'euclidean', 'manhattan' or 'minkowski'")
    if metric == "minkowski":
        if not (np.isfinite(p) and p >= 1):
            raise DistanceError(f"p = {p}: Minkowski's exponent is a finite number >= 1, else it gives no metric")
        return partial(_minkowski, p=p)
    if p not in (2, _EXPONENT[metric]):  # 2 is the default, and so as good as nothing said
        raise DistanceError(f"p = {p} belongs to metric 'minkowski', not to {metric!r}: leave it out")
    return partial(_minkowski, p=_EXPONENT[metric])


def _minkowski(gaps: Floats, p: float) -> Floats:
    # Relative to the largest gap, or powers of small gaps would vanish and those of large ones overflow.
    largest = gaps.max(axis=1)
    scale = np.where(largest > 0, largest, 1.0)
    if p == 1:
        lengths: Floats = gaps.sum(axis=1)
    elif p == 2:
        lengths = scale * np.sqrt(np.square(gaps / scale[:, None]).sum(axis=1))
    else:
        lengths = scale * ((gaps / scale[:, None]) ** p).sum(axis=1) ** (1 / p)
    return lengths
