"""Where method 7 comes to rest among the zones of a tiny world, and how fast: the numbers that its theorem only bounds.

Zones of `data.alike=true` have one Hessian `H`. A direction is `g_z`, or `g_z + Σ λ g_z'` if some zone was drawn, which
happens with probability `q`. With the attention of the resting place it is linear in `θ`, `(1 + [drawn]) H (θ - rest) +
noise(draw)`, and stochastic approximation by the textbook gives what follows. No formula is the package's own.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tests.simulator.tiny import ByHand, Floats

Draw = tuple[int, ...]


@dataclass(frozen=True)
class Rest:
    """The law of zone `z`'s weights after many rounds with `η_t = 1/(μt)`."""

    floor: float
    """`F_z(rest) - F_z*`: what is left of the excess risk however long the zone trains."""
    chance: float
    """`C` of `E F_z(θ_T) - F_z(rest) ~ C / T`: the price of draws that are right on average alone.

    Over the axes of `H`, with curvatures `h`: `C = Σ 1/2 h Var(noise) / (μ² (2 (1+q) h/μ - 1))`. A direction is no
    longer than `2G`, so `C <= 2G²/μ`: the constant that textbooks have before `log T / T`.
    """
    wander: float
    """The standard deviation of `√T · luck`."""
    slope: Floats
    """`∇F_z(rest)`."""
    noise: dict[Draw, Floats]
    """The direction at rest for each draw: zero on average."""
    hessian: Floats
    mu: float

    def luck(self, draws: Iterable[Draw]) -> Floats:
        """What these draws add to `F_z(θ_T)` for `T = 0, 1, …` by luck, to be taken off: zero on average.

        `F_z` slopes where the zone comes to rest, so a step aside of `1/√T` raises or lowers it by more than `C / T`.
        Here a walk from rest makes the same draws; as its directions are linear, it stays there on average.
        """
        aside = np.zeros_like(self.slope)
        found = [0.0]
        for t, draw in enumerate(draws, start=1):
            pull = (2 if draw else 1) * self.hessian @ aside
            aside = aside - (pull + self.noise[draw]) / (self.mu * t)
            found.append(float(self.slope @ aside))
        return np.array(found)


def rest_of(hand: ByHand, zone: int, p: Floats, mu: float) -> Rest:
    """By all draws that there are, when zone `z` draws `z'` with probability `p[z']`."""
    others = [other for other in hand.numbers if other != zone]
    draws = [draw for count in range(len(others) + 1) for draw in itertools.combinations(others, count)]
    chances = np.array([math.prod(p[o] if o in draw else 1 - p[o] for o in others) for draw in draws])
    hessian, best = hand.hessian(zone), hand.best(zone)
    pull = (2 - chances[0]) * hessian  # `(1 + q) H`
    theta = best
    for _ in range(25):  # Newton's, but for the attention: that hardly changes on the way
        directions = np.array([hand.fused(theta, zone, draw) for draw in draws])
        theta = theta - np.linalg.solve(pull, chances @ directions)
    assert np.abs(chances @ directions).max() < 1e-9
    slope = hessian @ (theta - best)
    h, axes = np.linalg.eigh(hessian)
    along, slopes = directions @ axes, slope @ axes
    covariance = np.einsum("d,di,dj->ij", chances, along, along)
    # Of `√T (θ_T - rest)`, by the Lyapunov equation of `A = (1+q) H/μ - 1/2`.
    decay = (2 - chances[0]) * h / mu
    covariance = covariance / mu**2 / (decay[:, None] + decay - 1)
    return Rest(
        floor=float(slope @ (theta - best)) / 2,
        chance=float(h @ np.diag(covariance)) / 2,
        wander=math.sqrt(slopes @ covariance @ slopes),
        slope=slope,
        noise=dict(zip(draws, directions, strict=True)),
        hessian=hessian,
        mu=mu,
    )
