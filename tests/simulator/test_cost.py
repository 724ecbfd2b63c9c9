"""What training costs: gradients and bytes, by hand (method 9: "budget of gradient evaluations")."""

import pytest

from simulator.cost import Cost
from simulator.methods.ifca import METHOD
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, SIZES, ByHand, tiny

P = 3
"""Weights of the tiny model; a vector of them is 12 bytes."""
VECTOR = 4 * P
BINS = 6
HISTOGRAM = 8 * BINS
DEVICES = [len(zone) for zone in SIZES]
assert DEVICES == [2, 3, 1, 2, 3]


def test_an_account_adds_up() -> None:
    cost = Cost(10)
    cost.gradients(3)  # three devices: 40 bytes to each, 40 back
    assert (cost.device_gradients, cost.bytes_sent) == (3, 240)
    cost.gradients(2, hops=1)  # and 40 to their edge and back
    assert (cost.device_gradients, cost.bytes_sent) == (5, 240 + 240)
    cost.central(1, 1, 4, 1, to_device=4)  # 160 down and 40 up, twice
    assert (cost.device_gradients, cost.bytes_sent) == (6, 480 + 400)
    cost.histograms(2, 5)  # 40 bytes of each device and of the zone
    assert (cost.device_gradients, cost.bytes_sent) == (6, 880 + 120)


def test_no_sharing_costs_the_zones_own_devices() -> None:
    outcome = train(tiny(rounds=3), "sgeofl", "birch").outcome
    assert outcome.parameters == P
    assert outcome.device_gradients == 3 * 3
    assert outcome.bytes_sent == 3 * (3 * 2 * VECTOR)


def test_a_fixed_draw_costs_its_devices_and_an_edge_for_each_zone() -> None:
    outcome = train(tiny(rounds=2), "d-zgd", "birch").outcome  # next to ash (2 devices) and cedar (1)
    assert outcome.device_gradients == 2 * (3 + 2 + 1)
    assert outcome.bytes_sent == 2 * ((3 + (2 + 1) + (1 + 1)) * 2 * VECTOR)


@pytest.mark.parametrize("method", ["sgfusion", "chi-sgfusion", "top-k-sgfusion", "random", "all"])
def test_zone_methods_cost_what_was_drawn(method: str) -> None:
    for z, zone in enumerate(NAMES):
        trained = train(tiny(rounds=4), method, zone)
        own, drawn = DEVICES[z], [other for report in trained.reports for other in report.drawn]
        asked = sum(DEVICES[other] for other in drawn)
        assert trained.outcome.device_gradients == 4 * own + asked
        histograms = 0 if method in ("random", "all") else (own + 1) * HISTOGRAM
        assert trained.outcome.bytes_sent == (4 * own + asked + len(drawn)) * 2 * VECTOR + histograms


def test_delta_z_pays_for_everyone_in_round_1() -> None:
    trained = train(tiny(rounds=2), "delta-z", "cedar")
    later = [DEVICES[other] for other in trained.reports[1].drawn]
    assert trained.outcome.device_gradients == (1 + 10) + (1 + sum(later))
    assert trained.outcome.bytes_sent == ((1 + 10 + 4) + (1 + sum(later) + len(later))) * 2 * VECTOR


def test_fedavg_costs_all_devices_and_all_edges() -> None:
    outcome = train(tiny(rounds=3), "fedavg", None).outcome
    assert outcome.device_gradients == 3 * 11
    assert outcome.bytes_sent == 3 * (11 + 5) * 2 * VECTOR


def test_ifca_sends_every_model_to_every_device() -> None:
    """k models down to each device and one direction up; edges add up what is of one cluster, so up to k go up."""
    run = tiny("baselines.clusters=3", rounds=1)
    outcome = train(run, "ifca", None).outcome
    assert outcome.device_gradients == 11
    assert outcome.bytes_sent >= (11 * (3 + 1) + 5 * (3 + 1)) * VECTOR
    assert outcome.bytes_sent <= (11 * (3 + 1) + 5 * (3 + 3)) * VECTOR


def test_ifcas_edges_send_a_direction_for_each_cluster_that_they_have() -> None:
    """A cluster's direction is the mean over devices of several zones: an edge cannot add two clusters' into one."""
    run = tiny("baselines.clusters=3", rounds=1, seed=35)
    world = load_world(run)
    chosen = METHOD.serve(world, METHOD.init(world)).of_device.tolist()
    start, up = 0, 0
    for count in DEVICES:
        up += len(set(chosen[start : start + count]))
        start += count
    assert up > 5, "this seed's zones each have one cluster only: nothing to see"
    assert train(run, "ifca", None).outcome.bytes_sent == (11 * (3 + 1) + 5 * 3 + up) * VECTOR


def test_feddelta_costs_whom_it_draws_and_their_edges() -> None:
    run = tiny("baselines.share=0.1", rounds=2)
    outcome = train(run, "feddelta", None).outcome
    assert outcome.device_gradients == 11 + 1
    # Weights to edges and devices, directions of devices to edges and one by one on; in round 2 of one device.
    assert outcome.bytes_sent == ((5 + 11 + 11 + 11) + (1 + 1 + 1 + 1)) * VECTOR


def test_evaluation_and_validation_cost_nothing() -> None:
    costs = {
        (outcome.device_gradients, outcome.bytes_sent)
        for every in (1, 2, 7)
        for outcome in [train(tiny(f"evaluation.every={every}", rounds=6), "all", "ash").outcome]
    }
    assert len(costs) == 1


def test_both_kinds_of_update_cost_the_same_bytes() -> None:
    delta = "update={kind='delta', epochs=3, rate=0.1}"
    one, other = (train(tiny(*kind, rounds=2), "all", "ash").outcome for kind in ((), (delta,)))
    assert one.bytes_sent == other.bytes_sent


def test_what_is_left_of_a_diverged_run_was_paid_for() -> None:
    outcome = train(tiny("optimiser.rate=1e30", rounds=9), "sgeofl", "ash").outcome
    assert outcome.diverged
    assert outcome.device_gradients >= outcome.rounds * len(ByHand(tiny()).train[0])


@pytest.mark.parametrize("method", ["fedavg", "ifca", "fedsem", "sgeofl"])
def test_local_epochs_cost_a_gradient_for_each_step(method: str) -> None:
    """Two epochs over batches of two: a device with n samples computes 2 ⌈n/2⌉ gradients."""
    update = "update={kind='delta', epochs=2, rate=0.01, batch=2}"
    outcome = train(tiny(update, rounds=1), method, "ash" if method == "sgeofl" else None).outcome
    hand = ByHand(tiny())
    zones = hand.train[:1] if method == "sgeofl" else hand.train
    assert outcome.device_gradients == sum(2 * -(-len(y) // 2) for zone in zones for _, y in zone)


def test_fedsem_needs_every_local_model_once_and_then_means() -> None:
    """One centre down to 5 edges and 11 devices, 11 models up; in round 1 they go on to the cloud one by one."""
    outcome = train(tiny("baselines.clusters=2", rounds=1), "fedsem", None).outcome
    assert outcome.bytes_sent == (11 * 2 + 5 * 1 + 11) * VECTOR


def test_feddelta_runs_local_epochs_over_halves_too() -> None:
    update = "update={kind='delta', epochs=3, rate=0.01}"
    outcome = train(tiny(update, rounds=1), "feddelta", None).outcome
    sizes = [len(y) for zone in ByHand(tiny()).train for _, y in zone]
    assert outcome.device_gradients == sum(3 * (3 if n > 1 else 1) for n in sizes)
