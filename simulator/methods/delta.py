"""What FedDELTA and DELTA-Z share: whom to draw when clients' gradients are known from their last draw (method 9).

L. Wang, Y. Guo, T. Lin, X. Tang. DELTA: Diverse Client Sampling for Fasting Federated Learning. NeurIPS 2023. Clients
are drawn with `p_i ∝ sqrt(α1 ‖∇F_i - ∇f‖² + α2 σ_i²)`, and the aggregate is reweighted by `1/(n p_i)`.

Settled: as in the paper's practical form, a client's `∇F_i` and `σ_i²` are those of when it was last drawn; everyone is
drawn in round 1. `σ_i²` is the variance of a gradient on half of the client's data: `‖g_A - g_B‖²/4`. Draws are with
replacement, which is what makes `1/(n p_i)` unbiased.
"""

import numpy as np
import numpy.typing as npt

from sgfusion.runfile import Baselines
from sgfusion.streams import raw_stream, uniforms

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def probabilities(gradients: npt.NDArray[np.float32], variances: Floats, settings: Baselines) -> Floats:
    """`p_i` of each client from its last known gradient `[N, P]` and variance; uniform if all are alike."""
    mean = gradients.mean(axis=0, dtype=np.float64)
    apart = np.array([np.square(row - mean).sum() for row in gradients])
    worth = np.sqrt(settings.alpha1 * apart + settings.alpha2 * variances)
    total = worth.sum()
    return worth / total if total > 0 else np.full(len(worth), 1 / len(worth))


def draw(chances: Floats, count: int, seed: int, purpose: str, *place: int) -> Ints:
    """How often each client is drawn in `count` draws with replacement."""
    heights = np.cumsum(chances)
    luck = uniforms(raw_stream(seed, purpose, *place), count) * heights[-1]
    drawn = np.searchsorted(heights, luck, side="right")
    last = int(np.flatnonzero(chances)[-1])
    times: Ints = np.bincount(np.minimum(drawn, last), minlength=len(chances))
    return times


def reweighted(chances: Floats, times: Ints) -> Floats:
    """Each client's weight in an unbiased estimate of the clients' mean: `times_i / (n p_i N)`."""
    scale = times.sum() * len(chances)
    weights: Floats = np.divide(times, chances * scale, out=np.zeros(len(chances)), where=times > 0)
    return weights
