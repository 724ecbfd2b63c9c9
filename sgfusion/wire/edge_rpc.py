"""`EdgeService` of an edge: devices that attend it, and the operator who fetches its model (`edge.proto`).

An edge sees a `DeviceLink` for each stream: it asks through it and gets whole answers from it. Chunks, their checks and
the order of messages stop here.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Literal, Protocol

import grpc
import numpy as np
import numpy.typing as npt

from sgfusion.errors import InputError, ProtocolError, UnavailableError, UnknownAskError
from sgfusion.evaluation import Score
from sgfusion.proto.v1 import cloud_pb2, edge_pb2, edge_pb2_grpc
from sgfusion.wire.attending import LONGEST, Answer, Ask, AskKind, Direction, Evaluated, Failed, Hello, hello_from_wire
from sgfusion.wire.codec import Assembly, to_chunks
from sgfusion.wire.identity import require_device

Vector = npt.NDArray[np.float32]
ModelKind = Literal["best", "last"]
Context = grpc.aio.ServicerContext[Any, Any]

HELLO_WITHIN = 20.0
"""Seconds for a device to say who it is."""
_MODEL_KINDS: dict[int, ModelKind] = {edge_pb2.MODEL_KIND_BEST: "best", edge_pb2.MODEL_KIND_LAST: "last"}
_log = logging.getLogger("sgfusion.edge")


class DeviceLink:
    """A device that attends. `ask` and `tell` never wait; answers go to the handler, whole and checked."""

    def __init__(self, hello: Hello, *, length: int, fingerprint: str) -> None:
        self.hello = hello
        self.device = hello.device
        self._length = length
        self._fingerprint = fingerprint
        self._out: asyncio.Queue[Ask | edge_pb2.AttendResponse] = asyncio.Queue()
        self._asked: dict[str, AskKind] = {}
        self._withdrawn: dict[str, AskKind] = {}
        self._coming: dict[str, Assembly] = {}
        self._reading: asyncio.Task[None] | None = None
        self._closed_because: str | None = None

    def ask(self, ask: Ask) -> None:
        """Ask; once, whoever wants to know."""
        if ask.id not in self._asked:
            self._withdrawn.pop(ask.id, None)
            self._asked[ask.id] = ask.kind
            self._out.put_nowait(ask)

    def withdraw(self, ask: Ask) -> None:
        """The answer is no longer waited for: if it comes it is dropped, and what was received of it is."""
        kind = self._asked.pop(ask.id, None)
        self._coming.pop(ask.id, None)
        if kind is not None:
            self._withdrawn[ask.id] = kind
            while len(self._withdrawn) > 1000:
                self._withdrawn.pop(next(iter(self._withdrawn)))

    def tell(self, *, number: int | None = None, edges: dict[str, str] | None = None) -> None:
        """Welcome the device to the zone of that number, or tell it where other zones' edges are."""
        if number is not None:
            self._out.put_nowait(edge_pb2.AttendResponse(welcome=edge_pb2.Welcome(number=number)))
        if edges is not None:
            self._out.put_nowait(edge_pb2.AttendResponse(directory=edge_pb2.Directory(edges=edges)))

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

    async def _read(self, requests: AsyncIterator[edge_pb2.AttendRequest], handler: "EdgeHandler") -> None:
        async for message in requests:
            if message.WhichOneof("message") != "answer":
                raise ProtocolError("after Hello a device sends answers only")
            done = self._take(message.answer)
            if done is not None:
                handler.answered(self, *done)

    def _take(self, message: edge_pb2.Answer) -> tuple[str, Answer] | None:
        """The answer that this message completes, if it completes one."""
        id = message.ask
        if id in self._withdrawn:
            return None
        if id not in self._asked:
            raise UnknownAskError(f"answer to {id[:LONGEST]!r}, which device {self.device!r} was not asked")
        kind, which = self._asked[id], message.WhichOneof("answer")
        answer: Answer
        if which == "failure":
            answer = Failed(message.failure.reason[:1000], message.failure.diverged)
        elif which == "evaluated" and kind == "evaluation":
            answer = Evaluated(_score(message.evaluated.validation), _score(message.evaluated.test))
        elif which == "vector" and kind != "evaluation":
            if id not in self._coming:
                self._coming[id] = Assembly(fingerprint=self._fingerprint, length=self._length)
            assembly = self._coming[id]
            assembly.add(message.vector)
            if not assembly.complete:
                return None
            if not math.isfinite(message.loss):
                raise InputError(f"loss of device {self.device!r} is {message.loss}: send a finite number")
            answer = Direction(assembly.finish(), message.gradients, message.loss)
        else:
            raise ProtocolError(f"answer to {id!r} holds {which or 'nothing'}, which is no answer to {kind!r}")
        self._coming.pop(id, None)
        del self._asked[id]
        return id, answer

    async def _write(self, context: Context) -> None:
        while True:
            item = await self._out.get()
            if not isinstance(item, Ask):
                await context.write(item)
                continue
            for message in item.messages():
                if item.id not in self._asked:  # withdrawn meanwhile: the device drops what it has of it
                    break
                await context.write(message)
            del item  # weights may be large, and the next ask may be long in coming


class EdgeHandler(Protocol):
    """An edge, as its devices and operators see it."""

    def attend(self, hello: Hello) -> DeviceLink:
        """A device says hello: its link, or an error that refuses it."""

    def joined(self, link: DeviceLink) -> None:
        """The link is up: it may be asked."""

    def answered(self, link: DeviceLink, ask: str, answer: Answer) -> None:
        """A device's answer, whole."""

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
        try:
            first = await asyncio.wait_for(anext(request_iterator), HELLO_WITHIN)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise ProtocolError(f"no Hello within {HELLO_WITHIN:.0f} s: say who attends") from None
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

    async def FetchModel(  # noqa: N802
        self, request: edge_pb2.FetchModelRequest, _context: Context
    ) -> AsyncIterator[edge_pb2.FetchModelResponse]:
        if request.zone != self._handler.zone:
            raise InputError(f"zone {request.zone[:LONGEST]!r} is not here: this is the edge of {self._handler.zone!r}")
        if request.kind not in _MODEL_KINDS:
            raise InputError(f"kind = {request.kind}: choose MODEL_KIND_BEST or MODEL_KIND_LAST")
        round, fingerprint, weights = self._handler.model(_MODEL_KINDS[request.kind])
        for chunk in to_chunks(weights, fingerprint):
            yield edge_pb2.FetchModelResponse(round=round, weights=chunk)


def add_edge(server: grpc.aio.Server, handler: EdgeHandler) -> None:
    """Serve the edge."""
    edge_pb2_grpc.add_EdgeServiceServicer_to_server(_Servicer(handler), server)


def _score(message: cloud_pb2.Score) -> Score:
    """Not refused if it is no number: a model on its way out has such scores, and is never chosen by them."""
    return Score(message.total, message.count)
