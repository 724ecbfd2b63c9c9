"""A job: one zone's trajectory, or a whole run of a method with central models."""

import hashlib
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from device.batch import batch_of
from sgfusion.errors import DataError, RunFileError
from simulator.cost import Cost
from simulator.methods.method import ZoneMethod
from simulator.methods.registry import METHODS, method_named, method_of
from simulator.outcome import Point
from simulator.run import Trained, train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, SIZES, UPDATES, ByHand, near, tiny

ROOT = Path(__file__).parents[2]
ZONE_METHODS = [name for name, method in METHODS.items() if isinstance(method, ZoneMethod)]
CENTRAL = [name for name in METHODS if name not in ZONE_METHODS]
SHARING = [name for name in ZONE_METHODS if name != "sgeofl"]


def zone_of(method: str, zone: str = "birch") -> str | None:
    return zone if method in ZONE_METHODS else None


def digest(trained: Trained) -> str:
    """Of all that came of it: the outcome, and every weight to the bit."""
    models = b"".join(name.encode() + theta.tobytes() for name, theta in trained.models.items())
    return hashlib.sha256(trained.outcome.to_json().encode() + models).hexdigest()


def test_there_are_the_twelve_methods_of_the_comparison_and_a_control_more() -> None:
    assert list(METHODS) == [
        *("sgfusion", "chi-sgfusion", "top-k-sgfusion", "d-zgd", "sgeofl", "delta-z"),
        *("fedavg", "ifca", "fedsem", "feddelta", "random", "shuffled", "all"),
    ]
    assert CENTRAL == ["fedavg", "ifca", "fedsem", "feddelta"]
    assert {name: method.per_zone for name, method in METHODS.items()} == {n: n in ZONE_METHODS for n in METHODS}


# The same beginning, and the same samples


@pytest.mark.parametrize("method", METHODS)
def test_every_method_starts_with_the_same_weights_and_is_scored_on_the_same_samples(method: str) -> None:
    run = tiny("data.validation=2")
    hand = ByHand(run)
    for z, zone in enumerate(NAMES):
        first = train(run, method, zone_of(method, zone)).outcome.points[0]
        assert first.round == 0
        for split, scores in (("validation", first.validation), ("test", first.test)):
            labels = [getattr(device, split).y.astype(np.float64) for device in hand.data[z]]
            assert scores[zone].count == sum(map(len, labels))
            if method != "ifca":  # its models must differ from the start
                assert near(scores[zone].total, sum(float((y**2).sum()) for y in labels), 1e-5)  # θ⁰ = 0 says 0


@pytest.mark.parametrize("method", METHODS)
def test_a_run_repeats_itself_to_the_bit(method: str) -> None:
    run = tiny("data.validation=1", rounds=4)
    assert digest(train(run, method, zone_of(method))) == digest(train(run, method, zone_of(method)))


def test_another_seed_is_another_run() -> None:
    assert digest(train(tiny(), "sgfusion", "birch")) != digest(train(tiny(seed=6), "sgfusion", "birch"))


# Zones train apart


@pytest.mark.parametrize("method", ZONE_METHODS)
def test_a_zones_trajectory_does_not_depend_on_what_else_was_trained(method: str) -> None:
    run = tiny(rounds=5)
    alone = {zone: digest(train(run, method, zone)) for zone in NAMES}
    for zone in reversed(NAMES):
        train(run, "fedavg", None)
        assert digest(train(run, method, zone)) == alone[zone]


PROCESS = """
import sys
from simulator.run import train
from tests.simulator.test_run import digest, zone_of
from tests.simulator.tiny import tiny
for method in reversed(sys.argv[1:]):
    print(method, digest(train(tiny("data.validation=1", rounds=4), method, zone_of(method))))
"""


def test_a_trajectory_is_the_same_in_another_process() -> None:
    methods = ["sgfusion", "delta-z", "all", "fedavg", "fedsem", "ifca", "feddelta"]
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, *methods], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    elsewhere = dict(line.split() for line in done.stdout.splitlines())
    run = tiny("data.validation=1", rounds=4)
    assert elsewhere == {method: digest(train(run, method, zone_of(method))) for method in methods}


# Exact, or one batch a zone


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("method", ["sgeofl", "all"])
def test_exact_is_a_loop_over_devices_to_the_bit(update: str, method: str) -> None:
    run = tiny(*UPDATES[update], "simulation.exact=true", rounds=3)
    world = load_world(run)
    theta = world.theta
    for _ in range(3):
        directions = []
        for zone in world.data.zones:
            answers = []
            for device in zone.devices:
                batch = batch_of(device.train)
                kind = run.update.kind
                answer = (
                    world.learner.gradient(theta, batch)
                    if kind == "gradient"
                    else world.learner.delta(theta, batch, run.update)
                )
                answers.append(answer.astype(np.float64))
            directions.append((sum(answers, np.zeros(3)) / len(answers)).astype(np.float32))
        local, *others = [directions[1], directions[0], *directions[2:]]
        direction = local.astype(np.float64)
        if method == "all":
            inner = [float((local.astype(np.float64) * other).sum()) for other in others]
            e = [_exp_of_sigmoid(a) for a in inner]
            for weight, other in zip(np.array(e) / math.fsum(e), others, strict=True):
                direction = direction + weight * other.astype(np.float64)
        theta = theta - (run.optimiser.rate or 0) * direction.astype(np.float32)
    found = train(run, method, "birch").models["birch"]
    assert found.tobytes() == theta.tobytes()


def _exp_of_sigmoid(a: float) -> float:
    decay = math.exp(-abs(a))
    return math.exp((1.0 if a >= 0 else decay) / (1.0 + decay))


@pytest.mark.parametrize("method", METHODS)
def test_one_batch_agrees_with_exact_but_for_rounding(method: str) -> None:
    fused, exact = (tiny(f"simulation.exact={exact}", rounds=6) for exact in ("false", "true"))
    one, other = (train(run, method, zone_of(method)) for run in (fused, exact))
    assert list(one.models) == list(other.models)
    for name, theta in one.models.items():
        assert near(theta, other.models[name], 2e-5)
    assert [report.drawn for report in one.reports] == [report.drawn for report in other.reports]
    assert (one.outcome.device_gradients, one.outcome.bytes_sent) == (
        other.outcome.device_gradients,
        other.outcome.bytes_sent,
    )


# Both kinds of update


@pytest.mark.parametrize("method", METHODS)
def test_one_local_step_over_everything_is_a_gradient_at_the_product_of_the_rates(method: str) -> None:
    """By cosine: the raw inner product of method 7 sees how long gradients are, and so does the attention."""
    settings = ["fusion.similarity=cosine", "data.validation=1"]
    gradient = train(tiny(*settings, "optimiser.rate=0.2", rounds=5), method, zone_of(method))
    delta = tiny(*settings, "update={kind='delta', epochs=1, rate=0.05}", "optimiser.rate=4.0", rounds=5)
    other = train(delta, method, zone_of(method))
    for name, theta in gradient.models.items():
        assert near(theta, other.models[name], 1e-4)
    assert gradient.outcome.chosen == other.outcome.chosen
    assert gradient.outcome.drawn == other.outcome.drawn


# Points


def test_points_are_where_the_run_says_and_at_both_ends() -> None:
    for rounds, every, expected in ((7, 3, [0, 3, 6, 7]), (6, 3, [0, 3, 6]), (2, 10, [0, 2]), (3, 1, [0, 1, 2, 3])):
        run = tiny(f"evaluation.every={every}", rounds=rounds)
        for method in ("sgeofl", "fedavg"):
            outcome = train(run, method, zone_of(method)).outcome
            assert [point.round for point in outcome.points] == expected
            assert outcome.rounds == rounds


def test_how_often_it_is_looked_at_changes_nothing_of_the_training() -> None:
    points: dict[str, dict[int, Point]] = {}
    for every in (1, 4):
        run = tiny(f"evaluation.every={every}", rounds=8)
        for method in ("sgfusion", "delta-z", "fedsem"):
            found = {point.round: point for point in train(run, method, zone_of(method)).outcome.points}
            points.setdefault(method, found)
            assert all(points[method][number] == point for number, point in found.items())


def test_the_scores_of_a_zones_trajectory_are_those_of_its_models() -> None:
    run = tiny("data.validation=2", rounds=3)
    hand = ByHand(run)
    outcome = train(run, "d-zgd", "cedar").outcome
    for theta, point in zip(hand.trajectory(2, hand.near[2]), outcome.points, strict=True):
        for split, scores in (("validation", point.validation), ("test", point.test)):
            parts = [getattr(device, split) for device in hand.data[2]]
            errors = sum(float(((part.x.astype(np.float64) @ theta - part.y) ** 2).sum()) for part in parts)
            assert near(scores["cedar"].total, errors, 1e-4)


@pytest.mark.parametrize("method", CENTRAL)
def test_the_scores_of_a_central_method_are_each_devices_with_the_model_that_serves_it(method: str) -> None:
    run = tiny("data.validation=2", "baselines.clusters=3", rounds=3, seed=35)
    world, hand = load_world(run), ByHand(run)
    central = METHODS[method]
    assert not isinstance(central, ZoneMethod)
    state = central.init(world)
    for number in (1, 2, 3):
        state = central.apply(world, state, number, Cost(3))
    served = central.serve(world, state)
    point = train(run, method, None).outcome.points[-1]
    which = iter(served.of_device.tolist())
    mixed = False
    for zone, devices in zip(NAMES, hand.data, strict=True):
        theirs = [next(which) for _ in devices]
        mixed |= len(set(theirs)) > 1
        for split, scores in (("validation", point.validation), ("test", point.test)):
            errors, count = 0.0, 0
            for device, j in zip(devices, theirs, strict=True):
                part = getattr(device, split)
                theta = served.models[j].astype(np.float64)
                errors += float(((part.x.astype(np.float64) @ theta - part.y) ** 2).sum())
                count += len(part)
            assert scores[zone].count == count
            assert near(scores[zone].total, errors, 1e-4)
    assert mixed == (method in ("ifca", "fedsem")), "this seed's zones do not mix clusters: choose another"


def test_progress_is_told_round_by_round() -> None:
    told: list[tuple[int, int]] = []
    for method in ("sgeofl", "fedavg"):
        train(tiny(rounds=3), method, zone_of(method), lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)] * 2


def test_homophily_is_the_mean_distance_to_whom_was_drawn() -> None:
    run = tiny(rounds=12)
    apart = load_world(run).tree.distances
    for z, zone in enumerate(NAMES):
        trained = train(run, "sgfusion", zone)
        drawn = [report.drawn for report in trained.reports]
        means = [np.mean([apart[z, other] for other in zones]) for zones in drawn if zones]
        assert trained.outcome.homophily == pytest.approx(float(np.mean(means)))
        assert trained.outcome.drawn == pytest.approx(np.mean([len(zones) for zones in drawn]))
    assert train(run, "sgeofl", "ash").outcome.homophily is None


# Divergence


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("method", METHODS)
def test_a_rate_far_too_high_ends_it_early_with_finite_models_and_the_points_so_far(method: str, update: str) -> None:
    rate = "update.rate=1e4" if update != "gradient" else "optimiser.rate=1e4"
    run = tiny(*UPDATES[update], rate, "data.validation=2", rounds=60)
    trained = train(run, method, zone_of(method))
    outcome = trained.outcome
    assert outcome.diverged is not None
    assert "Lower the learning rate" in outcome.diverged
    assert outcome.rounds < 60
    assert [point.round for point in outcome.points] == list(range(len(outcome.points)))
    assert len(outcome.points) > 1
    assert outcome.chosen == 0  # from there on it only gets worse
    assert all(np.isfinite(theta).all() for theta in trained.models.values())
    calm = train(tiny(*UPDATES[update], "data.validation=2", rounds=1), method, zone_of(method)).outcome
    assert outcome.points[0] == calm.points[0]
    assert len(trained.reports) == (outcome.rounds if method in ZONE_METHODS else 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("exact", ["false", "true"])
def test_a_rate_beyond_everything_ends_it_at_once(method: str, exact: str) -> None:
    run = tiny("optimiser.rate=1e38", f"simulation.exact={exact}", "data.validation=2", rounds=9)
    trained = train(run, method, zone_of(method))
    assert trained.outcome.diverged is not None
    assert all(np.isfinite(theta).all() for theta in trained.models.values())
    assert trained.outcome.chosen == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_diverges_between_evaluations_says_so_too(method: str) -> None:
    run = tiny("optimiser.rate=1e4", "evaluation.every=1000", "data.validation=2", rounds=60)
    trained = train(run, method, zone_of(method))
    assert trained.outcome.diverged is not None
    assert (trained.outcome.chosen, len(trained.outcome.points)) == (0, 1)
    assert all(np.isfinite(theta).all() for theta in trained.models.values())


def test_without_validation_samples_a_diverged_run_keeps_its_last_finite_models() -> None:
    trained = train(tiny("optimiser.rate=1e4", rounds=60), "sgeofl", "birch")
    assert trained.outcome.diverged is not None
    assert trained.outcome.chosen == trained.outcome.points[-1].round > 0
    assert np.isfinite(trained.models["birch"]).all()


# Few zones, devices and samples


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("zones", [1, 2])
def test_one_zone_or_two(method: str, zones: int) -> None:
    generated = "source='generated_zones', devices=2, samples=8, features=3, kinds=2, contrast=0.2, difference=0.1"
    run = tiny(f"data={{{generated}, noise=0.5}}", sizes=SIZES[:zones], rounds=3)
    trained = train(run, method, zone_of(method, "ash"))
    assert trained.outcome.diverged is None
    assert all(np.isfinite(theta).all() for theta in trained.models.values())
    if method in ZONE_METHODS:
        assert trained.outcome.drawn == (1.0 if zones == 2 and method != "sgeofl" else 0.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("update", UPDATES)
def test_devices_and_zones_of_one_sample(method: str, update: str) -> None:
    run = tiny(*UPDATES[update], sizes=[[1], [1, 1], [3, 1]], rounds=4)
    for zone in NAMES[:3]:
        trained = train(run, method, zone_of(method, zone))
        assert trained.outcome.diverged is None
        assert all(np.isfinite(theta).all() for theta in trained.models.values())


@pytest.mark.parametrize("method", METHODS)
def test_a_zone_without_test_samples_trains_and_has_no_score(method: str) -> None:
    run = tiny("data.untested=['birch']", "data.validation=1")
    outcome = train(run, method, zone_of(method)).outcome
    for point in outcome.points:
        assert (point.test["birch"].total, point.test["birch"].count) == (0.0, 0)
        assert point.validation["birch"].count == 3
    tested = train(tiny("data.validation=1"), method, zone_of(method)).outcome
    assert [point.validation for point in outcome.points] == [point.validation for point in tested.points]


# Refusals


def test_a_zone_method_wants_a_zone_of_the_run() -> None:
    with pytest.raises(RunFileError, match="method 'sgfusion' trains zone by zone: name the zone"):
        train(tiny(), "sgfusion", None)
    with pytest.raises(DataError, match="zone 'oak' is not one of this run: ash, birch"):
        train(tiny(), "sgfusion", "oak")


def test_a_method_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(RunFileError, match="method 'fedprox': choose one of sgfusion, chi-sgfusion"):
        train(tiny(), "fedprox", None)
    with pytest.raises(RunFileError, match="method 'fedprox'"):
        method_named("fedprox")


# Methods and run files


def test_the_samplers_of_run_files_are_methods() -> None:
    kinds = {
        "hrg": "sgfusion",
        "chi": "chi-sgfusion",
        "neighbours": "d-zgd",
        "none": "sgeofl",
        "random": "random",
        "all": "all",
    }
    for kind, method in kinds.items():
        assert method_of(tiny(f"sampler.kind={kind}")) == method
    assert method_of(tiny("sampler={kind='top-k', k=2}")) == "top-k-sgfusion"
