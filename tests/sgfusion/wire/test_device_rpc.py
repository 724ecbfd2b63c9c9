"""A device's side of Attend, and an operator's of FetchModel, before an edge that says what it likes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest

from sgfusion.errors import ProtocolError, SGFusionError, TensorError, UnavailableError
from sgfusion.evaluation import Score
from sgfusion.proto.v1 import edge_pb2
from sgfusion.proto.v1.tensor_pb2 import TensorChunk
from sgfusion.wire.attending import Answer, Ask, Direction, Directory, Evaluated, Failed, Welcome
from sgfusion.wire.device_rpc import Attending, Question, fetch_model
from sgfusion.wire.identity import Identity
from tests.cluster.keys import OPERATOR, dialled, run_async, serving
from tests.cluster.rpcs import register
from tests.edge.zones import MODEL, THETA, chunks, domain_hello, keys_of

EDGE, DEVICE = Identity("edge", "ash"), Identity("device", "u1")
ATTEND, FETCH = "/sgfusion.v1.EdgeService/Attend", "/sgfusion.v1.EdgeService/FetchModel"
Heard = list[edge_pb2.AttendRequest]


def asks(*parts: TensorChunk, id: str = "direction-1", kind: int = edge_pb2.ASK_KIND_DIRECTION) -> list[bytes]:
    return [
        edge_pb2.AttendResponse(ask=edge_pb2.Ask(ask=id, kind=kind, weights=part)).SerializeToString()  # type: ignore[arg-type]
        for part in parts
    ]


def before_an_edge(
    says: list[bytes], answers: Callable[[Attending, Question], Any] | None = None
) -> tuple[list[Any], SGFusionError | None, Heard]:
    """What the device makes of it, the error that its stream ends with, and what the edge heard of it."""
    heard: Heard = []

    async def edge(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        heard.append(edge_pb2.AttendRequest.FromString(await anext(requests)))
        for one in says:
            yield one
        if answers is not None:
            async for raw in requests:
                heard.append(edge_pb2.AttendRequest.FromString(raw))

    async def scene() -> tuple[list[Any], SGFusionError | None, Heard]:
        found: list[Any] = []
        async with (
            serving(lambda server: register(server, {ATTEND: edge}), me=EDGE, keys=keys_of(EDGE)) as address,
            dialled(address, me=DEVICE, keys=keys_of(DEVICE), server=EDGE) as channel,
        ):
            stream = Attending(channel, domain_hello("u1"))
            try:
                async for message in stream.messages():
                    found.append(message)
                    if answers is not None and isinstance(message, Question):
                        await answers(stream, message)
                        await stream._call.done_writing()
            except SGFusionError as error:
                return found, error, heard
        return found, None, heard

    return run_async(scene())


def test_a_question_of_several_chunks_is_one() -> None:
    directory = edge_pb2.AttendResponse(directory=edge_pb2.Directory(edges={"birch": "h:1"}))
    welcome = edge_pb2.AttendResponse(welcome=edge_pb2.Welcome(number=3))
    says = [welcome.SerializeToString(), directory.SerializeToString(), *asks(*chunks())]
    (first, second, third), error, heard = before_an_edge(says)
    assert (first, second) == (Welcome(3), Directory({"birch": "h:1"}))
    assert (third.id, third.kind, third.weights.tolist()) == ("direction-1", "direction", THETA.tolist())
    assert error is None
    assert heard[0].hello.device == "u1"


def test_initial_weights_are_asked_for_without_weights() -> None:
    ask = Ask("initial", None, MODEL.fingerprint)
    (question,), error, _ = before_an_edge(list(ask.messages()))
    assert (question.id, question.kind, question.weights, error) == (ask.id, "initial", None, None)


def test_a_question_that_was_cut_short_is_forgotten_and_may_be_asked_anew() -> None:
    cut = chunks(9 * THETA)[:2]
    (question,), error, _ = before_an_edge(asks(*cut) + asks(*chunks()))
    assert (question.weights.tolist(), error) == (THETA.tolist(), None)
    (question,), error, _ = before_an_edge(asks(*cut, id="direction-0") + asks(*chunks()))
    assert (question.id, question.weights.tolist(), error) == ("direction-1", THETA.tolist(), None)


def chunk(**wrong: Any) -> TensorChunk:
    found = chunks()[0]
    for name, value in wrong.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("says", "kind", "said"),
    [
        ([b"\xff" * 9], ProtocolError, "edge of 'ash' sent bytes that are no message"),
        ([b""], ProtocolError, "edge of 'ash' sent a message that holds nothing known"),
        (asks(chunk(), kind=0), ProtocolError, "ask 'direction-1' has kind 0: choose direction, evaluation, initial"),
        (asks(chunk(), kind=9, id="x" * 5000), ProtocolError, "has kind 9"),
        (asks(chunk(fingerprint="linear/7")), TensorError, "fingerprint is 'linear/7'"),
        (asks(chunk(length=1 << 40)), TensorError, "length is 1099511627776"),
        (asks(*chunks()[1:]), TensorError, "offset is 2, expected 0"),
        (asks(chunk(data=np.array([1, np.nan], "<f4").tobytes())), TensorError, "element 1 is nan"),
    ],
)
def test_what_makes_no_sense_ends_the_stream_with_an_error(says: list[bytes], kind: type, said: str) -> None:
    found, error, _ = before_an_edge(says)
    assert found == []
    assert type(error) is kind
    assert said in str(error)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Failed("x" * 5000), edge_pb2.Answer(ask="direction-1", failure=edge_pb2.Failure(reason="x" * 1000))),
        (
            Direction(np.array([1, np.inf, 3, 4, 5, 6], np.float32)),
            edge_pb2.Answer(
                ask="direction-1",
                failure=edge_pb2.Failure(reason="its gradient is not finite", diverged=True),
            ),
        ),
        (Evaluated(Score(1.5, 2), Score(0.5, 1)), None),
    ],
)
def test_answers(given: Answer, expected: edge_pb2.Answer | None) -> None:
    async def answered(stream: Attending, question: Question) -> None:
        await stream.answer(question.id, given)

    _, error, (_, request) = before_an_edge(asks(*chunks()), answered)
    assert error is None
    if expected is None:
        assert (request.answer.evaluated.validation.total, request.answer.evaluated.test.count) == (1.5, 1)
    else:
        assert request.answer == expected


def test_an_answer_on_a_stream_that_has_ended_is_an_error_that_can_be_waited_out() -> None:
    async def scene() -> None:
        async def edge(_requests: Any, _context: Any) -> AsyncIterator[bytes]:
            for one in asks(*chunks()):
                yield one

        async with (
            serving(lambda server: register(server, {ATTEND: edge}), me=EDGE, keys=keys_of(EDGE)) as address,
            dialled(address, me=DEVICE, keys=keys_of(DEVICE), server=EDGE) as channel,
        ):
            stream = Attending(channel, domain_hello("u1"))
            async for _ in stream.messages():
                pass
            with pytest.raises(UnavailableError, match="the stream to the edge has ended: attend anew"):
                await stream.answer("direction-1", Failed("no"))

    run_async(scene())


def test_an_edge_that_is_not_there() -> None:
    async def scene() -> None:
        async with dialled("127.0.0.1:1", me=DEVICE, keys=keys_of(DEVICE), server=EDGE) as channel:
            with pytest.raises(UnavailableError):
                async for _ in Attending(channel, domain_hello("u1")).messages():
                    pass

    run_async(scene())


# FetchModel


def fetched(says: list[bytes], wait: float = 0.0) -> Any:
    async def edge(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
        for one in says:
            yield one
        await asyncio.sleep(wait)

    async def scene() -> Any:
        async with (
            serving(lambda server: register(server, {FETCH: edge}), me=EDGE, keys=keys_of(EDGE)) as address,
            dialled(address, me=OPERATOR, keys=keys_of(OPERATOR), server=EDGE) as channel,
        ):
            return await fetch_model(channel, "ash", "best", timeout=1.0)

    return run_async(scene())


def model(*parts: TensorChunk) -> list[bytes]:
    return [edge_pb2.FetchModelResponse(round=2, weights=part).SerializeToString() for part in parts]


def test_a_model() -> None:
    round, fingerprint, weights = fetched(model(*chunks()))
    assert (round, fingerprint, weights.tolist()) == (2, MODEL.fingerprint, THETA.tolist())


@pytest.mark.parametrize(
    ("says", "wait", "said"),
    [
        ([], 0, "edge of 'ash' sent no model"),
        ([b"\xff" * 9], 0, "edge of 'ash' sent bytes that are no piece of a model"),
        (model(chunk(length=1 << 40)), 0, "model of 1099511627776 weights: at most 1073741824"),
        (model(chunk(length=0)), 0, "expected length is 0"),
        (model(chunk(fingerprint="")), 0, "fingerprint is ''"),
        (model(chunk(fingerprint="f" * 300)), 0, "fingerprint is 'fff"),
        (model(*chunks()[:2]), 0, "tensor ended after 4 of 6"),
        (model(*chunks()), 5.0, "Deadline Exceeded"),
    ],
)
def test_no_model(says: list[bytes], wait: float, said: str) -> None:
    with pytest.raises(SGFusionError) as error:
        fetched(says, wait)
    assert said in str(error.value)
