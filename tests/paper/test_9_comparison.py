"""Method 9: what it is compared with, and what is measured."""

import math
from functools import cache

import numpy as np
import pytest

from device.tasks.task import RMSE_UNITLESS
from sgfusion.evaluation import pooled
from sgfusion.runfile import RunFile
from simulator.cost import Cost
from simulator.directions import InProcess
from simulator.methods import delta, ifca
from simulator.methods.central import Stepped
from simulator.methods.method import CentralMethod, ZoneMethod
from simulator.methods.registry import METHODS
from simulator.run import Trained, train
from simulator.world import World, load_world
from tests.simulator.tiny import NAMES, ByHand, Floats, near, tiny

DEVICES = 11
KINDS = "source='generated_zones', devices=2, samples=30, features=3, kinds=2, contrast=1.5, difference=0.05, noise=0.2"


@cache
def done(method: str, zone: str, *settings: str, rounds: int = 3) -> Trained:
    return train(tiny("data.validation=2", *settings, rounds=rounds), method, zone)


def of_two_kinds() -> tuple[RunFile, World, list[int]]:
    """Zones of two hidden kinds whose laws lie far apart, and the kind of each device."""
    run = tiny(f"data={{{KINDS}}}", "optimiser.rate=0.05", "baselines.clusters=2", rounds=60)
    return run, load_world(run), [z % 2 for z in range(len(NAMES)) for _ in range(2)]


def same_partition(one: list[int], other: list[int]) -> bool:
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


def moved(world: World, method: str, rounds: int) -> list[object]:
    """The states of a central method, before round 1 and after each."""
    central = METHODS[method]
    assert isinstance(central, CentralMethod)
    states = [central.init(world)]
    for number in range(1, rounds + 1):
        states.append(central.apply(world, states[-1], number, Cost(3)))
    return states


# What is the same for all


@pytest.mark.parametrize("method", METHODS)
def test_splits_seed_and_model_are_the_same_for_all_and_the_budget_is_reported(method: str) -> None:
    """All on the same splits, seeds, model and budget of gradient evaluations (which is reported for each):"""
    ours, reference = done(method, "birch").outcome, done("sgeofl", "birch").outcome
    counts = [(split["birch"].count) for split in (ours.points[0].validation, ours.points[0].test)]
    assert counts == [reference.points[0].validation["birch"].count, reference.points[0].test["birch"].count]
    if method != "ifca":  # where models must differ, the first of them is the same
        assert near(ours.points[0].test["birch"].total, reference.points[0].test["birch"].total, 1e-5)
    assert (ours.seed, ours.parameters, ours.rounds) == (reference.seed, reference.parameters, reference.rounds)
    assert ours.device_gradients >= reference.device_gradients > 0
    assert ours.bytes_sent > 0


@pytest.mark.parametrize("method", ["sgeofl", "d-zgd", "all", "fedavg", "ifca", "fedsem"])
def test_a_budget_of_gradients_buys_each_method_rounds_of_its_own(method: str) -> None:
    """All on the same splits, seeds, model and budget of gradient evaluations (which is reported for each):"""

    def spent(method: str, rounds: int) -> int:
        zones = NAMES if METHODS[method].per_zone else [None]
        return sum(train(tiny(rounds=rounds), method, zone).outcome.device_gradients for zone in zones)

    budget, a_round = spent("sgfusion", 9), spent(method, 1)
    rounds = budget // a_round
    assert rounds != 9  # the same rounds would not be the same budget
    assert budget - a_round < spent(method, rounds) <= budget


# The methods


def test_fedavg_finds_the_minimum_of_all_devices_mean_loss() -> None:
    """FedAvg: one model, all devices."""
    run = tiny("evaluation.every=1000", rounds=250)
    hand = ByHand(run)
    curve = np.mean([x.T @ x / len(y) for x, y in hand.devices], axis=0) + 0.1 * np.eye(3)
    right = np.mean([x.T @ y / len(y) for x, y in hand.devices], axis=0)
    models = train(run, "fedavg", None).models
    assert len(models) == 1
    assert near(models["global"], np.linalg.solve(curve, right), 1e-4)


def test_sgeofl_is_what_a_zone_alone_in_the_world_learns() -> None:
    """SGeoFL: one model per zone, no sharing."""
    everyone = tiny(rounds=4)
    alone = tiny("data.sizes=[[8, 3]]", "zones.names=['ash']", rounds=4)
    one, other = train(everyone, "sgeofl", "ash").models["ash"], train(alone, "sgeofl", "ash").models["ash"]
    assert one.tobytes() == other.tobytes()


def test_d_zgd_is_method_7_over_the_neighbours() -> None:
    """D-ZGD: method 7 with `N(z)` = the geographic neighbours, fixed."""
    run = tiny(rounds=4)
    hand = ByHand(run)
    for z, zone in enumerate(NAMES):
        trained = train(run, "d-zgd", zone)
        assert {report.drawn for report in trained.reports} == {tuple(hand.near[z])}
        assert near(trained.models[zone], hand.trajectory(z, hand.near[z])[-1], 1e-5)


def test_ifca_finds_hidden_kinds() -> None:
    """IFCA: k models; each device picks `argmin_j F_u(θ_j)` on its training data;"""
    run, world, kinds = of_two_kinds()
    states = moved(world, "ifca", run.rounds)
    assert same_partition(ifca.METHOD.serve(world, states[-1]).of_device.tolist(), kinds)


def test_ifcas_models_are_means_of_models_and_empty_ones_stay() -> None:
    """a cluster's model is the unweighted mean of its devices' models; an empty cluster stays."""
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    far = np.full(3, 1e3, np.float32)
    start = ifca.State((Stepped.initial(world, world.theta), Stepped.initial(world, far)))
    state: ifca.State = ifca.METHOD.apply(world, start, 1, Cost(3))
    models = [hand.start - hand.rate * hand.device(hand.start, xy) for xy in hand.devices]
    assert near(state.models[0].theta, np.mean(models, axis=0))
    assert state.models[1].theta.tolist() == far.tolist()


def test_fedsem_finds_hidden_kinds_and_its_centres_are_means() -> None:
    """FedSEM: k centres; E: device → nearest centre in L2 over all parameters; M: centre = mean; broadcast, train
    locally.
    """
    run, world, kinds = of_two_kinds()
    *_, before, after = moved(world, "fedsem", run.rounds)
    assert same_partition(after.of_device.tolist(), kinds)  # type: ignore[attr-defined]
    centres = [centre.theta for centre in before.centres]  # type: ignore[attr-defined]
    batches = [batch for zone in world.data.zones for batch in zone.device_batches]
    local = np.array(
        [
            centres[j] - 0.05 * world.learner.gradient(centres[j], batch)
            for batch, j in zip(batches, before.of_device, strict=True)  # type: ignore[attr-defined]
        ]
    )
    for j, centre in enumerate(after.centres):  # type: ignore[attr-defined]
        assert near(centre.theta, local[after.of_device == j].mean(axis=0), 1e-5)  # type: ignore[attr-defined]


def test_deltas_chances_and_weights() -> None:
    """devices drawn with `p_i ∝ sqrt(α1 ||∇F_i - ∇f||² + α2 σ_i²)`, aggregate reweighted by `1/(n p_i)`."""
    gradients = np.random.Generator(np.random.Philox(key=3)).normal(size=(6, 4)).astype(np.float32)
    variances = np.arange(6.0)
    settings = tiny("baselines={alpha1=0.7, alpha2=0.2}").baselines
    p = delta.probabilities(gradients, variances, settings)
    mean = gradients.mean(axis=0)
    worth = np.array([0.7 * ((row - mean) ** 2).sum() for row in gradients]) + 0.2 * variances
    assert p**2 / p[0] ** 2 == pytest.approx(worth / worth[0], rel=1e-5)
    assert p.sum() == pytest.approx(1)
    n = 3
    for place in range(50):
        times = delta.draw(p, n, 1, "test", place)
        aggregate = delta.reweighted(p, times) @ gradients
        drawn = np.repeat(np.arange(6), times)
        assert aggregate == pytest.approx(sum(gradients[i] / (n * p[i]) for i in drawn) / 6, rel=1e-5)


def test_feddelta_is_fedavg_on_average() -> None:
    """aggregate reweighted by `1/(n p_i)`."""
    run = tiny("baselines.share=0.4")
    world, hand = load_world(run), ByHand(run)
    feddelta = METHODS["feddelta"]
    assert isinstance(feddelta, CentralMethod)
    known = feddelta.apply(world, feddelta.init(world), 1, Cost(3))
    theta = known.model.theta.astype(np.float64)
    after = np.array([feddelta.apply(world, known, t, Cost(3)).model.theta for t in range(2, 202)], np.float64)
    expected = theta - hand.rate * np.mean([hand.device(theta, xy) for xy in hand.devices], axis=0)
    errors = after.std(axis=0) / math.sqrt(len(after))
    assert (np.abs(after.mean(axis=0) - expected) < 5 * errors).all()


def test_delta_z_is_the_same_over_zones() -> None:
    """DELTA-Z: the same over zones, with as many zones as `z` has neighbours, `z`'s model as the central one."""
    run = tiny(rounds=30)
    hand = ByHand(run)
    for z, zone in enumerate(NAMES):
        first, *later = train(run, "delta-z", zone).reports
        assert set(first.drawn) == {*hand.numbers} - {z}  # nothing is known yet
        assert max(len(report.drawn) for report in later) <= len(hand.near[z])
        # Each draw weighs 1/(n p N): over many rounds, N-1 others of 1/(N-1) each.
        total = np.mean([sum(report.attention.values()) for report in later])
        assert 0.6 < total < 1.5


def test_random_draws_uniformly_as_many_as_sgfusion() -> None:
    """Random (uniform draws, as many zones in expectation as SGFusion draws)"""
    world = load_world(tiny())
    random = METHODS["random"]
    assert isinstance(random, ZoneMethod)
    for z in range(len(NAMES)):
        sampler = random.plan(world, z, InProcess(world, z, Cost(3))).sampler
        draws = [sampler.draw(z, number) for number in range(1, 1201)]
        counts = np.array([sum(other in draw for draw in draws) for other in range(len(NAMES)) if other != z])
        expected = world.probabilities[z].sum()
        assert counts.sum() / 1200 == pytest.approx(expected, abs=0.17)
        assert (np.abs(counts / 1200 - expected / 4) < 5 * math.sqrt(0.25 / 1200)).all()


def test_all_draws_everyone() -> None:
    """All (every zone, every round)."""
    for z, zone in enumerate(NAMES):
        assert {report.drawn for report in done("all", zone).reports} == {tuple(o for o in range(5) if o != z)}


# Measures


def test_the_measure_is_the_rmse_on_the_zones_test_split() -> None:
    """RMSE per zone on its test split; pooled RMSE per country/dataset;"""
    run = tiny("data.validation=2", rounds=3)
    hand = ByHand(run)
    point = done("fedavg", "ash").outcome.points[0]
    labels: list[list[Floats]] = [[device.test.y.astype(np.float64) for device in zone] for zone in hand.data]
    for zone, own in zip(NAMES, labels, strict=True):
        score = point.test[zone]
        rmse = math.sqrt(np.mean(np.concatenate(own) ** 2))  # the model before training says 0
        assert RMSE_UNITLESS.value(score.total, score.count) == pytest.approx(rmse, rel=1e-5)
    everything = np.concatenate([y for own in labels for y in own])
    assert pooled(RMSE_UNITLESS, point.test) == pytest.approx(math.sqrt(np.mean(everything**2)), rel=1e-5)


def test_draws_and_homophily_are_measured() -> None:
    """mean number of zones drawn a round; mean homophily `1/T Σ_t 1/|Z| Σ_z 1/|N| Σ d(Y_z, Y_z')`;"""
    run = tiny("data.validation=2", rounds=10)
    y = load_world(run).histograms
    for z, zone in enumerate(NAMES):
        trained = done("chi-sgfusion", zone, rounds=10)
        draws = [report.drawn for report in trained.reports]
        likeness = [np.mean([np.linalg.norm(y[z] - y[other]) for other in draw]) for draw in draws]
        assert trained.outcome.drawn == np.mean([len(draw) for draw in draws])
        assert trained.outcome.homophily == pytest.approx(np.mean(likeness))


def test_top_k_has_the_least_homophily_of_all_draws_of_its_size() -> None:
    """mean homophily `1/T Σ_t 1/|Z| Σ_z 1/|N| Σ d(Y_z, Y_z')`;"""
    for zone in NAMES[1:4]:
        nearest = done("top-k-sgfusion", zone, "sampler={kind='top-k', k=2}").outcome
        beside = done("d-zgd", zone).outcome
        assert nearest.drawn == beside.drawn == 2.0
        assert nearest.homophily is not None
        assert beside.homophily is not None
        assert nearest.homophily <= beside.homophily


@pytest.mark.parametrize("method", METHODS)
def test_the_model_kept_is_the_best_on_the_validation_split(method: str) -> None:
    """Models are chosen on the validation split, never on test."""
    for zone in NAMES if isinstance(METHODS[method], ZoneMethod) else NAMES[:1]:
        outcome = done(method, zone, "data.noise=2.0", "optimiser.rate=0.4", rounds=12).outcome
        by_validation = [pooled(RMSE_UNITLESS, point.validation) for point in outcome.points]
        assert outcome.chosen == outcome.points[int(np.argmin(by_validation))].round
        assert outcome.best.round == outcome.chosen
