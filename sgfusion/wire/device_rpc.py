"""`EdgeService.Attend` as a device speaks it, and `FetchModel` as an operator does (`edge.proto`)."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import grpc
import numpy as np
import numpy.typing as npt

from sgfusion.errors import ProtocolError, TensorError, UnavailableError
from sgfusion.evaluation import Score
from sgfusion.proto.v1 import cloud_pb2, edge_pb2, edge_pb2_grpc
from sgfusion.proto.v1.tensor_pb2 import TensorChunk
from sgfusion.wire.attending import (
    LONGEST,
    MOST_WEIGHTS,
    Answer,
    AskKind,
    Direction,
    Directory,
    Failed,
    Hello,
    Welcome,
    ask_kind,
    hello_to_wire,
)
from sgfusion.wire.codec import Assembly, in_messages
from sgfusion.wire.requests import checked_request
from sgfusion.wire.status import from_rpc_error, said_by_us

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Question:
    """What the edge asks, whole."""

    id: str
    kind: AskKind
    weights: Vector | None
    request: str = ""
    """Whose round it is for; for logs."""


class Attending:
    """One stream of one device to one edge. Several tasks may answer; one reads."""

    def __init__(self, channel: grpc.aio.Channel, hello: Hello) -> None:
        self._hello = hello
        self._call = edge_pb2_grpc.EdgeServiceStub(channel).Attend()
        self._writing = asyncio.Lock()

    async def messages(self) -> AsyncIterator[Welcome | Directory | Question]:
        """Say hello, then all that the edge says, until the stream ends; errors are ours."""
        id, assembly = "", None
        try:
            await self._call.write(hello_to_wire(self._hello))
            async for message in self._call:
                if message is None:  # what gRPC makes of bytes that it cannot parse
                    raise ProtocolError(f"edge of {self._hello.zone!r} sent bytes that are no message")
                which = message.WhichOneof("message")
                if which == "welcome":
                    yield Welcome(message.welcome.number)
                elif which == "directory":
                    yield Directory(dict(message.directory.edges))
                elif which == "ask":
                    ask = message.ask
                    kind = ask_kind(ask)
                    if kind == "initial":
                        yield Question(ask.ask, kind, None, checked_request(ask.request))
                        continue
                    # An ask that was cut short is never resumed, but the same may be asked anew.
                    if assembly is None or ask.ask != id or ask.weights.offset == 0:
                        id = ask.ask
                        assembly = Assembly(fingerprint=self._hello.model.fingerprint, length=self._hello.model.length)
                    assembly.add(ask.weights)
                    if assembly.complete:
                        weights, assembly = assembly.finish(), None
                        yield Question(id, kind, weights, checked_request(ask.request))
                        del weights  # else they would stay until the next question
                else:
                    raise ProtocolError(f"edge of {self._hello.zone!r} sent a message that holds nothing known")
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error
        except asyncio.InvalidStateError:
            raise UnavailableError("the stream to the edge ended before it began: attend anew") from None
        finally:
            self._call.cancel()

    async def answer(self, id: str, answer: Answer) -> None:
        """Answer; a vector as its chunks, one after the other on this stream."""
        if isinstance(answer, Direction):
            head = edge_pb2.Answer(ask=id, gradients=answer.gradients, loss=answer.loss)

            def message() -> tuple[edge_pb2.AttendRequest, TensorChunk]:
                request = edge_pb2.AttendRequest(answer=head)
                return request, request.answer.vector

            try:
                messages = in_messages(answer.vector, self._hello.model.fingerprint, message)
            except TensorError:  # the edge says what to do about it
                answer = Failed("its gradient is not finite", diverged=True)
            else:
                await self._send(messages)
                return
        if isinstance(answer, Failed):
            failure = edge_pb2.Failure(reason=answer.reason[:1000], diverged=answer.diverged)
            await self._send([edge_pb2.AttendRequest(answer=edge_pb2.Answer(ask=id, failure=failure))])
            return
        evaluated = edge_pb2.Evaluated(validation=_to_wire(answer.validation), test=_to_wire(answer.test))
        await self._send([edge_pb2.AttendRequest(answer=edge_pb2.Answer(ask=id, evaluated=evaluated))])

    async def _send(self, requests: Iterable[edge_pb2.AttendRequest]) -> None:
        try:
            async with self._writing:
                for request in requests:
                    await self._call.write(request)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error
        except asyncio.InvalidStateError:
            raise UnavailableError("the stream to the edge has ended: attend anew") from None


async def fetch_model(channel: grpc.aio.Channel, zone: str, kind: str, *, timeout: float) -> tuple[int, str, Vector]:
    """A zone's `best` or `last` model from its edge: the round it is of, its fingerprint, its weights."""
    request = edge_pb2.FetchModelRequest(zone=zone, kind=edge_pb2.ModelKind.Value(f"MODEL_KIND_{kind.upper()}"))
    assembly, round, fingerprint = None, 0, ""
    try:
        async for piece in edge_pb2_grpc.EdgeServiceStub(channel).FetchModel(request, timeout=timeout):
            if piece is None:  # what gRPC makes of bytes that it cannot parse
                raise ProtocolError(f"edge of {zone!r} sent bytes that are no piece of a model")
            if assembly is None:
                round, fingerprint, length = piece.round, piece.weights.fingerprint, piece.weights.length
                if length > MOST_WEIGHTS:
                    raise TensorError(f"model of {length} weights: at most {MOST_WEIGHTS} are taken")
                assembly = Assembly(fingerprint=fingerprint[:LONGEST], length=length)
            assembly.add(piece.weights)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from error
    if assembly is None:
        raise ProtocolError(f"edge of {zone!r} sent no model")
    return round, fingerprint, assembly.finish()


async def first_piece(channel: grpc.aio.Channel, zone: str, *, timeout: float) -> None:
    """See whether the zone's edge is there and takes us for an operator: the first piece of its model will do, and
    so will its own word that it has none yet.
    """
    request = edge_pb2.FetchModelRequest(zone=zone, kind=edge_pb2.MODEL_KIND_LAST)
    call = edge_pb2_grpc.EdgeServiceStub(channel).FetchModel(request, timeout=timeout)
    try:
        await call.read()
    except grpc.aio.AioRpcError as error:
        if not (said_by_us(error) and isinstance(from_rpc_error(error), UnavailableError)):
            raise from_rpc_error(error) from error
    finally:
        call.cancel()


def _to_wire(score: Score) -> cloud_pb2.Score:
    return cloud_pb2.Score(total=score.total, count=score.count)
