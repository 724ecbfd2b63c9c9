"""How far apart zones are: distances between their label histograms (method 3)."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from sgfusion.errors import DistanceError, HistogramError

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
    rows = _checked_histograms(histograms, zones)
    norm = _norm(metric, p)
    distances = np.zeros((len(rows), len(rows)))
    for z in range(len(rows) - 1):
        # Differences, not the faster a² + b² - 2ab: that one cancels, and equal histograms would not be at distance 0.
        distances[z, z + 1 :] = norm(np.abs(rows[z + 1 :] - rows[z]))
    return distances + distances.T


def checked_distances(distances: npt.ArrayLike) -> Floats:
    """The matrix as contiguous float64, refused unless square, finite, >= 0, symmetric and zero on the diagonal."""
    array = np.ascontiguousarray(distances, np.float64)
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


def _checked_histograms(histograms: Sequence[npt.ArrayLike] | Floats, zones: Sequence[str] | None) -> Floats:
    if not len(histograms):
        raise HistogramError("no histograms: a run has at least one zone")
    if zones is not None and len(zones) != len(histograms):
        raise HistogramError(f"{len(zones)} names for {len(histograms)} histograms: give one name for each zone")
    rows = [np.asarray(histogram, np.float64) for histogram in histograms]
    for z, row in enumerate(rows):
        name = f"zone {z}" if zones is None else f"zone {zones[z]!r}"
        if row.ndim != 1 or not len(row):
            raise HistogramError(f"{name}: its histogram has shape {row.shape}, not one number for each bin")
        if len(row) != len(rows[0]):
            first = "zone 0" if zones is None else f"zone {zones[0]!r}"
            raise HistogramError(
                f"{name}: its histogram has {len(row)} bins, {first}'s has {len(rows[0])}: all zones have the same bins"
            )
        wrong = np.flatnonzero(~np.isfinite(row) | (row < 0))
        if len(wrong):
            raise HistogramError(f"{name}: bin {wrong[0]} holds {row[wrong[0]]}, mass is a finite number >= 0")
    return np.stack(rows)


def _norm(metric: Metric, p: float) -> Callable[[Floats], Floats]:
    """The norm of each row of absolute differences."""
    if metric not in ("euclidean", "manhattan", "minkowski"):
        raise DistanceError(f"metric = {metric!r}: choose 'euclidean', 'manhattan' or 'minkowski'")
    if metric != "minkowski":
        if p not in (2, _EXPONENT[metric]):  # 2 is the default, and so as good as nothing said
            raise DistanceError(f"p = {p} belongs to metric 'minkowski', not to {metric!r}: leave it out")
        return (
            (lambda gaps: gaps.sum(axis=1)) if metric == "manhattan" else (lambda gaps: np.sqrt((gaps**2).sum(axis=1)))
        )
    if not (np.isfinite(p) and p >= 1):
        raise DistanceError(f"p = {p}: Minkowski's exponent is a finite number >= 1, else it gives no metric")

    def minkowski(gaps: Floats) -> Floats:
        # Relative to the largest gap, or a high power of small gaps would vanish.
        largest = gaps.max(axis=1, keepdims=True)
        scale = np.where(largest > 0, largest, 1.0)
        lengths: Floats = scale[:, 0] * ((gaps / scale) ** p).sum(axis=1) ** (1 / p)
        return lengths

    return minkowski
