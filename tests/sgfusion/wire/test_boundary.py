"""What becomes of a handler's errors, whichever of the ways of writing a handler it has."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from sgfusion import errors
from sgfusion.proto.v1 import cloud_pb2, edge_pb2
from sgfusion.wire.channel import MESSAGE_BYTES, open_channel
from sgfusion.wire.identity import Identity
from sgfusion.wire.status import Refusals, from_rpc_error
from tests.cluster.keys import CLOUD, OPERATOR, dialled, run_async, said, serving
from tests.cluster.rpcs import BY_NAME, Rpc, register

EDGE = Identity("edge", "lublin")
DEVICE = Identity("device", "u17")
OURS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SGFusionError)]
ENROL, WATCH, ATTEND = BY_NAME["Enrol"], BY_NAME["WatchPlan"], BY_NAME["Attend"]


def unary(act: Callable[[], None]) -> Any:
    async def handle(_request: bytes, _context: Any) -> bytes:
        act()
        return b"welcome"

    return handle


def poured(act: Callable[[], None]) -> Any:
    async def handle(_request: Any, _context: Any) -> AsyncIterator[bytes]:
        yield b"welcome"
        act()

    return handle


def written(act: Callable[[], None]) -> Any:
    async def handle(_request: Any, context: Any) -> None:
        await context.write(b"welcome")
        act()

    return handle


def read_and_written(act: Callable[[], None]) -> Any:
    async def handle(_requests: Any, context: Any) -> None:
        while await context.read() != grpc.aio.EOF:
            await context.write(b"welcome")
        act()

    return handle


KINDS = [
    pytest.param(ENROL, EDGE, unary, id="unary-unary"),
    pytest.param(WATCH, EDGE, poured, id="unary-stream, generator"),
    pytest.param(WATCH, EDGE, written, id="unary-stream, write"),
    pytest.param(ATTEND, DEVICE, poured, id="stream-stream, generator"),
    pytest.param(ATTEND, DEVICE, read_and_written, id="stream-stream, read and write"),
]


def calling(rpc: Rpc, me: Identity, handler: Any, *, request: bytes = b"", **codecs: Any) -> tuple[Any, Refusals]:
    """What a call comes to: the answer, or the status."""
    refusals = Refusals()

    async def scene() -> Any:
        async with (
            serving(lambda server: register(server, {rpc.path: handler}, **codecs), refusals=refusals) as address,
            dialled(address, me=me) as channel,
        ):
            try:
                return await rpc.call(channel, request)
            except grpc.aio.AioRpcError as error:
                return error

    return run_async(scene()), refusals


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(("rpc", "me", "make"), KINDS)
def test_what_goes_well_goes_through(rpc: Rpc, me: Identity, make: Any) -> None:
    answer, refusals = calling(rpc, me, make(lambda: None))
    assert answer == [b"welcome"]
    assert refusals.counts() == {}


@pytest.mark.parametrize(("rpc", "me", "make"), KINDS)
def test_an_error_of_ours_reaches_the_caller_and_is_counted_and_logged(
    rpc: Rpc, me: Identity, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "sgfusion"):
        status, refusals = calling(rpc, me, make(raising(errors.TensorError("3 of 4\nelements, naïve"))))
    error = from_rpc_error(status)
    assert type(error) is errors.TensorError
    assert str(error) == r"3 of 4\nelements, naïve"
    assert status.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert refusals.counts() == {"TensorError": 1}
    (record,) = said(caplog)
    assert (record.name, record.levelname) == ("sgfusion.cloud", "WARNING")
    assert record.getMessage() == f"refused {rpc.path} of {me.uri}: TensorError: 3 of 4 elements, naïve"


@pytest.mark.parametrize(("rpc", "me", "make"), KINDS)
def test_any_other_error_is_ours_to_look_into_and_tells_the_caller_nothing(
    rpc: Rpc, me: Identity, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        status, refusals = calling(rpc, me, make(raising(ZeroDivisionError("the secret of zone 7"))))
    assert status.code() == grpc.StatusCode.INTERNAL
    assert status.details() == f"{rpc.path} failed on the other side; its log says why"
    assert type(from_rpc_error(status)) is errors.SGFusionError  # not unavailable: trying again would fail again
    assert refusals.counts() == {"internal": 1}
    (record,) = said(caplog)
    assert (record.name, record.levelname) == ("sgfusion.cloud", "ERROR")
    assert record.getMessage() == f"{rpc.path} of {me.uri} failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)


@pytest.mark.parametrize("kind", OURS)
def test_every_error_of_ours_survives_the_trip(kind: type[errors.SGFusionError]) -> None:
    said = "zone 'Łódź' has 100 % of\t7 bins " + "é" * 900
    status, refusals = calling(ENROL, EDGE, unary(raising(kind(said))))
    error = from_rpc_error(status)
    assert type(error) is kind
    assert str(error) == said.replace("\t", r"\t")  # a terminal may show it
    assert refusals.counts() == {kind.__name__: 1}


@pytest.mark.parametrize("said", ["\U0001f5fa" * 2_000, "a" * 100_000, "\ud800", "\x00\r\n", ""])
def test_no_message_is_too_odd_to_send(said: str) -> None:
    status, _ = calling(ENROL, EDGE, unary(raising(errors.InputError(said))))
    error = from_rpc_error(status)
    assert type(error) is errors.InputError
    assert str(error)[:100].rstrip("…") in {
        said[:100],
        "?",
        r"\u0000\r\n",
        "the call ended with INVALID_ARGUMENT and no message",
    }


def test_not_yet_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sgfusion"):
        calling(ENROL, EDGE, unary(raising(errors.UnavailableError("not yet"))))
    assert [record.levelname for record in said(caplog)] == ["INFO"]


def test_devices_that_try_again_and_again_do_not_bury_the_rest_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """What is the same for all is told once a minute; what is wrong with a caller, of each caller and matter."""
    told = {"not yet": errors.UnavailableError("not yet"), "bad": errors.ContractError("another run")}

    async def handle(request: bytes, _context: Any) -> bytes:
        raise told[request.decode()]

    async def scene() -> dict[str, int]:
        refusals = Refusals()
        callers = [Identity("edge", name) for name in ("ash", "birch", "cedar")]
        async with serving(lambda server: register(server, {ENROL.path: handle}), refusals=refusals) as address:
            for me in callers:
                async with dialled(address, me=me) as channel:
                    for request in ("not yet", "bad", "not yet", "bad"):
                        with pytest.raises(grpc.aio.AioRpcError):
                            await ENROL.call(channel, request.encode())
        return refusals.counts()

    with caplog.at_level(logging.INFO, "sgfusion"):
        assert run_async(scene()) == {"ContractError": 6, "UnavailableError": 6}
    found = [(record.levelname, record.getMessage().rpartition("edge/")[2]) for record in said(caplog)]
    assert found == [
        ("INFO", "ash: UnavailableError: not yet"),
        ("WARNING", "ash: ContractError: another run"),
        ("WARNING", "birch: ContractError: another run"),
        ("WARNING", "cedar: ContractError: another run"),
    ]


def test_a_handler_may_say_its_own_status() -> None:
    async def handle(_request: bytes, context: Any) -> None:
        await context.abort(grpc.StatusCode.ALREADY_EXISTS, "its own")

    status, refusals = calling(ENROL, EDGE, handle)
    assert (status.code(), status.details()) == (grpc.StatusCode.ALREADY_EXISTS, "its own")
    assert refusals.counts() == {}


BROKEN = b"\x0a\xff\xff"
"""A field that is longer than the message."""


@pytest.mark.parametrize(("rpc", "me", "make"), KINDS)
def test_bytes_that_are_no_message_are_refused(
    rpc: Rpc, me: Identity, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    message = edge_pb2.AttendRequest if rpc.streams_in else cloud_pb2.EnrolRequest
    handler = make(lambda: None)
    if rpc is ATTEND and make is poured:

        async def handler(requests: Any, _context: Any) -> AsyncIterator[bytes]:
            async for _ in requests:
                yield b"welcome"

    with caplog.at_level(logging.INFO):
        status, refusals = calling(rpc, me, handler, request=BROKEN, request_deserializer=message.FromString)
    error = from_rpc_error(status)
    assert type(error) is errors.ProtocolError
    assert f"3 bytes to {rpc.path} are not its message" in str(error)
    assert refusals.counts() == {"ProtocolError": 1}
    assert [record.name for record in said(caplog)] == ["sgfusion.cloud"]


def test_a_good_message_is_parsed_once_and_whole() -> None:
    async def handle(request: cloud_pb2.EnrolRequest, _context: Any) -> cloud_pb2.EnrolResponse:
        return cloud_pb2.EnrolResponse(number=7, run=request.zone)

    sent = cloud_pb2.EnrolRequest(zone="Łódź", address="10.0.0.7:7400").SerializeToString()
    answer, _ = calling(
        ENROL,
        EDGE,
        handle,
        request=sent,
        request_deserializer=cloud_pb2.EnrolRequest.FromString,
        response_serializer=cloud_pb2.EnrolResponse.SerializeToString,
    )
    assert [cloud_pb2.EnrolResponse.FromString(raw) for raw in answer] == [
        cloud_pb2.EnrolResponse(number=7, run="Łódź")
    ]


def test_a_message_above_the_limit_is_refused_and_the_service_goes_on() -> None:
    async def scene() -> None:
        async with (
            serving(lambda server: register(server, {ENROL.path: unary(lambda: None)})) as address,
            dialled(address, me=EDGE) as channel,
            grpc.aio.insecure_channel(address, [("grpc.max_send_message_length", -1)]) as reckless,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await ENROL.call(channel, bytes(MESSAGE_BYTES + 1))  # our own side refuses to send it
            assert type(from_rpc_error(raised.value)) is errors.ProtocolError
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await ENROL.call(reckless, bytes(MESSAGE_BYTES + 1))
            assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await ENROL.call(channel, bytes(MESSAGE_BYTES)) == [b"welcome"]

    run_async(scene())


@pytest.mark.parametrize("way", ["generator", "write"])
def test_a_call_that_ends_closes_its_handler_at_once(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """A cancelled caller is no error: nothing is counted, logged or swallowed, and `finally` has run."""
    ended: list[type[BaseException]] = []
    refusals = Refusals()

    async def scene() -> None:
        closed = asyncio.Event()

        async def pour(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await asyncio.Event().wait()
            except BaseException as error:
                ended.append(type(error))
                raise
            finally:
                closed.set()

        async def write(_request: bytes, context: Any) -> None:
            try:
                await context.write(b"first")
                await asyncio.Event().wait()
            except BaseException as error:
                ended.append(type(error))
                raise
            finally:
                closed.set()

        handler = pour if way == "generator" else write
        async with (
            serving(lambda server: register(server, {WATCH.path: handler}), refusals=refusals) as address,
            dialled(address, me=EDGE) as channel,
        ):
            watch: Any = channel.unary_stream(WATCH.path)
            call = watch(b"")
            assert await call.read() == b"first"
            call.cancel()
            await asyncio.wait_for(closed.wait(), 10)

    with caplog.at_level(logging.INFO):
        run_async(scene())
    assert ended == [asyncio.CancelledError]
    assert refusals.counts() == {}
    assert not said(caplog)


def test_a_generator_that_waits_for_a_slow_reader_is_closed_too() -> None:
    """It stands at its yield, where a cancelled task does not reach it: the boundary closes it."""

    async def scene() -> None:
        closed = asyncio.Event()
        poured = 0

        async def pour(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
            nonlocal poured
            try:
                while True:
                    yield bytes(1 << 20)
                    poured += 1
            finally:
                closed.set()

        async with (
            serving(lambda server: register(server, {BY_NAME["GetRecords"].path: pour})) as address,
            dialled(address, me=OPERATOR) as channel,
        ):
            get: Any = channel.unary_stream(BY_NAME["GetRecords"].path)
            call = get(b"")
            assert len(await call.read()) == 1 << 20
            await asyncio.sleep(0.2)  # nobody reads: the stream fills up
            assert poured < 100
            call.cancel()
            await asyncio.wait_for(closed.wait(), 10)

    run_async(scene())


def test_a_server_that_stops_is_unavailable_to_its_callers() -> None:
    async def scene() -> None:
        started = asyncio.Event()

        async def wait(_request: bytes, _context: Any) -> bytes:
            started.set()
            await asyncio.Event().wait()
            return b"never"

        async with serving(lambda server: register(server, {ENROL.path: wait})) as address:
            channel = open_channel(address, server=CLOUD, me=EDGE, keys=None)
            call = asyncio.create_task(ENROL.call(channel))
            await started.wait()
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call
        assert type(from_rpc_error(raised.value)) is errors.UnavailableError
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await ENROL.call(channel)
        assert type(from_rpc_error(raised.value)) is errors.UnavailableError
        await channel.close()

    run_async(scene())


def test_no_answer_in_time_is_a_deadline() -> None:
    async def scene() -> None:
        async def wait(_request: bytes, _context: Any) -> bytes:
            await asyncio.Event().wait()
            return b"never"

        async with (
            serving(lambda server: register(server, {ENROL.path: wait})) as address,
            dialled(address, me=EDGE) as channel,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await ENROL.call(channel, timeout=0.2)
            assert type(from_rpc_error(raised.value)) is errors.DeadlineError

    run_async(scene())
