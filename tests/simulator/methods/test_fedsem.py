"""FedSEM: k centres, devices go with the one nearest to their local weights (method 9)."""

from dataclasses import replace

import numpy as np
import pytest

from sgfusion.optimiser import OptimiserState
from simulator.cost import Cost
from simulator.methods.central import Stepped
from simulator.methods.fedsem import METHOD, State
from simulator.run import train
from simulator.world import World, load_world
from tests.simulator.tiny import UPDATES, ByHand, Floats, luck, near, pick, tiny


def em_by_hand(
    hand: ByHand, centres: list[Floats], of_device: list[int], rate: float
) -> tuple[list[Floats], list[int]]:
    """Broadcast and train locally; E: each device to its nearest centre; M: each centre to its devices' mean."""
    local = [centres[j] - rate * hand.device(centres[j], xy) for xy, j in zip(hand.devices, of_device, strict=True)]
    return em_of(local, centres)


def em_of(local: list[Floats], centres: list[Floats]) -> tuple[list[Floats], list[int]]:
    nearest = [int(np.argmin([((theta - centre) ** 2).sum() for centre in centres])) for theta in local]
    moved = []
    for j, centre in enumerate(centres):
        own = [theta for theta, of in zip(local, nearest, strict=True) if of == j]
        moved.append(np.mean(own, axis=0) if own else centre)
    return moved, nearest


def first_centres_by_hand(local: list[Floats], seed: int, clusters: int) -> list[Floats]:
    """As k-means++ does: the first uniformly, each next with a chance in proportion to its squared distance."""
    first, *others = luck(seed, "fedsem start", count=clusters)
    centres = [local[int(first * len(local))]]
    for number in others:
        chances = [min(float(((theta - centre) ** 2).sum()) for centre in centres) for theta in local]
        centres.append(local[pick(chances, number)])
    return centres


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("clusters", [1, 2, 3])
def test_three_rounds_by_hand(update: str, clusters: int) -> None:
    run = tiny(*UPDATES[update], f"baselines.clusters={clusters}", rounds=3)
    world, hand = load_world(run), ByHand(run)
    local = [hand.start - hand.rate * hand.device(hand.start, xy) for xy in hand.devices]
    centres, of_device = em_of(local, first_centres_by_hand(local, run.seed, clusters))
    for _ in range(2):
        centres, of_device = em_by_hand(hand, centres, of_device, hand.rate)
    trained = train(run, "fedsem", None)
    assert near(np.stack(list(trained.models.values())), centres, 1e-5)
    state: State = METHOD.init(world)
    for number in (1, 2, 3):
        state = METHOD.apply(world, state, number, Cost(3))
    served = METHOD.serve(world, state)
    assert served.of_device.tolist() == of_device
    assert len(set(of_device)) == clusters


def test_one_centre_is_fedavg() -> None:
    run = tiny("baselines.clusters=1", rounds=3)
    assert near(train(run, "fedsem", None).models["global"], train(run, "fedavg", None).models["global"], 1e-5)


def test_before_training_all_devices_have_the_weights_that_all_methods_start_with() -> None:
    world = load_world(tiny())
    served = METHOD.serve(world, METHOD.init(world))
    assert [model.tolist() for model in served.models] == [world.theta.tolist()]
    assert set(served.of_device.tolist()) == {0}


def test_more_centres_than_different_devices_are_as_many_as_differ() -> None:
    run = tiny("baselines.clusters=9", "data.alike=true", "data.spread=0.0", sizes=[[4, 4], [4], [6]])
    world = load_world(run)
    state: State = METHOD.apply(world, METHOD.init(world), 1, Cost(3))
    assert len(state.centres) == 2  # those of four samples, and the one of six


def planted(world: World, thetas: list[list[float]], of_device: list[int]) -> State:
    """As after round 1."""
    assert Stepped.initial(world, world.theta).optimiser.slots == {}
    centres = tuple(Stepped(np.array(theta, np.float32), OptimiserState(1)) for theta in thetas)
    return State(centres, np.array(of_device, np.intp))


def test_an_empty_centre_stays() -> None:
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    far = [50.0, -50.0, 50.0]
    state: State = METHOD.apply(world, planted(world, [[0, 0, 0], far], [0] * 11), 2, Cost(3))
    expected, nearest = em_by_hand(hand, [hand.start, np.array(far)], [0] * 11, hand.rate)
    assert state.centres[1].theta.tolist() == far
    assert near(state.centres[0].theta, expected[0], 1e-5)
    assert state.of_device.tolist() == nearest == [0] * 11


@pytest.mark.parametrize("schedule", ["schedule='inverse', strong_convexity=4.0", "schedule='cosine', rate=0.3"])
def test_a_centre_is_the_mean_of_its_devices_also_when_it_was_empty_before(schedule: str) -> None:
    """M: centre = mean, at any rate of the schedule."""
    run = tiny(f"optimiser={{{schedule}}}", rounds=5)
    world, hand = load_world(run), ByHand(run)
    rate = run.optimiser.optimiser(5).schedule.rate_at(3)
    far = np.array([20.0, -20.0, 20.0])
    state: State = METHOD.apply(world, planted(world, [[0, 0, 0], far.tolist()], [0] * 11), 2, Cost(3))
    centres = [centre.theta.astype(np.float64) for centre in state.centres]
    back = replace(state, of_device=np.array([1] * 5 + [0] * 6, np.intp))
    moved: State = METHOD.apply(world, back, 3, Cost(3))
    expected, nearest = em_by_hand(hand, centres, [1] * 5 + [0] * 6, rate)
    assert moved.of_device.tolist() == nearest
    assert 1 in nearest
    assert near([centre.theta for centre in moved.centres], expected, 1e-4)
