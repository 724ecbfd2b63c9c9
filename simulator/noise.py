"""Noise of the Laplace mechanism's law from a seeded generator, for experiments that repeat (method 1, last sentence).

It protects nobody: whoever has the run file has the noise. Devices release through `sgfusion.privacy`, which cannot be
seeded; only the simulator, whose data lies in one process anyway, may use this.
"""

import math

import numpy as np
import numpy.typing as npt

from sgfusion.errors import PrivacyError
from sgfusion.histogram import UNIT
from sgfusion.privacy import Adjacency, checked_epsilon, scaled_to_one, sensitivity
from sgfusion.streams import raw_stream, uniforms

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST = float(1 << 62)
"""Noise beyond it is cut to it, as OpenDP does at the end of int64."""


def seeded_noise_without_privacy(bins: int, scale: float, stream: np.random.Philox) -> Ints:
    """Discrete Laplace numbers, `P(k) ∝ exp(-|k| / scale)`: the difference of two geometric ones."""
    if not math.isfinite(scale):
        raise PrivacyError(f"scale = {scale}, epsilon is too small: the noise would have no finite scale")
    luck = uniforms(stream, 2 * bins).reshape(2, bins)
    geometric = np.floor(-scale * np.log1p(-luck))
    # The difference is taken before it is cut to what int64 holds: two that were cut would cancel.
    noise: Ints = np.clip(geometric[0] - geometric[1], -MOST, MOST).astype(np.int64)
    return noise


def simulated_release(
    mass: npt.ArrayLike, *, epsilon: float, adjacency: Adjacency, seed: int, zone: int, device: int
) -> Floats:
    """What `privatize` would release, with noise that is a pure function of (seed, zone, device)."""
    parts = np.round(np.asarray(mass, np.float64) * UNIT).astype(np.int64)
    scale = sensitivity(adjacency) * UNIT / checked_epsilon(epsilon)
    stream = raw_stream(seed, "simulated noise", zone, device)
    return scaled_to_one(parts + seeded_noise_without_privacy(len(parts), scale, stream))
