"""Words on numbers that can be used, but look as if they were not meant so."""

import numpy as np
import numpy.typing as npt

from device.samples import Array

FAR = 100.0
"""Features about 0 with a spread of about 1 are never so large: beyond it nobody has scaled them."""


def labels_outside(labels: Array, edges: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """A note if more than half of the labels are in no bin: the end bins count them, and histograms say little."""
    low, high = float(edges[0]), float(edges[-1])
    outside = int(np.count_nonzero((labels < low) | (labels > high)))
    if 2 * outside <= labels.size:
        return ()
    return (
        f"{outside} of {labels.size} labels are outside the task's label bins, which go from {low:g} to {high:g}; the"
        f" labels go from {labels.min():g} to {labels.max():g}. The bins at the ends count them, so histograms hardly"
        " tell zones apart: give labels in the task's unit, or the task other bins",
    )


def unscaled(key: str, features: Array) -> tuple[str, ...]:
    """A note if a feature of the array `key` is beyond `FAR` somewhere; features are the last axis."""
    most = np.abs(features).max(axis=tuple(range(features.ndim - 1)))
    if most.max() <= FAR:
        return ()
    where = int(most.argmax())
    return (
        f"{key} is taken as scaled, but feature {where} of 0 to {len(most) - 1} has values as large as"
        f" {most[where]:g}: give a mean and a spread for each in data.scale.{key}, or set data.scaled = false if they"
        " are in the task's own units",
    )
