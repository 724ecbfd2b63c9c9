"""IFCA: k models, each device trains the one that fits its training data best (method 9)."""

import numpy as np
import pytest

from simulator.cost import Cost
from simulator.methods.central import Stepped
from simulator.methods.ifca import METHOD, State
from simulator.run import train
from simulator.world import World, load_world
from tests.simulator.tiny import UPDATES, ByHand, Floats, loss, near, tiny


def step_by_hand(hand: ByHand, models: list[Floats], rate: float) -> list[Floats]:
    """Each device trains its best model; a cluster's model is the mean of its devices', an empty one stays."""
    trained: list[list[Floats]] = [[] for _ in models]
    for xy in hand.devices:
        losses = [loss(theta, *xy) for theta in models]
        j = losses.index(min(losses))
        trained[j].append(models[j] - rate * hand.device(models[j], xy))
    return [np.mean(own, axis=0) if own else theta for own, theta in zip(trained, models, strict=True)]


def planted(world: World, *thetas: list[float]) -> State:
    return State(tuple(Stepped.initial(world, np.array(theta, np.float32)) for theta in thetas))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("exact", ["false", "true"])
def test_two_rounds_by_hand(update: str, exact: str) -> None:
    run = tiny(*UPDATES[update], f"simulation.exact={exact}", seed=35)
    world, hand = load_world(run), ByHand(run)
    assert len(set(METHOD.serve(world, METHOD.init(world)).of_device.tolist())) == 3
    models = [model.theta.astype(np.float64) for model in METHOD.init(world).models]
    for _ in range(2):
        models = step_by_hand(hand, models, hand.rate)
    trained = train(run, "ifca", None)
    assert list(trained.models) == ["cluster-0", "cluster-1", "cluster-2"]
    assert near(np.stack(list(trained.models.values())), models)


@pytest.mark.parametrize("clusters", [1, 2, 5])
def test_there_are_as_many_models_as_the_run_says_and_they_differ(clusters: int) -> None:
    run = tiny(f"baselines.clusters={clusters}")
    world = load_world(run)
    state: State = METHOD.init(world)
    thetas = {model.theta.tobytes() for model in state.models}
    assert len(state.models) == len(thetas) == clusters
    assert state.models[0].theta.tolist() == world.theta.tolist()  # the one that all methods start with
    again: State = METHOD.init(load_world(run))
    assert [model.theta.tolist() for model in again.models] == [model.theta.tolist() for model in state.models]
    other: State = METHOD.init(load_world(tiny(f"baselines.clusters={clusters}", seed=6)))
    assert all((a.theta != b.theta).any() for a, b in zip(state.models[1:], other.models[1:], strict=True))


def test_one_cluster_is_fedavg() -> None:
    run = tiny("baselines.clusters=1", rounds=3)
    assert near(train(run, "ifca", None).models["global"], train(run, "fedavg", None).models["global"])


def test_devices_pick_the_model_of_the_least_training_loss_and_the_first_among_equals() -> None:
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    thetas = [[0.0, 0.0, 0.0], hand.best(0).tolist(), hand.best(4).tolist(), hand.best(4).tolist()]
    wide = [np.array(theta, np.float32).astype(np.float64) for theta in thetas]
    expected = [int(np.argmin([loss(theta, *xy) for theta in wide[:3]])) for xy in hand.devices]
    assert METHOD.serve(world, planted(world, *thetas)).of_device.tolist() == expected
    assert len(set(expected)) > 1


def test_an_empty_cluster_stays_and_is_never_served() -> None:
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    far = [1e3, -1e3, 1e3]
    state: State = METHOD.apply(world, planted(world, [0, 0, 0], far), 1, Cost(3))
    assert state.models[1].theta.tolist() == far
    assert near(state.models[0].theta, step_by_hand(hand, [hand.start], hand.rate)[0])
    assert METHOD.serve(world, state).of_device.tolist() == [0] * len(hand.devices)


def test_a_cluster_that_was_empty_steps_at_the_rate_of_the_round() -> None:
    """`η_t` is that of round `t`, for every model of the run and in every method."""
    run = tiny("optimiser={schedule='inverse', strong_convexity=4}", rounds=9)
    world, hand = load_world(run), ByHand(run)
    far = [1e3, -1e3, 1e3]
    state: State = METHOD.apply(world, planted(world, [0, 0, 0], far), 1, Cost(3))
    # Now the second becomes the better one of all devices.
    far_first = State((Stepped(np.array(far, np.float32), state.models[0].optimiser), _at_zero(state.models[1])))
    moved: State = METHOD.apply(world, far_first, 2, Cost(3))
    assert near(moved.models[1].theta, step_by_hand(hand, [hand.start], 1 / (4 * 2))[0])


def _at_zero(model: Stepped) -> Stepped:
    return Stepped(np.zeros_like(model.theta), model.optimiser)
