"""Method 10: the theorem, on ridge regression (`linear`), where every number of it is known.

The method does not say what `τ` is. Read here: `F_z` is G-Lipschitz, so `Gτ` is an excess risk if `τ` is a distance
between weights; it is taken to be the largest one between the minima of two zones, `τ = max ‖θ*_z - θ*_z'‖`. `G` is the
largest gradient of `F_z` on the minima of the zones, between which a trajectory comes to rest: the smallest that can be
meant, so the strictest bound. `μ` is the smallest curvature of any zone, `l2` included. Note that a step of method 7
goes along `g_z + Σ λ g_z'`, about twice a gradient, so the first steps of `1/(μt)` lead away from the minimum.
"""

import itertools
import math
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from sgfusion.fusion import attention
from sgfusion.sampling import HrgSampler, Sampler
from sgfusion.zone_trainer import GradientSource, ZoneState, ZoneTrainer, run_round
from simulator.cost import Cost
from simulator.directions import InProcess
from simulator.methods import sgfusion
from simulator.world import World, load_world
from tests.simulator.tiny import ByHand, Floats, tiny

Vector = npt.NDArray[np.float32]
ZONES = 5
EQUAL = ("data.spread=0.0",)
DIFFERENT = ("data.spread=0.3",)


class Closed:
    """`∇F_z(θ) = H_z θ - r_z`: the closed form in the place of the devices, to look at many trajectories quickly."""

    def __init__(self, hand: ByHand, zone: int) -> None:
        self._zone = zone
        self._curves = [hand.hessian(z) for z in hand.numbers]
        self._rights = [curve @ hand.best(z) for z, curve in enumerate(self._curves)]

    def local(self, theta: Vector) -> Vector:
        return self.peer(self._zone, theta)

    def peer(self, zone: int, theta: Vector) -> Vector:
        return np.asarray(self._curves[zone] @ theta - self._rights[zone], np.float32)


@cache
def ridge(*settings: str, zones: int = ZONES, seed: int = 5) -> tuple[World, ByHand, float]:
    """Zones with the same features, whose laws differ as the settings say; and their `μ`."""
    sizes = [[12]] * zones
    hand = ByHand(tiny("data.alike=true", *settings, sizes=sizes, seed=seed))
    mu = min(float(np.linalg.eigvalsh(hand.hessian(z))[0]) for z in hand.numbers)
    step = f"optimiser={{schedule='inverse', strong_convexity={mu}}}"
    return load_world(tiny("data.alike=true", *settings, step, sizes=sizes, seed=seed)), hand, mu


def excess(
    world: World, hand: ByHand, sampler: Sampler, source: GradientSource, *, rounds: int, zone: int = 1
) -> Floats:
    """`F_z(θ_T) - F_z*` for `T = 0, …, rounds`."""
    optimiser = world.run.optimiser.optimiser(rounds)
    trainer = ZoneTrainer(ZoneState.initial(zone, world.theta, optimiser), sampler, optimiser)
    thetas = [trainer.state.theta]
    for _ in range(rounds):
        run_round(trainer, source)
        thetas.append(trainer.state.theta)
    apart = np.array(thetas, np.float64) - hand.best(zone)
    return np.asarray(np.einsum("ti,ij,tj->t", apart, hand.hessian(zone), apart) / 2)


def slope(risks: Floats, rounds: list[int]) -> float:
    """Of the risk against the rounds, on logarithmic scales: -1 is `1 / T`."""
    return float(np.polyfit(np.log(rounds), np.log(risks[rounds]), 1)[0])


def floor(risks: Floats) -> float:
    return float(risks[len(risks) // 2 :].mean())


def bound(hand: ByHand, zone: int, chances: float) -> float:
    """`3Gτ/2 · Σ p(z,z')`."""
    minima = [hand.best(z) for z in hand.numbers]
    tau = max(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(minima, 2))
    g = max(float(np.linalg.norm(hand.zone(theta, zone))) for theta in minima)
    return 1.5 * g * tau * chances


def resting_place(hand: ByHand, zone: int, p: Floats) -> Floats:
    """Where the direction is zero on average over the draws: all of them, with their probabilities."""
    source = Closed(hand, zone)
    others = [other for other in hand.numbers if other != zone]
    draws = [draw for count in range(len(others) + 1) for draw in itertools.combinations(others, count)]
    chances = [math.prod(p[o] if o in draw else 1 - p[o] for o in others) for draw in draws]
    theta = hand.best(zone)
    for _ in range(300):
        narrow = theta.astype(np.float32)
        local = source.local(narrow)
        mean = local.astype(np.float64)
        for draw, chance in zip(draws, chances, strict=True):
            if draw:
                shared = np.stack([source.peer(other, narrow) for other in draw])
                mean = mean + chance * (attention(local, shared) @ shared)
        theta = theta - 0.2 * mean
    return theta


def test_where_zones_are_alike_the_excess_risk_goes_to_nothing() -> None:
    """Theorem: with `η_t = 1/(μt)`, strongly convex G-Lipschitz `F_z`, excess risk is O(log T / T)"""
    world, hand, _ = ridge(*EQUAL)
    source = InProcess(world, 1, Cost(3))
    risks = excess(world, hand, sgfusion.plan(world, 1, source).sampler, source, rounds=400)
    rounds = [10, 20, 50, 100, 200, 400]
    scaled = [float(risks[t] * t / math.log(t)) for t in rounds]
    assert all(later < earlier for earlier, later in itertools.pairwise(scaled))
    assert slope(risks, rounds) <= -0.8
    assert risks[400] < 1e-4 * risks[10]


def test_the_closed_form_is_what_the_simulator_computes() -> None:
    """∇_{θ_z} F_{z'}"""
    world, hand, _ = ridge(*DIFFERENT)
    simulated, closed = (
        excess(world, hand, HrgSampler(world.probabilities, 5), source, rounds=60)
        for source in (InProcess(world, 1, Cost(3)), Closed(hand, 1))
    )
    assert simulated == pytest.approx(closed, rel=1e-3)


def test_draws_that_are_wrong_but_not_on_average_cost_log_t_over_t() -> None:
    """excess risk is O(log T / T)"""
    # Two zones lie as far to one side of a third as to the other, and are drawn alike: chance alone keeps it off.
    world, hand, mu = ridge("data.spread=0.0", "data.offsets=[0.0, 0.5, -0.5]", zones=3)
    even = np.full((3, 3), 0.5) - 0.5 * np.eye(3)
    risks = np.mean(
        [excess(world, hand, HrgSampler(even, seed), Closed(hand, 0), rounds=800, zone=0) for seed in range(12)], axis=0
    )
    rounds = [25, 50, 100, 200, 400, 800]
    assert -1.4 < slope(risks, rounds) <= -0.8
    g = max(float(np.linalg.norm(hand.zone(hand.best(z), 0))) for z in hand.numbers)
    assert all(risks[t] * t / math.log(t) < g**2 / mu for t in rounds)


def test_without_the_theorems_rate_chance_is_not_averaged_away() -> None:
    """with `η_t = 1/(μt)`"""
    world, hand, mu = ridge("data.spread=0.0", "data.offsets=[0.0, 0.5, -0.5]", zones=3)
    even = np.full((3, 3), 0.5) - 0.5 * np.eye(3)
    constant = tiny(
        "data.alike=true",
        "data.spread=0.0",
        "data.offsets=[0.0, 0.5, -0.5]",
        f"optimiser.rate={0.2 / mu}",
        sizes=[[12]] * 3,
    )
    risks = excess(load_world(constant), hand, HrgSampler(even, 1), Closed(hand, 0), rounds=800, zone=0)
    falling = excess(world, hand, HrgSampler(even, 1), Closed(hand, 0), rounds=800, zone=0)
    assert floor(risks) > 20 * floor(falling)


@pytest.mark.parametrize("zone", range(ZONES))
def test_where_zones_differ_the_excess_risk_comes_down_to_a_floor_below_the_theorems(zone: int) -> None:
    """excess risk is O(log T / T) plus `3Gτ/2 · Σ p(z,z')`."""
    world, hand, _ = ridge(*DIFFERENT)
    p = world.probabilities
    risks = excess(world, hand, HrgSampler(p, 5), Closed(hand, zone), rounds=1000, zone=zone)
    assert 0 < floor(risks) < bound(hand, zone, float(p[zone].sum()))
    assert floor(risks) == pytest.approx(floor(risks[:501]), rel=0.35)  # it has come to rest
    alone = excess(world, hand, HrgSampler(0 * p, 5), Closed(hand, zone), rounds=1000, zone=zone)
    assert floor(alone) < 1e-4 * floor(risks)  # and without sharing there is none
    rest = resting_place(hand, zone, p[zone]) - hand.best(zone)
    assert floor(risks) == pytest.approx(float(rest @ hand.hessian(zone) @ rest / 2), rel=0.1)


def test_the_floor_grows_with_the_zones_difference() -> None:
    """plus `3Gτ/2 · Σ p(z,z')`."""
    floors, bounds = [], []
    for spread in (0.05, 0.2, 0.8):
        world, hand, _ = ridge(f"data.spread={spread}")
        p = ridge(*DIFFERENT)[0].probabilities  # the same draws for all
        risks = excess(world, hand, HrgSampler(p, 5), Closed(hand, 1), rounds=600)
        floors.append(floor(risks))
        bounds.append(bound(hand, 1, float(p[1].sum())))
    assert all(below < above for below, above in zip(floors, bounds, strict=True))
    for low, high in itertools.pairwise(floors):
        assert 8 < high / low < 24  # four times the difference: `G` and `τ` are four times as large each
    for low, high in itertools.pairwise(bounds):
        assert high / low == pytest.approx(16, rel=0.05)


def test_the_floor_grows_with_how_often_zones_are_drawn() -> None:
    """plus `3Gτ/2 · Σ p(z,z')`."""
    world, hand, _ = ridge(*DIFFERENT)
    floors = []
    for often in (0.1, 0.4, 1.0):
        p = often * world.probabilities
        risks = excess(world, hand, HrgSampler(p, 5), Closed(hand, 1), rounds=800)
        floors.append(floor(risks))
        assert floors[-1] < bound(hand, 1, float(p[1].sum()))
    assert floors == sorted(floors)
    assert floors[2] > 3 * floors[0]
