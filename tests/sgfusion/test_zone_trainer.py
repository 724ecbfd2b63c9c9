"""The round of one zone: any order of answers, any loss on the way, the same bits (methods 5, 6 and 7)."""

import json
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion import checkpoint
from sgfusion.errors import DivergedError, GradientError, PeerUnavailableError, RoundError
from sgfusion.fusion import attention
from sgfusion.optimiser import Optimiser, OptimiserState, Schedule
from sgfusion.sampling import NeighbourSampler, NoSampler, Sampler
from sgfusion.zone_trainer import RoundReport, ZoneState, ZoneTrainer, run_round

Vector = npt.NDArray[np.float32]
HALF = Optimiser("sgd", Schedule("constant", 0.5))
STAR = NeighbourSampler([[1, 2, 3], [0], [0], [0]])
"""Zone 0 draws 1, 2 and 3 in every round."""


def vector(*values: float) -> Vector:
    return np.array(values, np.float32)


def trainer_of(sampler: Sampler = STAR, optimiser: Optimiser = HALF, theta: tuple[float, ...] = (1, 2)) -> ZoneTrainer:
    return ZoneTrainer(ZoneState.initial(0, theta, optimiser), sampler, optimiser)


def bits(state: ZoneState) -> bytes:
    return checkpoint.to_bytes(state)


# Tiny exact numbers


def test_a_round_by_hand() -> None:
    trainer = trainer_of()
    ask = trainer.begin()
    assert (ask.round, ask.theta.tolist(), ask.draw) == (1, [1.0, 2.0], (1, 2, 3))
    trainer.receive_local(vector(4, 0))
    trainer.receive_peer(1, vector(0, 4))  # both at right angles to the own gradient: half the weight each
    trainer.receive_peer(3, vector(0, -3))
    stages = [(trainer.waiting_for, trainer.complete)]
    trainer.leave_out(2, "late")
    assert [*stages, (trainer.waiting_for, trainer.complete)] == [((2,), False), ((), True)]
    assert trainer.finish() == RoundReport(
        zone=0,
        round=1,
        drawn=(1, 2, 3),
        attention={1: 0.5, 3: 0.5},
        left_out={2: "late"},
        rate=0.5,
        local_norm=4.0,
        peer_norms={1: 4.0, 3: 3.0},
        direction_norm=math.sqrt(16.25),
        step_norm=math.sqrt(16.25) / 2,
    )
    assert (trainer.state.round, trainer.state.theta.tolist(), trainer.state.optimiser.t) == (1, [-1.0, 1.75], 1)


@pytest.mark.parametrize("sampler", [NoSampler(), STAR])
def test_a_round_with_nobody_drawn_or_everybody_left_out_takes_the_local_step(sampler: Sampler) -> None:
    trainer = trainer_of(sampler)
    draw = trainer.begin().draw
    for zone in draw:
        trainer.leave_out(zone, "lost")
    trainer.receive_local(vector(2, -2))
    report = trainer.finish()
    assert trainer.state.theta.tolist() == [0.0, 3.0]
    assert (report.attention, report.left_out, report.direction_norm) == ({}, dict.fromkeys(draw, "lost"), math.sqrt(8))


def test_the_similarity_is_the_one_asked_for() -> None:
    own, peers = vector(9, 0), np.array([vector(1, 0), vector(-5, 1), vector(0, 3)])
    for similarity in ("inner", "cosine"):
        trainer = ZoneTrainer(ZoneState.initial(0, [0, 0], HALF), STAR, HALF, similarity)
        trainer.begin()
        trainer.receive_local(own)
        for zone, peer in enumerate(peers, 1):
            trainer.receive_peer(zone, peer)
        assert list(trainer.finish().attention.values()) == attention(own, peers, similarity).tolist()


# Answers that cannot be used

TOO_LARGE = np.array([1e300, 0])  # finite, but not in float32


@pytest.mark.parametrize(
    ("gradient", "reason"),
    [
        (vector(1, 2, 3), "its gradient has shape (3,) for weights of shape (2,)"),
        (vector(1, 2)[None], "its gradient has shape (1, 2) for weights of shape (2,)"),
        (vector(math.nan, 0), "its gradient is not finite"),
        (vector(0, -math.inf), "its gradient is not finite"),
        (TOO_LARGE, "its gradient is not finite"),
    ],
)
def test_a_peer_with_a_bad_gradient_is_left_out_and_the_round_goes_on(gradient: Vector, reason: str) -> None:
    trainer = trainer_of()
    trainer.begin()
    trainer.receive_local(vector(2, 0))
    trainer.receive_peer(1, vector(0, 4))
    trainer.receive_peer(2, gradient)
    trainer.leave_out(3, "lost")
    report = trainer.finish()
    assert report.left_out == {2: reason, 3: "lost"}
    assert trainer.state.theta.tolist() == [0.0, 0.0]


SGD, MOMENTUM = (Optimiser(kind, Schedule("constant", 1.0)) for kind in ("sgd", "momentum"))
OWN, STEP = "the zone's own gradient is not finite", "the step leads to numbers that are not finite"


@pytest.mark.parametrize(
    ("optimiser", "own", "what"),
    [
        (SGD, vector(math.nan, 0), OWN),
        (SGD, vector(0, math.inf), OWN),
        (SGD, TOO_LARGE, OWN),
        (SGD, vector(-3e38, 0), STEP),
        (MOMENTUM, vector(-3e38, 0), STEP),
        (Optimiser("adam"), vector(-3e38, 0), STEP),  # its square is infinite, its weights are not
    ],
)
def test_a_zone_that_diverges_says_so_and_keeps_its_state(optimiser: Optimiser, own: Vector, what: str) -> None:
    trainer = trainer_of(NoSampler(), optimiser, theta=(3e38, 0))
    kept = bits(trainer.state)
    with pytest.raises(DivergedError, match=f"^round 1: {what}"):  # noqa: PT012 - at receipt or at the end
        trainer.begin()
        trainer.receive_local(own)
        trainer.finish()
    assert bits(trainer.state) == kept


@pytest.mark.parametrize("theta", [[[1.0]], [math.nan], [1.0, math.inf]])
def test_weights_are_a_flat_finite_vector_and_the_own_gradient_is_as_long(theta: list[float]) -> None:
    with pytest.raises(GradientError, match="give a flat vector of finite numbers"):
        ZoneState.initial(0, theta, HALF)
    trainer = trainer_of()
    trainer.begin()
    with pytest.raises(GradientError, match=r"own gradient of shape \(3,\) for weights of shape \(2,\)"):
        trainer.receive_local(vector(1, 2, 3))


def test_answers_and_weights_given_are_copied() -> None:
    theta, own = vector(1, 2), vector(2, 2)
    trainer = ZoneTrainer(ZoneState.initial(0, theta, HALF), NoSampler(), HALF)
    trainer.begin()
    trainer.receive_local(own)
    theta[:], own[:] = 9, 9
    trainer.finish()
    assert trainer.state.theta.tolist() == [0.0, 1.0]


def test_a_source_that_writes_to_the_asked_weights_does_not_change_the_state() -> None:
    with pytest.raises(ValueError, match="read-only"):
        trainer_of().begin().theta[0] = 9


# Words out of turn


def test_before_begin_and_after_finish_no_round_is_under_way() -> None:
    trainer = trainer_of(NoSampler())
    for _ in range(2):
        for call in (trainer.finish, lambda: trainer.receive_local(vector(0, 0)), lambda: trainer.waiting_for):
            with pytest.raises(RoundError, match="no round is under way: call begin first"):
                call()
        trainer.begin()
        trainer.receive_local(vector(0, 0))
        trainer.finish()


def test_complete_is_false_between_rounds() -> None:
    trainer = trainer_of(NoSampler())
    assert not trainer.complete
    run_round(trainer, Bowls())
    assert not trainer.complete


def test_a_round_cannot_end_before_all_answers_are_in() -> None:
    trainer = trainer_of()
    trainer.begin()
    trainer.receive_peer(2, vector(0, 0))
    with pytest.raises(RoundError, match="round 1 cannot end: it waits for zone 1, zone 3, its own gradient"):
        trainer.finish()


# A source of gradients


class Bowls:
    """`F_z(θ) = a_z ‖θ - c_z‖² / 2`; some zones are lost in some rounds."""

    def __init__(self, lost: frozenset[int] = frozenset()) -> None:
        self.lost = lost

    def local(self, theta: Vector) -> Vector:
        return self.peer(0, theta)

    def peer(self, zone: int, theta: Vector) -> Vector:
        if zone in self.lost:
            raise PeerUnavailableError(f"zone {zone} is lost")
        return ((zone + 1) * (theta - np.float32(zone) / 3)).astype(np.float32)


def test_run_round_leaves_out_peers_that_are_unavailable() -> None:
    trainer = trainer_of()
    report = run_round(trainer, Bowls(frozenset({1, 3})))
    assert report.left_out == {1: "zone 1 is lost", 3: "zone 3 is lost"}
    assert report.attention == {2: 1.0}
    own, shared = Bowls().local(vector(1, 2)), Bowls().peer(2, vector(1, 2))
    assert trainer.state.theta.tolist() == (vector(1, 2) - 0.5 * (own + shared)).tolist()


def test_run_round_does_not_hide_that_the_zones_own_devices_are_lost() -> None:
    trainer = trainer_of()
    with pytest.raises(PeerUnavailableError, match="zone 0 is lost"):
        run_round(trainer, Bowls(frozenset({0})))
    assert trainer.state.round == 0


@given(order=st.permutations(range(4)), lost=st.frozensets(st.integers(1, 3)), again=st.integers(0, 4))
def test_any_order_of_answers_gives_the_same_bits(order: list[int], lost: frozenset[int], again: int) -> None:
    reference, trainer = trainer_of(), trainer_of()
    expected = run_round(reference, Bowls(lost))
    ask = trainer.begin()
    for answers in (order[:again], order):  # the first attempt breaks off, and begins again with the same draw
        assert trainer.begin().draw == ask.draw
        for zone in answers:
            if zone == 0:
                trainer.receive_local(Bowls().local(ask.theta))
            elif zone in lost:
                trainer.leave_out(zone, f"zone {zone} is lost")
            else:
                trainer.receive_peer(zone, Bowls().peer(zone, ask.theta))
    report = trainer.finish()
    assert report == expected
    assert sorted((*report.attention, *report.left_out)) == list(report.drawn) == [1, 2, 3]
    assert json.dumps(report.to_record(), allow_nan=False) == json.dumps(expected.to_record(), allow_nan=False)
    assert bits(trainer.state) == bits(reference.state)


class Shrinking:
    """Draws fewer zones each round, and then none."""

    def draw(self, _zone: int, round: int) -> tuple[int, ...]:
        return ((1, 2, 3), (3,), (1, 2), ())[round - 1]


def test_a_round_has_nothing_of_the_answers_to_earlier_ones() -> None:
    trainer = ZoneTrainer(ZoneState.initial(0, [1, 2], HALF), Shrinking(), HALF)
    for _ in range(4):
        fresh = ZoneTrainer(trainer.state, Shrinking(), HALF)
        assert run_round(trainer, Bowls()) == run_round(fresh, Bowls())
        assert bits(trainer.state) == bits(fresh.state)


def test_an_answer_is_kept_as_it_was_when_it_came() -> None:
    trainer, mine = trainer_of(), vector(1, 2)
    trainer.begin()
    trainer.receive_local(vector(4, 0))
    trainer.receive_peer(1, mine)
    mine[:] = 99
    for zone in (2, 3):
        trainer.leave_out(zone, "late")
    trainer.finish()
    assert trainer.state.theta.tolist() == [1 - 0.5 * (4 + 1), 2 - 0.5 * (0 + 2)]


def test_a_state_is_its_own_whatever_the_caller_does_with_the_array() -> None:
    mine = np.ones(2, np.float32)
    state = ZoneState(0, 0, mine, OptimiserState(0, {}))
    mine[0] = 2
    assert state.theta.tolist() == [1, 1]
    assert not state.theta.flags.writeable


def test_initial_weights_that_float32_cannot_hold_are_refused() -> None:
    with pytest.raises(GradientError, match="initial weights"):
        ZoneState.initial(0, [1e300], Optimiser())


# Weights of a method's own


def test_a_methods_own_weights_are_used_as_they_are() -> None:
    asked: list[tuple[tuple[int, ...], list[float], list[list[float]]]] = []

    def weigh(zones: tuple[int, ...], local: Vector, shared: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        asked.append((zones, local.tolist(), shared.tolist()))
        return np.array([3.0, -0.25])  # they need not sum to 1

    trainer = ZoneTrainer(ZoneState.initial(0, [1, 2], HALF), STAR, HALF, weigh=weigh)
    trainer.begin()
    trainer.receive_peer(3, vector(0, 4))
    trainer.leave_out(2, "late")
    trainer.receive_local(vector(4, 0))
    trainer.receive_peer(1, vector(1, 2))
    report = trainer.finish()
    assert asked == [((1, 3), [4.0, 0.0], [[1.0, 2.0], [0.0, 4.0]])]  # those that answered, in the order of zones
    assert report.attention == {1: 3.0, 3: -0.25}
    assert trainer.state.theta.tolist() == [1 - 0.5 * (4 + 3), 2 - 0.5 * (6 - 1)]


def test_without_weights_of_its_own_a_trainer_has_attention() -> None:
    own = ZoneTrainer(
        ZoneState.initial(0, [1, 2], HALF), STAR, HALF, weigh=lambda _zones, local, shared: attention(local, shared)
    )
    usual = trainer_of()
    assert run_round(own, Bowls()) == run_round(usual, Bowls())
    assert bits(own.state) == bits(usual.state)


def test_a_method_with_its_own_weights_is_asked_when_nobody_answered_too() -> None:
    trainer = ZoneTrainer(
        ZoneState.initial(0, [1, 2], HALF), NoSampler(), HALF, weigh=lambda zones, _local, _shared: np.ones(len(zones))
    )
    run_round(trainer, Bowls())
    assert trainer.state.theta.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("weight", [math.nan, math.inf, 1e300])
def test_weights_that_lead_out_of_float32_end_the_round_as_a_divergence(weight: float) -> None:
    trainer = ZoneTrainer(
        ZoneState.initial(0, [1, 2], HALF), STAR, HALF, weigh=lambda zones, _local, _shared: np.full(len(zones), weight)
    )
    kept = bits(trainer.state)
    with pytest.raises(DivergedError, match="the step leads to numbers that are not finite"):
        run_round(trainer, Bowls())
    assert bits(trainer.state) == kept
