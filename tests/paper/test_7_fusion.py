"""Method 7: fusion with attention."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from sgfusion.fusion import attention, fuse
from sgfusion.optimiser import Kind, Optimiser, Schedule, ScheduleKind
from sgfusion.runfile import parse_run_file
from sgfusion.sampling import NeighbourSampler
from sgfusion.zone_trainer import ZoneState, ZoneTrainer

Vector = npt.NDArray[np.float32]
RUN = "name = 'a'\nseed = 1\nrounds = 4\ntask.name = 'linear'\ndata.source = 'generated'\n"


def gradients(key: int, drawn: int, weights: int = 6) -> tuple[Vector, Vector]:
    rng = np.random.Generator(np.random.Philox(key=key))
    return rng.normal(size=weights).astype(np.float32), rng.normal(size=(drawn, weights)).astype(np.float32)


def lambdas(local: Vector, shared: Vector) -> list[float]:
    """The formula as it is written, in Python's own numbers."""
    inner = [math.fsum(float(a) * float(b) for a, b in zip(local, row, strict=True)) for row in shared]
    e = [1 / (1 + math.exp(-x)) for x in inner]
    total = math.fsum(math.exp(x) for x in e)
    return [math.exp(x) / total for x in e]


def after_one_round(local: Vector, shared: Vector, optimiser: Optimiser) -> tuple[Vector, Vector]:
    """`θ_z` before and after a round in which zones 1..K were drawn."""
    zones = len(shared) + 1
    sampler = NeighbourSampler([range(1, zones), *([0] for _ in range(1, zones))])
    trainer = ZoneTrainer(ZoneState.initial(0, np.linspace(-1, 1, len(local)), optimiser), sampler, optimiser)
    theta = trainer.state.theta
    trainer.begin()
    trainer.receive_local(local)
    for zone, gradient in enumerate(shared, 1):
        trainer.receive_peer(zone, gradient)
    trainer.finish()
    return theta, trainer.state.theta


@pytest.mark.parametrize(("key", "drawn"), list(itertools.product(range(3), (1, 2, 5, 31))))
def test_a_round_is_the_formula(key: int, drawn: int) -> None:
    """`e_{z'} = sigmoid(⟨g_z, g_{z'}⟩)`, `λ = softmax(e)` over the drawn zones, `θ_z ← θ_z - η_t [ g_z + Σ λ_{z'}
    g_{z'} ]`.
    """
    local, shared = gradients(key, drawn)
    weights = lambdas(local, shared)
    np.testing.assert_allclose(attention(local, shared), weights, rtol=1e-14)
    direction = local + sum(w * row.astype(float) for w, row in zip(weights, shared, strict=True))
    before, after = after_one_round(local, shared, Optimiser("sgd", Schedule("constant", 0.25)))
    np.testing.assert_allclose(after, before - 0.25 * direction, rtol=1e-6, atol=1e-6)


def test_the_inner_product_is_raw_unless_cosine_is_set() -> None:
    """Settled: the inner product is the raw one; `cosine` is a setting."""
    local, shared = gradients(9, 3)
    assert attention(local, shared).tolist() == attention(local, shared, "inner").tolist()
    assert attention(2 * local, shared).tolist() != attention(local, shared).tolist()
    assert attention(2 * local, shared, "cosine").tolist() == attention(local, shared, "cosine").tolist()
    assert parse_run_file(RUN).fusion.similarity == "inner"
    assert parse_run_file(RUN, ["fusion.similarity=cosine"]).fusion.similarity == "cosine"


def test_all_drawn_zones_enter_the_sum() -> None:
    """All drawn zones enter the sum."""
    local, shared = np.zeros(8, np.float32), np.diag(np.full(8, -1e6, np.float32))
    assert (attention(local, shared) > 0).all()
    assert fuse(local, shared).tolist() == [-1e6 / 8] * 8
    against = fuse(np.ones(8, np.float32), shared)  # the least alike that gradients can be: still in the sum
    assert (against < -1e4).all()


@pytest.mark.parametrize(
    ("kind", "settings", "rates"),
    [
        ("constant", ["optimiser.rate=0.5"], [0.5, 0.5, 0.5, 0.5]),
        ("inverse", ["optimiser.strong_convexity=2"], [1 / 2, 1 / 4, 1 / 6, 1 / 8]),
        ("cosine", ["optimiser.rate=2"], [2, 1 + math.sqrt(0.5), 1, 1 - math.sqrt(0.5)]),
    ],
)
def test_the_rate_is_constant_the_theorems_or_cosine(
    kind: ScheduleKind, settings: list[str], rates: list[float]
) -> None:
    """`η_t`: constant, `1/(μ t)` (the theorem's) or cosine"""
    run = parse_run_file(RUN, [f"optimiser.schedule={kind}", *settings])
    schedule = run.optimiser.optimiser(run.rounds).schedule
    assert [schedule.rate_at(t) for t in (1, 2, 3, 4)] == pytest.approx(rates, rel=1e-14)


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_the_step_is_sgd_by_default_and_the_edge_may_set_another(kind: Kind) -> None:
    """the step itself is SGD by default, with momentum and Adam as settings of the edge."""
    assert parse_run_file(RUN).optimiser.optimiser(4).kind == Optimiser().kind == "sgd"
    optimiser = parse_run_file(RUN, [f"optimiser.kind={kind}", "optimiser.rate=0.5"]).optimiser.optimiser(4)
    local, shared = gradients(2, 3)
    before, after = after_one_round(local, shared, optimiser)
    direction = fuse(local, shared)
    # A first step: momentum has no past, and Adam goes by the rate along each sign.
    expected = before - 0.5 * (np.sign(direction) if kind == "adam" else direction)
    np.testing.assert_allclose(after, expected, rtol=1e-6, atol=1e-6)
