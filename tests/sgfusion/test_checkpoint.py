"""A zone's state as bytes: the same state to the bit, or refused; and a zone that is killed at any time."""

import json
import math
import struct

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sgfusion import checkpoint
from sgfusion.errors import CheckpointError, RoundError
from sgfusion.optimiser import SLOTS, Kind, Optimiser, OptimiserState, Schedule
from sgfusion.sampling import HrgSampler
from sgfusion.zone_trainer import RoundReport, ZoneState, ZoneTrainer, run_round

Vector = npt.NDArray[np.float32]
STATE = ZoneState(
    3,
    7,
    np.array([1.5, -2, 1e-45], np.float32),
    OptimiserState(7, {"velocity": np.array([0.25, -0.0, 3e38], np.float32)}),
)
GOLDEN = (
    b"@\x01\0\0\0\0\0\0"
    rb'{"__metadata__":{"sgfusion":"{\"format\": \"sgfusion.zone/1\", \"zone\": 3, \"round\": 7, \"steps\": 7, '
    rb'\"sha256\": \"56b2bde61b71b5425b2bfb4ec3613e5c827505bdd312711d40c0b6bfa98e6bd3\"}"},'
    rb'"optimiser.velocity":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},'
    rb'"theta":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}}  '
    b"\0\0\x80>\0\0\0\x80\xe6\xb1a\x7f\0\0\xc0?\0\0\0\xc0\x01\0\0\0"
)


def assert_same(one: ZoneState, another: ZoneState) -> None:
    assert (one.zone, one.round, one.optimiser.t) == (another.zone, another.round, another.optimiser.t)
    assert one.theta.dtype == another.theta.dtype == np.float32
    assert one.theta.tobytes() == another.theta.tobytes()
    slots, others = one.optimiser.slots, another.optimiser.slots
    assert {slot: slots[slot].tobytes() for slot in slots} == {slot: others[slot].tobytes() for slot in others}


@st.composite
def states(draw: st.DrawFn) -> ZoneState:
    size = draw(st.integers(0, 5))
    vectors = arrays(np.float32, size, elements=st.floats(width=32))  # every pattern of bits, NaN too
    slots = SLOTS[draw(st.sampled_from(list(SLOTS)))]
    zone, number, steps = (draw(st.integers(0, 2**40)) for _ in range(3))
    return ZoneState(zone, number, draw(vectors), OptimiserState(steps, {slot: draw(vectors) for slot in slots}))


# There and back


@given(states())
def test_a_state_comes_back_to_the_bit_and_its_bytes_are_the_same_each_time(state: ZoneState) -> None:
    content = checkpoint.to_bytes(state)
    back = checkpoint.from_bytes(content)
    assert_same(back, state)
    assert checkpoint.to_bytes(back) == content


def test_a_state_has_these_bytes_in_every_process() -> None:
    assert checkpoint.to_bytes(STATE) == GOLDEN
    assert_same(checkpoint.from_bytes(GOLDEN), STATE)


# Torn, altered or something else


def test_every_truncation_is_refused() -> None:
    content = checkpoint.to_bytes(STATE)
    for length in range(len(content)):
        with pytest.raises(CheckpointError):
            checkpoint.from_bytes(content[:length])
    with pytest.raises(CheckpointError):
        checkpoint.from_bytes(content + b"\0")


def test_every_single_bit_flip_is_refused() -> None:
    content = checkpoint.to_bytes(STATE)
    for bit in range(8 * len(content)):
        altered = bytearray(content)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CheckpointError):
            checkpoint.from_bytes(bytes(altered))


THETA = {"theta": np.zeros(2, np.float32)}


def with_header(**about: object) -> bytes:
    """A safetensors file that says of itself what a checkpoint says."""
    said = {"format": checkpoint.FORMAT, "zone": 0, "round": 1, "steps": 1, "sha256": "", **about}
    return safetensors.numpy.save(THETA, {"sgfusion": json.dumps(said)})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a checkpoint",
        bytes(64),
        safetensors.numpy.save(THETA),
        safetensors.numpy.save(THETA, {"sgfusion": "[]"}),
        safetensors.numpy.save(THETA, {"format": "pt"}),
        with_header(),
        with_header(zone=None),
        with_header(round="one"),
        with_header(steps=math.nan),
        struct.pack("<Q", 4) + b"null",
        struct.pack("<Q", 2**63) + b"{}",
        with_header(steps=math.inf),
        safetensors.numpy.save(THETA, {"sgfusion": "[" * 100_000}),
    ],
)
def test_what_is_not_a_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError):
        checkpoint.from_bytes(content)
    with pytest.raises(CheckpointError, match=r"format 'sgfusion.zone/2': a zone's checkpoint has 'sgfusion.zone/1'"):
        checkpoint.from_bytes(with_header(format="sgfusion.zone/2"))


# Killed and restored

DRAWS = HrgSampler(np.where(np.eye(4), 0, 0.7), 11)


class Bowls:
    """`F_z(θ) = a_z ‖θ - c_z‖² / 2`, seen from zone 1."""

    def local(self, theta: Vector) -> Vector:
        return self.peer(1, theta)

    def peer(self, zone: int, theta: Vector) -> Vector:
        return ((zone + 1) * (theta - np.float32(zone) / 3)).astype(np.float32)


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_a_run_killed_after_any_round_ends_with_the_same_bits(kind: Kind) -> None:
    optimiser = Optimiser(kind, Schedule("cosine", 0.2, steps=10))
    trainer = ZoneTrainer(ZoneState.initial(1, [1, -2, 3], optimiser), DRAWS, optimiser)
    kept, reports = [checkpoint.to_bytes(trainer.state)], []
    for _ in range(10):
        reports.append(run_round(trainer, Bowls()))
        kept.append(checkpoint.to_bytes(trainer.state))
    assert len(set(kept)) == 11
    assert [report.rate for report in reports] == [optimiser.schedule.rate_at(t) for t in range(1, 11)]
    for k, content in enumerate(kept):
        again = ZoneTrainer(checkpoint.from_bytes(content), DRAWS, optimiser)
        assert [run_round(again, Bowls()) for _ in range(10 - k)] == reports[k:]
        assert checkpoint.to_bytes(again.state) == kept[-1]


ADAM = Optimiser("adam", Schedule("cosine", 0.3, steps=8))
ANSWERS = "fine", "fine", "lost", "fine", "wrong size", "fine", "not finite"


def answer(trainer: ZoneTrainer, zone: int) -> None:
    """Zone `zone`'s word in this round, or its silence: always the same one."""
    kind = ANSWERS[(3 * zone + 5 * trainer.state.round) % len(ANSWERS)]
    gradient = Bowls().peer(zone, trainer.state.theta)
    if zone == 1:
        trainer.receive_local(gradient)
    elif kind == "lost":
        trainer.leave_out(zone, "lost")
    else:
        bad = {"wrong size": gradient[:2], "not finite": gradient * np.float32(math.nan)}
        trainer.receive_peer(zone, bad.get(kind, gradient))


class Rounds(RuleBasedStateMachine):
    """Whatever happens in between, the state after round `t` is that of an undisturbed run."""

    def __init__(self) -> None:
        super().__init__()
        self.trainer = ZoneTrainer(ZoneState.initial(1, [1, -2, 3], ADAM), DRAWS, ADAM)
        self.after, self.reports = [checkpoint.to_bytes(self.trainer.state)], list[RoundReport]()
        self.missing: set[int] | None = None  # who has still to answer, in a round under way
        steady = ZoneTrainer(self.trainer.state, DRAWS, ADAM)
        for _ in range(6):
            for zone in (*steady.begin().draw, 1):
                answer(steady, zone)
            self.reports.append(steady.finish())
            self.after.append(checkpoint.to_bytes(steady.state))

    @precondition(lambda self: self.trainer.state.round < 6)
    @rule()
    def begin(self) -> None:
        draw = self.trainer.begin().draw
        assert draw == self.reports[self.trainer.state.round].drawn
        self.missing = {1, *draw}

    @precondition(lambda self: self.missing is not None)
    @rule(zones=st.permutations(range(5)), count=st.integers(1, 5))
    def some_answer_some_of_them_unasked_or_twice(self, zones: list[int], count: int) -> None:
        assert self.missing is not None
        for zone in zones[:count]:
            if zone in self.missing:
                answer(self.trainer, zone)
                self.missing.remove(zone)
            else:
                with pytest.raises(RoundError, match=r"already|did not ask"):
                    answer(self.trainer, zone)
        assert self.trainer.complete == (not self.missing)
        assert set(self.trainer.waiting_for) == self.missing - {1}

    @precondition(lambda self: self.trainer.state.round < 6)
    @rule(zones=st.permutations(range(4)))
    def all_the_others_answer_and_the_round_ends(self, zones: list[int]) -> None:
        if self.missing is None:
            self.begin()
        assert self.missing is not None
        for zone in (zone for zone in zones if zone in self.missing):
            answer(self.trainer, zone)
        report, expected = self.trainer.finish(), self.reports[self.trainer.state.round - 1]
        assert report == expected
        assert sorted((*report.attention, *report.left_out)) == list(report.drawn)
        assert not report.attention or sum(report.attention.values()) == pytest.approx(1, rel=1e-14)
        assert json.dumps(report.to_record(), allow_nan=False) == json.dumps(expected.to_record())
        self.missing = None

    @precondition(lambda self: self.missing != set())
    @rule()
    def it_cannot_end_too_early(self) -> None:
        with pytest.raises(RoundError, match="call begin first" if self.missing is None else "it waits for"):
            self.trainer.finish()

    @rule()
    def the_edge_is_killed_and_comes_back_from_its_checkpoint(self) -> None:
        state = checkpoint.from_bytes(checkpoint.to_bytes(self.trainer.state))
        self.trainer, self.missing = ZoneTrainer(state, DRAWS, ADAM), None

    @invariant()
    def the_state_is_that_of_an_undisturbed_run(self) -> None:
        assert checkpoint.to_bytes(self.trainer.state) == self.after[self.trainer.state.round]


TestRounds = Rounds.TestCase
TestRounds.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
