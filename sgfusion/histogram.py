"""Label histograms: one unit of mass a sample, whatever the sample's length (method 1); zone means (method 2).

Mass is fixed point: a unit is `UNIT` equal parts, and a sample's parts over the bins always sum to exactly `UNIT`. So
adding or removing one sample changes a histogram by exactly 1 in L1 and replacing one by at most 2, after rounding: the
sensitivity that `privacy.py` calibrates its noise to is a fact of integers, not of floating point.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sgfusion.errors import HistogramError, LabelError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNIT = 1 << 20
"""Parts in one unit of mass: a power of two, so that parts and float64 mass convert into each other exactly."""

_BLOCK = 1 << 16  # samples counted at a time: bounds the memory to block × bins


def label_mass(samples: Sequence[object] | npt.NDArray[np.generic], edges: npt.ArrayLike) -> Floats:
    """Count labels into the bins between `edges`, one unit of mass a sample.

    `samples` holds one label a sample (`[N]`), a sequence of labels a sample (`[N, T]`), or sequences of any lengths (a
    list of them). Bin `b` is `[edges[b], edges[b+1])`. Labels outside the edges, infinite ones too, fall into the end
    bins; NaN is an error that names the sample.
    """
    edges = checked_edges(edges)
    bins = len(edges) - 1
    parts = np.zeros(bins, np.int64)
    for labels, owner, lengths in _blocks(samples):
        bin_of = np.clip(np.searchsorted(edges, labels, side="right") - 1, 0, bins - 1)
        counts = np.bincount(owner * bins + bin_of, minlength=len(lengths) * bins).reshape(len(lengths), bins)
        parts += _shares(counts, lengths).sum(axis=0)
    mass: Floats = parts.astype(np.float64) / UNIT
    return mass


def class_edges(classes: int) -> Floats:
    """Edges that make each class label `0..classes-1` its own bin (the footnote of method 1)."""
    if classes < 1:
        raise LabelError(f"classes = {classes}: a classification has at least one class")
    return np.arange(classes + 1, dtype=np.float64) - 0.5


def checked_edges(edges: npt.ArrayLike) -> Floats:
    """The bin edges as float64, refused unless finite and rising."""
    array = np.asarray(edges, np.float64)
    if array.ndim != 1 or len(array) < 2:
        raise LabelError(f"edges of shape {array.shape}: give at least two numbers, the borders of at least one bin")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise LabelError(
            f"edges[{bad[0]}] = {array[bad[0]]}: edges are finite, labels beyond them fall into the end bins"
        )
    fallen = np.flatnonzero(np.diff(array) <= 0)
    if len(fallen):
        at = fallen[0]
        raise LabelError(f"edges[{at}] = {array[at]} is not below edges[{at + 1}] = {array[at + 1]}: edges must rise")
    return array


def zone_histogram(histograms: npt.ArrayLike) -> Floats:
    """`Y_z`, the mean of the zone's device histograms `[m_z, B]`: every device counts the same (method 2)."""
    array = np.asarray(histograms, np.float64)
    if array.ndim != 2 or not len(array):
        raise HistogramError(f"histograms of shape {array.shape}: give one row for each of the zone's devices")
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        row, column = bad[0]
        raise HistogramError(f"device {row}, bin {column}: mass {array[row, column]} is not a finite number >= 0")
    mean: Floats = array.mean(axis=0)
    return mean


def _shares(counts: Ints, lengths: Ints) -> Ints:
    """Each sample's unit, shared over the bins in proportion to its counts; every row sums to exactly `UNIT`.

    By largest remainder: shares are rounded down, and the parts left over go one each to the bins that lost most (to
    the lower bin among equals).
    """
    shares, lost = np.divmod(counts * UNIT, lengths[:, None])
    missing = UNIT - shares.sum(axis=1)
    rank = np.empty_like(lost)
    np.put_along_axis(rank, np.argsort(-lost, axis=1, kind="stable"), np.arange(counts.shape[1])[None, :], axis=1)
    shares += rank < missing[:, None]
    return shares


def _blocks(samples: Sequence[object] | npt.NDArray[np.generic]) -> Iterator[tuple[Floats, Ints, Ints]]:
    """Blocks of samples as flat labels, each label's sample within the block, and the samples' lengths."""
    for start in range(0, len(samples), _BLOCK):
        rows = _rows(samples[start : start + _BLOCK], start)
        lengths = np.array([len(row) for row in rows], np.int64)
        if not lengths.all():
            raise LabelError(
                f"sample {start + int(np.argmin(lengths))} has no label: leave it out, it has no mass to give"
            )
        labels = np.concatenate(rows)
        owner = np.repeat(np.arange(len(rows)), lengths)
        nan = np.flatnonzero(np.isnan(labels))
        if len(nan):
            raise LabelError(f"sample {start + owner[nan[0]]} has a NaN label: drop the sample or mend its data")
        yield labels, owner, lengths


def _rows(block: Sequence[object] | npt.NDArray[np.generic], start: int) -> list[Floats]:
    rows = []
    for i, sample in enumerate(block):
        try:
            row = np.atleast_1d(np.asarray(sample, np.float64))
        except (TypeError, ValueError) as error:
            raise LabelError(f"sample {start + i} = {sample!r}: labels are numbers ({error})") from error
        if row.ndim != 1:
            raise LabelError(
                f"sample {start + i} has shape {row.shape}: a sample is one label or one sequence of labels"
            )
        rows.append(row)
    return rows
