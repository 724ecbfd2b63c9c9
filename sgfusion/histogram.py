"""Label histograms: one unit of mass a sample, whatever the sample's length (method 1); zone means (method 2).

Mass is fixed point: a unit is `UNIT` equal parts, and a sample's parts over the bins always sum to exactly `UNIT`. So
adding or removing one sample changes a histogram by exactly 1 in L1 and replacing one by at most 2, after rounding: the
sensitivity that `privacy.py` calibrates its noise to is a fact of integers, not of floating point.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sgfusion.arrays import as_floats, shown
from sgfusion.errors import HistogramError, LabelError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNIT = 1 << 20
"""Parts in one unit of mass: a power of two, so that parts and float64 mass convert into each other exactly."""

_COUNTS = 1 << 22  # samples × bins counted at a time: bounds the memory


def label_mass(samples: Sequence[object] | npt.NDArray[np.generic], edges: npt.ArrayLike) -> Floats:
    """Count labels into the bins between `edges`, one unit of mass a sample.

    `samples` holds one label a sample (`[N]`), a sequence of labels a sample (`[N, T]`), or sequences of any lengths (a
    list of them). Bin `b` is `[edges[b], edges[b+1])`. Labels outside the edges, infinite ones too, fall into the end
    bins; NaN is an error that names the sample.
    """
    edges = checked_edges(edges)
    bins = len(edges) - 1
    parts = np.zeros(bins, np.int64)
    for labels, owner, lengths in _blocks(samples, max(1, _COUNTS // bins)):
        bin_of = np.clip(np.searchsorted(edges, labels, side="right") - 1, 0, bins - 1)
        counts = np.bincount(owner * bins + bin_of, minlength=len(lengths) * bins).reshape(len(lengths), bins)
        parts += _shares(counts, lengths).sum(axis=0)
    mass: Floats = parts.astype(np.float64) / UNIT
    return mass


def class_edges(classes: int) -> Floats:
    """Edges that make each class label `0..classes-1` its own bin."""
    if classes != int(classes) or classes < 1:
        raise LabelError(f"classes = {classes}: give a whole number >= 1")
    return np.arange(classes + 1, dtype=np.float64) - 0.5


def checked_edges(edges: npt.ArrayLike) -> Floats:
    """The bin edges as float64, refused unless finite and rising."""
    array = as_floats(edges, "edges", LabelError)
    if array.ndim != 1 or len(array) < 2:
        raise LabelError(f"edges of shape {array.shape}: give at least two numbers, the borders of at least one bin")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise LabelError(
            f"edges[{bad[0]}] = {array[bad[0]]}: edges are finite, labels beyond them fall into the end bins"
        )
    fallen = np.flatnonzero(array[1:] <= array[:-1])
    if len(fallen):
        at = fallen[0]
        raise LabelError(f"edges[{at}] = {array[at]} is not below edges[{at + 1}] = {array[at + 1]}: edges must rise")
    return array


def zone_histogram(histograms: Sequence[npt.ArrayLike] | Floats) -> Floats:
    """`Y_z`, the mean of the zone's device histograms `[m_z, B]`: every device counts the same (method 2)."""
    mean: Floats = checked_histograms(histograms, "device").mean(axis=0)
    return mean


def checked_histograms(
    histograms: Sequence[npt.ArrayLike] | Floats, owner: str, names: Sequence[str] | None = None
) -> Floats:
    """The histograms as rows, refused unless finite, >= 0 and of one length; an error names the `owner` of the row."""
    if not len(histograms):
        raise HistogramError(f"no histograms: there is at least one {owner}")
    if names is not None and len(names) != len(histograms):
        raise HistogramError(f"{len(names)} names for {len(histograms)} histograms: give one name for each {owner}")
    called = [f"{owner} {i}" if names is None else f"{owner} {names[i]!r}" for i in range(len(histograms))]
    rows = [
        as_floats(row, f"{name}: its histogram", HistogramError) for name, row in zip(called, histograms, strict=True)
    ]
    for name, row in zip(called, rows, strict=True):
        if row.ndim != 1 or not len(row):
            raise HistogramError(f"{name}: its histogram has shape {row.shape}, not one number for each bin")
        if len(row) != len(rows[0]):
            raise HistogramError(
                f"{name}: its histogram has {len(row)} bins, {called[0]}'s has {len(rows[0])}: all have the same bins"
            )
        wrong = np.flatnonzero(~np.isfinite(row) | (row < 0))
        if len(wrong):
            what = "a negative number" if row[wrong[0]] < 0 else row[wrong[0]]  # NaN or infinite; a number is data
            raise HistogramError(f"{name}: bin {wrong[0]} holds {what}, mass is a finite number >= 0")
    return np.stack(rows)


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


def _blocks(samples: Sequence[object] | npt.NDArray[np.generic], block: int) -> Iterator[tuple[Floats, Ints, Ints]]:
    """Blocks of samples as flat labels, each label's sample within the block, and the samples' lengths."""
    if not hasattr(samples, "__len__"):
        raise LabelError(f"samples = {shown(samples)}: give an array or a list of samples")
    for start in range(0, len(samples), block):
        labels, lengths = _flat(samples[start : start + block], start)
        if not lengths.all():
            raise LabelError(f"sample {start + int(np.argmin(lengths))} has no label: leave it out")
        owner = np.repeat(np.arange(len(lengths)), lengths)
        nan = np.flatnonzero(np.isnan(labels))
        if len(nan):
            raise LabelError(f"sample {start + owner[nan[0]]} has a NaN label: drop the sample or mend its data")
        yield labels, owner, lengths


def _flat(block: Sequence[object] | npt.NDArray[np.generic], start: int) -> tuple[Floats, Ints]:
    """All labels of the block one after the other, and how many of them are each sample's."""
    if isinstance(block, np.ndarray) and block.dtype.kind in "biuf" and block.ndim in (1, 2):
        return block.astype(np.float64).ravel(), np.full(len(block), 1 if block.ndim == 1 else block.shape[1])
    rows = []
    for i, sample in enumerate(block):
        row = np.atleast_1d(as_floats(sample, f"sample {start + i}", LabelError))
        if row.ndim != 1:
            raise LabelError(f"sample {start + i} has shape {row.shape}: a sample is one label or one sequence of them")
        rows.append(row)
    return np.concatenate(rows), np.array([len(row) for row in rows])
