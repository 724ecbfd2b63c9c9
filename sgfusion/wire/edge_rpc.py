"""`EdgeService` of an edge: devices that attend it, and the operator who fetches its model (`edge.proto`).

An edge sees a `DeviceLink` for each stream: it asks through it and gets whole answers from it. Chunks, their checks and
the order of messages stop here.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import grpc
import numpy as np
import numpy.typing as npt

from sgfusion.errors import InputError, ProtocolError, UnavailableError, UnknownAskError
from sgfusion.evaluation import Score
from sgfusion.proto.v1 import cloud_pb2, edge_pb2, edge_pb2_grpc
from sgfusion.wire.attending import (
    LONGEST,
    Answer,
    Ask,
    AskKind,
    Direction,
    Evaluated,
    Failed,
    Hello,
    hello_from_wire,
)
from sgfusion.wire.codec import Assembly, to_chunks
from sgfusion.wire.identity import require_device
from sgfusion.wire.patience import next_within, write_within

Vector = npt.NDArray[np.float32]
ModelKind = Literal["best", "last"]
Context = grpc.aio.ServicerContext[Any, Any]

HELLO_WITHIN = 20.0
"""Seconds for a device to say who it is."""
LONGEST_REASON = 300
"""Characters of a device's reason that are kept: reports to the cloud hold many of them."""
TORN_WITHIN = 0.2
"""Seconds from the end of a stream's messages until gRPC says that it did not end but broke."""
MOST_BEHIND = 8
"""Asks that nobody waits for any more and that a device has still to answer, from which on it is sent no others."""
MOST_LABELS = 1 << 40
"""Labels that a device's score may be of: sums of many such are still numbers on the wire."""
_MODEL_KINDS: dict[int, ModelKind] = {edge_pb2.MODEL_KIND_BEST: "best", edge_pb2.MODEL_KIND_LAST: "last"}
_log = logging.getLogger("sgfusion.edge")


@dataclass(eq=False)
class _Owed:
    """An ask that the device has not answered. Invariant: it is wanted, or an answer to it is still to come."""

    kind: AskKind
    wanted: bool = True
    coming: int = 0
    """Answers to come: how often it was sent whole."""
    assembly: Assembly | None = None
    skipping: bool = False
    """The answer that is coming in lost its beginning when it was withdrawn: the rest of it goes too."""


class DeviceLink:
    """A device that attends. `ask` and `tell` never wait; answers go to the handler, whole and checked."""

    def __init__(self, hello: Hello, *, length: int, fingerprint: str) -> None:
        self.hello = hello
        self.device = hello.device
        self._length = length
        self._fingerprint = fingerprint
        self._told: dict[str, edge_pb2.AttendResponse] = {}  # to be written, the latest of each sort
        self._unsent: dict[str, Ask] = {}  # to be written after them, in order
        self._more = asyncio.Event()
        self._sending: Ask | None = None
        self._owed: dict[str, _Owed] = {}
        self._reading: asyncio.Task[None] | None = None
        self._closed_because: str | None = None

    @property
    def behind(self) -> int:
        """Asks that are no longer waited for, and that the device is still busy with."""
        return sum(not owed.wanted for owed in self._owed.values())

    def ask(self, ask: Ask) -> None:
        """Ask; once, whoever wants to know."""
        owed = self._owed.setdefault(ask.id, _Owed(ask.kind))
        owed.wanted = True
        # Asked before, withdrawn, and asked anew: the answer to the first time is as good, if all of it is to come.
        if owed.coming == owed.skipping and not (self._sending and self._sending.id == ask.id):
            self._unsent.setdefault(ask.id, ask)
            self._more.set()

    def withdraw(self, ask: Ask) -> None:
        """The answer is no longer waited for: if it comes it is dropped, and what was received of it is."""
        owed = self._owed.get(ask.id)
        if owed is not None:
            owed.skipping = owed.skipping or owed.assembly is not None
            self._settle(ask.id, owed)

    def _settle(self, id: str, owed: _Owed) -> None:
        """Nobody waits for it: it is not sent if it was not yet, and forgotten once no answer to it can come."""
        owed.wanted, owed.assembly = False, None
        self._unsent.pop(id, None)
        if self._sending is not None and self._sending.id == id:
            self._sending = None  # the device drops what it has of it
        if not owed.coming:
            del self._owed[id]

    def tell(self, *, number: int | None = None, edges: dict[str, str] | None = None) -> None:
        """Welcome the device to the zone of that number, or tell it where other zones' edges are."""
        if number is not None:
            self._told["welcome"] = edge_pb2.AttendResponse(welcome=edge_pb2.Welcome(number=number))
        if edges is not None:
            self._told["directory"] = edge_pb2.AttendResponse(directory=edge_pb2.Directory(edges=edges))
        self._more.set()

    def close(self, reason: str) -> None:
        """End the stream, as the device has another one or the edge stops."""
        self._closed_because = reason
        if self._reading is not None:
            self._reading.cancel()

    async def run(
        self, requests: AsyncIterator[edge_pb2.AttendRequest], context: Context, handler: "EdgeHandler"
    ) -> None:
        """Read answers and write asks until either side ends."""
        self._reading = asyncio.create_task(self._read(requests, handler))
        writing = asyncio.create_task(self._write(context))
        try:
            await asyncio.wait((self._reading, writing), return_when=asyncio.FIRST_COMPLETED)
            if self._closed_because is not None:
                raise UnavailableError(self._closed_because)
            if self._reading.done():
                self._reading.result()  # its error, if it has one
        finally:
            for task in (self._reading, writing):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
            # The tracebacks of an error may keep the link alive for a while: not the vectors.
            self._unsent.clear()
            self._owed.clear()

    async def _read(self, requests: AsyncIterator[edge_pb2.AttendRequest], handler: "EdgeHandler") -> None:
        async for message in requests:
            which = message.WhichOneof("message")
            if which != "answer":
                raise ProtocolError(f"a message with {which or 'nothing'}: after its Hello a device sends answers only")
            done = self._take(message.answer)
            if done is not None:
                handler.answered(self, *done)
                if self._unsent:  # it was too far behind for them, and may no longer be
                    self._more.set()
        if any(owed.assembly is not None for owed in self._owed.values()):
            await asyncio.sleep(TORN_WITHIN)  # if its connection broke, this is cancelled: nobody is to blame
            raise ProtocolError(f"device {self.device!r} ended its stream in the middle of an answer: send all of it")

    def _take(self, message: edge_pb2.Answer) -> tuple[str, Answer | None] | None:
        """The answer that this message completes, if it completes one; None for one that nobody waits for."""
        id = message.ask
        owed = self._owed.get(id)
        if owed is None or not owed.coming:
            raise UnknownAskError(f"answer to {id[:LONGEST]!r}, which device {self.device!r} was not asked")
        if owed.skipping or not owed.wanted:
            owed.skipping = not self._ends(message)
            if owed.skipping:
                return None
            owed.coming -= 1
            if not owed.wanted:
                self._settle(id, owed)
            return id, None
        answer = self._answer(message, owed)
        if answer is None:
            return None
        owed.coming -= 1
        self._settle(id, owed)
        return id, answer

    def _answer(self, message: edge_pb2.Answer, owed: _Owed) -> Answer | None:
        which = message.WhichOneof("answer")
        if which == "failure":
            return Failed(" ".join(message.failure.reason[:LONGEST_REASON].split()), message.failure.diverged)
        if which == "evaluated" and owed.kind == "evaluation":
            return Evaluated(self._score(message.evaluated.validation), self._score(message.evaluated.test))
        if which != "vector" or owed.kind == "evaluation":
            raise ProtocolError(f"answer to {message.ask!r} holds {which or 'nothing'}: it was asked for {owed.kind!r}")
        if owed.assembly is None:
            owed.assembly = Assembly(fingerprint=self._fingerprint, length=self._length)
        owed.assembly.add(message.vector)
        if not owed.assembly.complete:
            return None
        if not math.isfinite(message.loss):
            raise InputError(f"loss of device {self.device!r} is {message.loss}: send a finite number")
        return Direction(owed.assembly.finish(), message.gradients, message.loss)

    def _score(self, message: cloud_pb2.Score) -> Score:
        """Not refused if it is no number: a model on its way out has such scores, and is never chosen by them."""
        if message.count > MOST_LABELS:
            raise InputError(f"score of device {self.device!r} is of {message.count} labels: at most {MOST_LABELS}")
        if self.hello.model.metric.root and message.total < 0:
            raise InputError(f"score of device {self.device!r} is {message.total}: its root is asked for, send >= 0")
        return Score(message.total, message.count)

    def _ends(self, message: edge_pb2.Answer) -> bool:
        """Whether it is the last of an answer, by what it says."""
        vector = message.vector
        return message.WhichOneof("answer") != "vector" or vector.offset + len(vector.data) // 4 >= self._length

    async def _write(self, context: Context) -> None:
        """No deadline: a device that takes nothing is late, and holds no more than the asks that are waited for."""
        while True:
            await self._more.wait()
            self._more.clear()
            while self._told:
                await context.write(self._told.pop(next(iter(self._told))))
            while self._unsent and self.behind < MOST_BEHIND:
                await self._send(self._unsent.pop(next(iter(self._unsent))), context)

    async def _send(self, ask: Ask, context: Context) -> None:
        self._sending = ask
        messages = ask.messages()
        following = next(messages, None)
        while following is not None:
            if self._sending is not ask:  # withdrawn meanwhile
                return
            message, following = following, next(messages, None)
            if following is None:  # whole: from here on it may be answered
                self._sending = None
                self._owed[ask.id].coming += 1
            await context.write(message)


class EdgeHandler(Protocol):
    """An edge, as its devices and operators see it."""

    def attend(self, hello: Hello) -> DeviceLink:
        """A device says hello: its link, or an error that refuses it."""

    def joined(self, link: DeviceLink) -> None:
        """The link is up: it may be asked."""

    def answered(self, link: DeviceLink, ask: str, answer: Answer | None) -> None:
        """A device's answer, whole; None if the ask was withdrawn before it came."""

    def gone(self, link: DeviceLink) -> None:
        """The stream has ended."""

    def model(self, kind: ModelKind) -> tuple[int, str, Vector]:
        """The zone's model: its round, its fingerprint, its weights."""

    @property
    def zone(self) -> str:
        """The zone that it is the edge of."""


class _Servicer(edge_pb2_grpc.EdgeServiceServicer):
    def __init__(self, handler: EdgeHandler) -> None:
        self._handler = handler

    async def Attend(  # type: ignore[override]  # noqa: N802 (its name in the proto; it writes and yields nothing)
        self, request_iterator: AsyncIterator[edge_pb2.AttendRequest], context: Context
    ) -> None:
        first = await next_within(request_iterator, HELLO_WITHIN, "a device's Hello")
        if first is None:
            return
        hello = hello_from_wire(first)
        require_device(context, hello.device)
        if hello.zone != self._handler.zone:
            raise InputError(f"zone {hello.zone!r} is not attended here: this is the edge of {self._handler.zone!r}")
        link = self._handler.attend(hello)
        try:
            self._handler.joined(link)
            await link.run(request_iterator, context, self._handler)
        finally:
            self._handler.gone(link)

    async def FetchModel(  # type: ignore[override]  # noqa: N802
        self, request: edge_pb2.FetchModelRequest, context: Context
    ) -> None:
        if request.zone != self._handler.zone:
            raise InputError(f"zone {request.zone[:LONGEST]!r} is not here: this is the edge of {self._handler.zone!r}")
        if request.kind not in _MODEL_KINDS:
            raise InputError(f"kind = {request.kind}: choose MODEL_KIND_BEST or MODEL_KIND_LAST")
        round, fingerprint, weights = self._handler.model(_MODEL_KINDS[request.kind])
        for chunk in to_chunks(weights, fingerprint):
            await write_within(context, edge_pb2.FetchModelResponse(round=round, weights=chunk))


def add_edge(server: grpc.aio.Server, handler: EdgeHandler) -> None:
    """Serve the edge."""
    edge_pb2_grpc.add_EdgeServiceServicer_to_server(_Servicer(handler), server)
