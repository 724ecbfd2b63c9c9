"""What passes between a device and its edge, as both sides of `EdgeService.Attend` know it (`edge.proto`)."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from sgfusion.errors import HistogramError, InputError, ProtocolError
from sgfusion.evaluation import Metric, Score
from sgfusion.histogram import checked_histograms
from sgfusion.proto.v1 import cloud_pb2, edge_pb2
from sgfusion.proto.v1.tensor_pb2 import TensorChunk
from sgfusion.reports import Model
from sgfusion.wire.codec import in_messages
from sgfusion.wire.words import heard_name

Vector = npt.NDArray[np.float32]
AskKind = Literal["direction", "evaluation", "initial"]
Attended = edge_pb2.AttendResponse

MOST_WEIGHTS = 1 << 30
"""Weights of a model: a device's Hello sizes the edge's memory, so it may not claim just anything."""
MOST_BINS = 100_000
LONGEST = 200
"""Characters of an id."""
KEPT_CHUNKS = 8 << 20
"""Bytes of weights up to which an ask keeps its messages, for all devices; larger ones are cut anew for each."""

_KINDS: dict[AskKind, "edge_pb2.AskKind.ValueType"] = {
    "direction": edge_pb2.ASK_KIND_DIRECTION,
    "evaluation": edge_pb2.ASK_KIND_EVALUATION,
    "initial": edge_pb2.ASK_KIND_INITIAL,
}
_KIND_OF: dict[int, AskKind] = {number: kind for kind, number in _KINDS.items()}


@dataclass(frozen=True, eq=False)
class Hello:
    """Who attends, with what."""

    zone: str
    device: str
    contract: str
    model: Model
    histogram: npt.NDArray[np.float64]
    epsilon: float = 0.0
    """What the device has spent in this zone by its ledger; 0 if its histogram is not noised."""
    version: str = ""
    """Of its software; empty if it does not say."""


@dataclass(frozen=True, eq=False)
class Ask:
    """A question to devices, named by its content: the same question has the same id whoever asks, and whenever."""

    kind: AskKind
    weights: Vector | None
    fingerprint: str
    request: str = ""
    """Who asked it first, for logs; no part of its name."""

    @cached_property
    def id(self) -> str:
        """A digest of kind and weights."""
        digest = hashlib.blake2b(f"{self.kind}\n{self.fingerprint}\n".encode(), digest_size=16)
        if self.weights is not None:
            digest.update(np.ascontiguousarray(self.weights, "<f4").data)
        return f"{self.kind}-{digest.hexdigest()}"

    def messages(self) -> Iterator[bytes]:
        """The ask on the wire, one serialized `AttendResponse` a chunk of its weights: the same for all devices."""
        if self.weights is not None and self.weights.nbytes > KEPT_CHUNKS:
            return self._cut()
        return iter(self._kept)

    @cached_property
    def _kept(self) -> tuple[bytes, ...]:
        return tuple(self._cut())

    def _cut(self) -> Iterator[bytes]:
        head = edge_pb2.Ask(ask=self.id, kind=_KINDS[self.kind], request=self.request)

        def message() -> tuple[Attended, TensorChunk]:
            attended = Attended(ask=head)
            return attended, attended.ask.weights

        if self.weights is None:
            return iter([Attended(ask=head).SerializeToString()])
        return (attended.SerializeToString() for attended in in_messages(self.weights, self.fingerprint, message))


@dataclass(frozen=True, eq=False)
class Direction:
    """A device's answer to a `direction`, or its `θ⁰`."""

    vector: Vector
    gradients: int = 0
    loss: float = 0.0


@dataclass(frozen=True)
class Evaluated:
    """A device's answer to an `evaluation`."""

    validation: Score
    test: Score


@dataclass(frozen=True)
class Failed:
    """A device cannot answer."""

    reason: str
    diverged: bool = False


Answer = Direction | Evaluated | Failed


@dataclass(frozen=True)
class Welcome:
    """The device is in."""

    number: int


@dataclass(frozen=True)
class Directory:
    """Other zones' edges: host:port by zone."""

    edges: dict[str, str] = field(default_factory=dict)


def ask_kind(message: edge_pb2.Ask) -> AskKind:
    """The kind of an ask that came in."""
    if message.kind not in _KIND_OF:
        raise ProtocolError(
            f"ask {message.ask[:LONGEST]!r} has kind {message.kind}: choose {', '.join(get_args(AskKind))}"
        )
    return _KIND_OF[message.kind]


def hello_to_wire(hello: Hello) -> edge_pb2.AttendRequest:
    """As the first message of a stream."""
    return edge_pb2.AttendRequest(
        hello=edge_pb2.Hello(
            zone=hello.zone,
            device=hello.device,
            contract=hello.contract,
            model=model_to_wire(hello.model),
            histogram=hello.histogram.tolist(),
            epsilon=hello.epsilon,
            version=hello.version,
        )
    )


def hello_from_wire(message: edge_pb2.AttendRequest) -> Hello:
    """The first message of a stream, checked for all that can be known of it alone."""
    if message.WhichOneof("message") != "hello":
        raise ProtocolError("the first message of a device is not a Hello: say who attends before anything else")
    hello = message.hello
    for name, text in (("zone", hello.zone), ("device", hello.device), ("contract", hello.contract)):
        if not 0 < len(text) <= LONGEST:
            raise InputError(f"hello.{name} has {len(text)} characters: give 1 to {LONGEST}")
    model = model_from_wire(hello.model)
    if len(hello.histogram) != model.bins:
        raise HistogramError(f"hello.histogram has {len(hello.histogram)} bins, hello.model says {model.bins}")
    (histogram,) = checked_histograms([list(hello.histogram)], "device", [hello.device])
    if not 0.99 < histogram.sum() < 1.01:
        raise HistogramError(f"device {hello.device!r}: its histogram does not sum to 1: scale it")
    if len(hello.version) > LONGEST:
        raise InputError(f"hello.version has {len(hello.version)} characters: give {LONGEST} at most")
    epsilon = checked_epsilon("hello.epsilon", hello.epsilon)
    return Hello(hello.zone, hello.device, hello.contract, model, histogram, epsilon, hello.version)


def checked_epsilon(name: str, epsilon: float) -> float:
    """What was spent, refused where it makes no sense: people trust the sum."""
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"{name} = {epsilon}: give the ε that was spent, a finite number >= 0")
    return epsilon


def model_to_wire(model: Model) -> cloud_pb2.Model:
    """A model's description."""
    return cloud_pb2.Model(
        fingerprint=model.fingerprint,
        length=model.length,
        metric=cloud_pb2.Metric(
            name=model.metric.name,
            unit=model.metric.unit,
            root=model.metric.root,
            lower_is_better=model.metric.lower_is_better,
        ),
        bins=model.bins,
        edges=model.edges,
    )


def model_from_wire(message: cloud_pb2.Model) -> Model:
    """A model's description, refused where it makes no sense."""
    if not 0 < len(message.fingerprint) <= LONGEST:
        raise InputError(f"model.fingerprint has {len(message.fingerprint)} characters: give 1 to {LONGEST}")
    if not 1 <= message.length <= MOST_WEIGHTS:
        raise InputError(f"model.length = {message.length}: a model has 1 to {MOST_WEIGHTS} weights")
    if not 1 <= message.bins <= MOST_BINS:
        raise InputError(f"model.bins = {message.bins}: a label histogram has 1 to {MOST_BINS} bins")
    edges = tuple(message.edges)
    if edges and (
        len(edges) != message.bins + 1 or not all(map(math.isfinite, edges)) or list(edges) != sorted(set(edges))
    ):
        raise InputError(
            f"model.edges has {len(edges)} numbers: give bins + 1 = {message.bins + 1}, ascending, or none"
        )
    metric = message.metric
    if not 0 < len(metric.name) <= LONGEST or len(metric.unit) > LONGEST:
        raise InputError(f"model.metric.name = {metric.name[:LONGEST]!r}: name the metric in 1 to {LONGEST} characters")
    return Model(
        message.fingerprint,
        message.length,
        Metric(heard_name(metric.name), heard_name(metric.unit), metric.root, metric.lower_is_better),
        message.bins,
        edges,
    )
