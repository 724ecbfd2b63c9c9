"""One zone's training round, as a state machine over a source of gradients (methods 5, 6 and 7).

Decide, then act. `ZoneTrainer.begin` says what to ask for, `receive_…` take the answers in whatever order they come,
`finish` fuses and steps. It does no I/O and knows nothing of where answers come from: the simulator computes all of a
round's answers in-process, the edge asks devices and peers over gRPC, `run_round` asks a `GradientSource` one by one.
The outcome does not depend on the order of answers, so they agree to the bit.

  state ── begin ──► Ask(round, θ, draw) ── receive_local, receive_peer | leave_out … ──► finish ──► state', RoundReport

A round changes nothing until `finish`: dropping a trainer in mid-round and building another from the same state repeats
the round with the same draw.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, get_args

import numpy as np
import numpy.typing as npt

from sgfusion.errors import DivergedError, GradientError, PeerUnavailableError, RoundError
from sgfusion.fusion import Similarity, attention_of_checked, distance, norm, weighted_sum
from sgfusion.optimiser import Optimiser, OptimiserState, check_fits, first_state, step
from sgfusion.sampling import Sampler

Vector = npt.NDArray[np.float32]
Weigh = Callable[[tuple[int, ...], Vector, npt.NDArray[np.float32]], npt.NDArray[np.float64]]
"""The weights of the zones that answered, given their numbers, `g_z` and their gradients `[K, P]`, a buffer."""


class GradientSource(Protocol):
    """Where gradients on requested weights come from (method 6): of either kind of update, as long as `θ`."""

    def local(self, theta: Vector) -> Vector:
        """`∇F_z(θ)` of the zone's own devices."""

    def peer(self, zone: int, theta: Vector) -> Vector:
        """`∇F_z'(θ)` of zone `z'`; raises PeerUnavailableError, and the round goes on without that zone."""


@dataclass(frozen=True, eq=False)
class ZoneState:
    """All that a zone carries from round to round; `checkpoint.py` turns it into bytes and back.

    Invariant: `round` rounds are finished, and each made one step of the optimiser.
    """

    zone: int
    round: int
    theta: Vector
    optimiser: OptimiserState

    @classmethod
    def initial(cls, zone: int, theta: npt.ArrayLike, optimiser: Optimiser) -> "ZoneState":
        """The state before round 1, from the weights `θ⁰` that all zones start with."""
        weights = _as_float32(np.asarray(theta))
        if weights.ndim != 1 or not np.isfinite(weights).all():
            raise GradientError(f"initial weights of shape {weights.shape}: give a flat vector of finite numbers")
        return cls(zone, 0, weights, first_state(optimiser, len(weights)))

    def __post_init__(self) -> None:
        slots = {slot: _sealed(vector) for slot, vector in self.optimiser.slots.items()}
        object.__setattr__(self, "theta", _sealed(self.theta))
        object.__setattr__(self, "optimiser", OptimiserState(self.optimiser.t, slots))


@dataclass(frozen=True, eq=False)
class Ask:
    """What a round wants: the zone's own gradient and those of the drawn zones, all on the weights `theta`."""

    round: int
    theta: Vector
    draw: tuple[int, ...]


@dataclass(frozen=True)
class RoundReport:
    """What happened in a round. Invariant: `drawn` is the disjoint union of the keys of `attention` and `left_out`."""

    zone: int
    round: int
    drawn: tuple[int, ...]
    attention: Mapping[int, float]
    """`λ_z'` of each drawn zone that answered; by attention they sum to 1."""
    left_out: Mapping[int, str]
    """Each drawn zone that did not, and why."""
    rate: float
    """`η_t`."""
    local_norm: float
    peer_norms: Mapping[int, float]
    direction_norm: float
    step_norm: float
    """`‖θ_after - θ_before‖`."""

    def to_record(self) -> dict[str, Any]:
        """A line of `rounds.jsonl`."""
        record = asdict(self)
        for name in ("attention", "left_out", "peer_norms"):
            record[name] = {str(zone): value for zone, value in record[name].items()}
        return {**record, "drawn": list(self.drawn)}


class ZoneTrainer:
    """The rounds of one zone. `state` is that after the last finished round: a checkpoint at any time.

    Drawn zones are weighed by attention of the given `similarity` (method 7), or by `weigh` where a method that this
    one is compared with has weights of its own.
    """

    def __init__(
        self,
        state: ZoneState,
        sampler: Sampler,
        optimiser: Optimiser,
        similarity: Similarity = "inner",
        *,
        weigh: Weigh | None = None,
    ) -> None:
        check_fits(optimiser, state.optimiser)
        if similarity not in get_args(Similarity):
            raise GradientError(f"similarity = {similarity!r}: choose 'inner' or 'cosine'")
        self.state = state
        self._sampler = sampler
        self._optimiser = optimiser
        self._weigh: Weigh = weigh or (lambda _zones, local, shared: attention_of_checked(local, shared, similarity))
        self._ask: Ask | None = None
        self._local: Vector | None = None
        self._rows = np.empty((0, len(state.theta)), np.float32)  # of drawn zones, kept from round to round
        self._local_norm = 0.0
        self._peers: dict[int, float] = {}  # those that answered, with the lengths of their gradients
        self._left_out: dict[int, str] = {}

    def begin(self) -> Ask:
        """Start the next round, or start the round under way anew: earlier answers to it are dropped."""
        number = self.state.round + 1
        self._ask = Ask(number, self.state.theta, self._sampler.draw(self.state.zone, number))
        self._local, self._peers, self._left_out = None, {}, {}
        if len(self._ask.draw) > len(self._rows):
            self._rows = np.empty((len(self._ask.draw), len(self.state.theta)), np.float32)
        return self._ask

    @property
    def waiting_for(self) -> tuple[int, ...]:
        """The drawn zones that have neither answered nor been left out."""
        return tuple(z for z in self._asked().draw if z not in self._peers and z not in self._left_out)

    @property
    def complete(self) -> bool:
        """Every answer is in, so `finish` may be called."""
        return self._ask is not None and self._local is not None and not self.waiting_for

    def receive_local(self, gradient: Vector) -> None:
        """The zone's own gradient. A bad one is an error: the local step is never skipped."""
        ask = self._asked()
        if self._local is not None:
            raise RoundError(f"round {ask.round}: the zone's own gradient is here already")
        gradient = _as_float32(gradient)
        if gradient.shape != ask.theta.shape:
            raise GradientError(f"own gradient of shape {gradient.shape} for weights of shape {ask.theta.shape}")
        length = norm(gradient)
        if not math.isfinite(length):  # in float64: only of a vector that is not finite itself
            raise DivergedError(f"round {ask.round}: the zone's own gradient is not finite. Lower the learning rate")
        self._local, self._local_norm = gradient, length

    def receive_peer(self, zone: int, gradient: Vector) -> None:
        """A drawn zone's gradient. One that cannot be used leaves that zone out of the round, and says why."""
        ask = self._expect(zone)
        gradient = np.asarray(gradient)
        if gradient.shape != ask.theta.shape:
            self._left_out[zone] = f"its gradient has shape {gradient.shape} for weights of shape {ask.theta.shape}"
            return
        row = self._rows[ask.draw.index(zone)]
        with np.errstate(over="ignore"):  # as in _as_float32
            row[:] = gradient
        length = norm(row)
        if math.isfinite(length):
            self._peers[zone] = length
        else:
            self._left_out[zone] = "its gradient is not finite"

    def leave_out(self, zone: int, reason: str) -> None:
        """Go on without a drawn zone (lost or late)."""
        self._expect(zone)
        self._left_out[zone] = reason

    def finish(self) -> RoundReport:
        """Fuse, step, and move on: `state` is the next one from here on."""
        ask = self._asked()
        if self._local is None or self.waiting_for:
            missing = [f"zone {zone}" for zone in self.waiting_for] + (
                ["its own gradient"] if self._local is None else []
            )
            raise RoundError(f"round {ask.round} cannot end: it waits for {', '.join(missing)}")
        answered = sorted(self._peers)  # in the order of zones, not of arrival
        here = tuple(answered) == ask.draw  # rows are in the order of the draw: as a rule that of zones
        shared = self._rows[: len(answered)] if here else self._rows[[ask.draw.index(zone) for zone in answered]]
        weights = self._weigh(tuple(answered), self._local, shared)
        with np.errstate(over="ignore", invalid="ignore"):  # found out below
            direction = weighted_sum(self._local, shared, weights)
            theta, optimiser_state = step(self._optimiser, self.state.optimiser, ask.theta, direction)
        if not all(np.isfinite(vector).all() for vector in (theta, *optimiser_state.slots.values())):
            raise DivergedError(
                f"round {ask.round}: the step leads to numbers that are not finite. Lower the learning rate"
            )
        report = RoundReport(
            zone=self.state.zone,
            round=ask.round,
            drawn=ask.draw,
            attention=dict(zip(answered, weights.tolist(), strict=True)),
            left_out=dict(sorted(self._left_out.items())),
            rate=self._optimiser.schedule.rate_at(optimiser_state.t),
            local_norm=self._local_norm,
            peer_norms={zone: self._peers[zone] for zone in answered},
            direction_norm=norm(direction),
            step_norm=distance(theta, ask.theta),
        )
        self._ask, self._local = None, None
        self.state = ZoneState(self.state.zone, ask.round, theta, optimiser_state)
        return report

    def _asked(self) -> Ask:
        if self._ask is None:
            raise RoundError("no round is under way: call begin first")
        return self._ask

    def _expect(self, zone: int) -> Ask:
        ask = self._asked()
        if zone not in ask.draw:
            raise RoundError(f"round {ask.round} did not ask zone {zone}: it drew {ask.draw}")
        if zone not in self.waiting_for:
            raise RoundError(f"round {ask.round}: zone {zone} has answered or was left out already")
        return ask


def _as_float32(vector: npt.NDArray[np.generic]) -> Vector:
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is then found out
        return np.asarray(vector).astype(np.float32)


def _sealed(vector: Vector) -> Vector:
    """A copy that cannot be written to: neither who made the vector nor who is asked for gradients on it changes it."""
    copy = vector.copy()
    copy.flags.writeable = False
    return copy


def run_round(trainer: ZoneTrainer, source: GradientSource) -> RoundReport:
    """One round, asking the source one gradient after the other."""
    ask = trainer.begin()
    trainer.receive_local(source.local(ask.theta))
    for zone in ask.draw:
        try:
            trainer.receive_peer(zone, source.peer(zone, ask.theta))
        except PeerUnavailableError as error:
            trainer.leave_out(zone, str(error))
    return trainer.finish()
