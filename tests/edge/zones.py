"""A real zone's edge on a real TLS socket, devices that answer as they should, and streams that say what they like."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np
import numpy.typing as npt
import pytest

from edge.memory import Memory, Roster
from edge.zone import Zone
from sgfusion.errors import SGFusionError
from sgfusion.evaluation import Metric, Score
from sgfusion.proto.v1 import cloud_pb2, edge_pb2
from sgfusion.proto.v1.tensor_pb2 import TensorChunk
from sgfusion.reports import Model
from sgfusion.runfile import contract, parse_run_file
from sgfusion.wire.attending import Answer, Direction, Evaluated, Hello
from sgfusion.wire.channel import Keys
from sgfusion.wire.codec import to_chunks
from sgfusion.wire.device_rpc import Attending, Question
from sgfusion.wire.edge_rpc import add_edge
from sgfusion.wire.identity import Identity
from sgfusion.wire.peer_rpc import ZoneDirection, add_peer, ask_peer
from sgfusion.wire.status import from_rpc_error
from tests.cluster.keys import Issuer, dialled, serving

Vector = npt.NDArray[np.float32]

ISSUER = Issuer()
RUN = """
name = "woods"
seed = 5
rounds = 3
[task]
name = "linear"
[data]
source = "generated_zones"
[quorum]
devices = {quorum}
[deadlines]
device = {deadline}
"""
CONTRACT = contract(parse_run_file(RUN.format(quorum=1.0, deadline=30.0), ()))
MODEL = Model("linear/6", 6, Metric("RMSE", "bpm", root=True, lower_is_better=True), 4)
HISTOGRAM = np.array([0.25, 0.25, 0.5, 0.0])
THETA = np.arange(6, dtype=np.float32)
PEER = Identity("edge", "birch")
_KEYS: dict[Identity, Keys] = {}


def keys_of(identity: Identity) -> Keys:
    """Made once for all tests of a process."""
    if identity not in _KEYS:
        _KEYS[identity] = ISSUER.keys(identity)
    return _KEYS[identity]


def hello(device: str = "u1", **wrong: Any) -> edge_pb2.AttendRequest:
    """A good Hello, but for what is given; `model` as a dict changes some of the model."""
    model = {
        "fingerprint": MODEL.fingerprint,
        "length": MODEL.length,
        "metric": cloud_pb2.Metric(name="RMSE", unit="bpm", root=True, lower_is_better=True),
        "bins": MODEL.bins,
        **wrong.pop("model", {}),
    }
    good = {"zone": "ash", "device": device, "contract": CONTRACT, "histogram": HISTOGRAM.tolist()}
    return edge_pb2.AttendRequest(hello=edge_pb2.Hello(**{**good, "model": cloud_pb2.Model(**model), **wrong}))


def answer(ask: str, **content: Any) -> edge_pb2.AttendRequest:
    return edge_pb2.AttendRequest(answer=edge_pb2.Answer(ask=ask, **content))


def chunks(vector: Vector = THETA, size: int = 8) -> list[TensorChunk]:
    """Of two elements each, by default: three of them."""
    return list(to_chunks(vector, MODEL.fingerprint, chunk_bytes=size))


def serialized(message: Any) -> bytes:
    """Messages as they are, and bytes for what is none."""
    return message if isinstance(message, bytes) else message.SerializeToString()


class Raw:
    """An Attend stream of a device that says what a test wants."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.call: Any = channel.stream_stream(
            "/sgfusion.v1.EdgeService/Attend",
            request_serializer=serialized,
            response_deserializer=edge_pb2.AttendResponse.FromString,
        )()

    async def say(self, *messages: edge_pb2.AttendRequest | bytes) -> None:
        for message in messages:
            await self.call.write(message)

    async def welcome(self, device: str = "u1") -> "Raw":
        await self.say(hello(device))
        assert (await self.call.read()).WhichOneof("message") == "welcome"
        assert (await self.call.read()).WhichOneof("message") == "directory"
        return self

    async def asked(self) -> edge_pb2.Ask:
        """The next ask: its first message; weights of these tests are one chunk."""
        message = await self.call.read()
        assert message.WhichOneof("message") == "ask"
        found: edge_pb2.Ask = message.ask
        return found

    async def refused(self, *messages: edge_pb2.AttendRequest | bytes) -> SGFusionError:
        """What the edge ends the stream with after these messages."""
        with pytest.raises(grpc.aio.AioRpcError) as error:  # noqa: PT012 (whichever of them notices)
            with suppress(asyncio.InvalidStateError):  # it has ended already
                await self.say(*messages)
            while await self.call.read() is not grpc.aio.EOF:
                pass
        assert error.value.code() is not grpc.StatusCode.INTERNAL
        return from_rpc_error(error.value)


@dataclass
class Edge:
    """The edge of ash, and who has dialled it."""

    zone: Zone
    address: str
    stack: AsyncExitStack
    channels: dict[Identity, grpc.aio.Channel] = field(default_factory=dict)

    async def channel(self, who: Identity) -> grpc.aio.Channel:
        if who not in self.channels:
            opened = dialled(self.address, me=who, keys=keys_of(who), server=Identity("edge", "ash"))
            self.channels[who] = await self.stack.enter_async_context(opened)
        return self.channels[who]

    async def raw(self, device: str = "u1") -> Raw:
        return Raw(await self.channel(Identity("device", device)))

    async def healthy(self, device: str = "a0") -> "Healthy":
        """A device that answers by the book: twice the weights."""
        found = Healthy(Attending(await self.channel(Identity("device", device)), domain_hello(device)))
        self.stack.push_async_callback(found.stop)
        await found.here.wait()
        return found

    async def direction(self, theta: Vector = THETA, timeout: float = 10.0, who: Identity = PEER) -> ZoneDirection:
        """As a peer asks for it."""
        return await ask_peer(
            await self.channel(who),
            zone=who.name,
            asked="ash",
            round=1,
            contract=CONTRACT,
            theta=theta,
            fingerprint=MODEL.fingerprint,
            timeout=timeout,
        )

    @property
    def refusals(self) -> dict[str, int]:
        """As the cloud hears of them."""
        return dict(self.zone.report().refusals)

    def enter(self, *devices: str) -> None:
        """Have the roster, without which peers are not served."""
        self.zone.roster = Roster(0, MODEL, "00" * 32, dict.fromkeys(devices, HISTOGRAM), dict.fromkeys(devices, 0.0))


def domain_hello(device: str) -> Hello:
    return Hello("ash", device, CONTRACT, MODEL, HISTOGRAM)


class Healthy:
    """A device's stream, answered at once; `answers` may be another function."""

    def __init__(self, stream: Attending, answers: Callable[[Question], Answer] | None = None) -> None:
        self._stream = stream
        self._answers = answers or doubled
        self.here = asyncio.Event()
        self.asked: list[str] = []
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for message in self._stream.messages():
            self.here.set()
            if isinstance(message, Question):
                self.asked.append(message.id)
                await self._stream.answer(message.id, self._answers(message))

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError, SGFusionError):
            await self.task


def doubled(question: Question) -> Answer:
    if question.kind == "evaluation":
        return Evaluated(Score(4.0, 2), Score(2.0, 1))
    return Direction(THETA if question.weights is None else 2 * question.weights, 1, 0.5)


@asynccontextmanager
async def an_edge(folder: Path, *, quorum: float = 1.0, deadline: float = 30.0) -> AsyncIterator[Edge]:
    """The edge of ash, which knows its run; nothing trains."""
    zone = Zone("ash", Memory(folder), keys=None, expected=1)
    zone.take_run(RUN.format(quorum=quorum, deadline=deadline), 0)

    def register(server: grpc.aio.Server) -> None:
        add_edge(server, zone)
        add_peer(server, zone)

    async with AsyncExitStack() as stack:
        me = Identity("edge", "ash")
        address = await stack.enter_async_context(serving(register, me=me, keys=keys_of(me), refusals=zone.refusals))
        yield Edge(zone, address, stack)


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Look until it holds."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)
