"""What a peer may send wrongly on Direction, and an operator on FetchModel: named, counted, nothing kept (Faults)."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest

from sgfusion.errors import (
    ContractError,
    DeadlineError,
    IdentityError,
    InputError,
    ProtocolError,
    SGFusionError,
    TensorError,
    UnavailableError,
)
from sgfusion.proto.v1 import edge_pb2, peer_pb2
from sgfusion.proto.v1.tensor_pb2 import DTYPE_UNSPECIFIED, TensorChunk
from sgfusion.wire import patience, peer_rpc
from sgfusion.wire.device_rpc import fetch_model
from sgfusion.wire.identity import ALLOWED, Identity
from sgfusion.wire.peer_rpc import ask_peer
from sgfusion.wire.status import from_rpc_error
from tests.cluster.keys import OPERATOR, dialled, run_async, serving
from tests.cluster.rpcs import BY_NAME, register
from tests.edge.zones import CONTRACT, MODEL, PEER, THETA, Edge, an_edge, chunks, keys_of, serialized, until

DIRECTION = "/sgfusion.v1.PeerService/Direction"


def piece(number: int = 0, **wrong: Any) -> peer_pb2.DirectionRequest:
    """Of three pieces; what is no field of the request is one of its chunk."""
    chunk = chunks()[number]
    own = {name: wrong.pop(name) for name in list(wrong) if name not in TensorChunk.DESCRIPTOR.fields_by_name}
    for name, value in wrong.items():
        setattr(chunk, name, value)
    good = {"zone": "birch", "asked": "ash", "round": 1, "contract": CONTRACT, "weights": chunk}
    return peer_pb2.DirectionRequest(**{**good, **own})


def called(channel: grpc.aio.Channel, **options: Any) -> Any:
    return channel.stream_stream(
        DIRECTION,
        request_serializer=serialized,
        response_deserializer=peer_pb2.DirectionResponse.FromString,
    )(**options)


async def refused(edge: Edge, *pieces: Any, ends: bool = True) -> SGFusionError:
    call = called(await edge.channel(PEER))
    with pytest.raises(grpc.aio.AioRpcError) as error:  # noqa: PT012
        for one in pieces:
            await call.write(one)
        if ends:
            await call.done_writing()
        await call.read()
    assert error.value.code() is not grpc.StatusCode.INTERNAL
    return from_rpc_error(error.value)


def numbers(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


@pytest.mark.parametrize(
    ("pieces", "kind", "said"),
    [
        ((), ProtocolError, "a request for a direction without weights"),
        ((b"\xff" * 9,), ProtocolError, "9 bytes to /sgfusion.v1.PeerService/Direction are not its message"),
        ((piece(), b"\xff" * 9), ProtocolError, "9 bytes to"),
        ((peer_pb2.DirectionRequest(),), IdentityError, "edge birch may not speak for edge "),
        ((piece(weights=None),), TensorError, "dtype is DTYPE_UNSPECIFIED"),
        ((piece(contract="c" * 64),), ContractError, "the two edges are of different runs"),
        ((piece(contract=""),), ContractError, "the two edges are of different runs"),
        ((piece(asked="cedar"),), InputError, "zone 'cedar' is asked, and this is the edge of 'ash'"),
        ((piece(asked="x" * 3_000_000),), InputError, "is asked, and this is the edge of 'ash'"),
        ((piece(zone="cedar"),), IdentityError, "edge birch may not speak for edge cedar"),
        ((piece(), piece(1, zone="cedar")), ProtocolError, "of ('birch', 1) says ('cedar', 1)"),
        ((piece(), piece(1, round=2)), ProtocolError, "of ('birch', 1) says ('birch', 2)"),
        ((piece(), piece(1, asked="cedar")), ProtocolError, "all pieces of one request say the same"),
        ((piece(), piece(1, contract="c")), ProtocolError, "all pieces of one request say the same"),
        ((piece(fingerprint="linear/7"),), TensorError, "fingerprint is 'linear/7'"),
        ((piece(dtype=DTYPE_UNSPECIFIED),), TensorError, "dtype is DTYPE_UNSPECIFIED"),
        ((piece(length=1 << 40),), TensorError, "length is 1099511627776, expected 6"),
        ((piece(1),), TensorError, "offset is 2, expected 0"),
        ((piece(), piece()), TensorError, "offset is 0, expected 2: it is repeated"),
        ((piece(data=b""),), TensorError, "chunk holds 0 bytes"),
        ((piece(data=b"12345"),), TensorError, "chunk holds 5 bytes"),
        ((piece(data=bytes((1 << 20) + 4)),), TensorError, "chunk holds 1048580 bytes"),
        ((piece(data=numbers(*range(7))),), TensorError, "chunk ends at element 7"),
        ((piece(data=numbers(math.nan, 1)),), TensorError, "element 0 is nan"),
        ((piece(), piece(1, data=numbers(1, math.inf))), TensorError, "element 3 is inf"),
        ((piece(), piece(1, checksum=1)), TensorError, "checksum is 0x00000001"),
        (tuple(piece(i, checksum=1) for i in range(3)), TensorError, "checksum of the assembled tensor"),
        ((piece(), piece(1)), TensorError, "tensor ended after 4 of 6 elements"),
    ],
)
def test_directions(tmp_path: Path, pieces: tuple[Any, ...], kind: type[SGFusionError], said: str) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            device = await edge.healthy()
            edge.enter("a0")
            error = await refused(edge, *pieces)
            assert type(error) is kind
            assert said in str(error)
            assert len(str(error)) <= 1000
            assert edge.refusals == {kind.__name__: 1}
            assert device.asked == []  # nothing of it reached a device
            assert edge.zone.devices._jobs == {}
            assert (await edge.direction()).vector.tolist() == (2 * THETA).tolist()

    run_async(work())


def test_a_zone_that_still_gathers_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            with pytest.raises(UnavailableError, match="zone 'ash' is still gathering its devices: try again"):
                await edge.direction()
            await edge.healthy()
            with pytest.raises(UnavailableError, match="still gathering"):
                await edge.direction()
            assert edge.refusals == {"UnavailableError": 2}

    run_async(work())


def test_weights_that_stop_in_the_middle_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_rpc, "PIECE_WITHIN", 0.1)

    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            await edge.healthy()
            edge.enter("a0")
            for pieces in ((), (piece(),)):
                error = await refused(edge, *pieces, ends=False)
                assert isinstance(error, DeadlineError)
                assert "the next piece of the weights has not come within 0.1 s" in str(error)
            assert edge.refusals == {"DeadlineError": 2}

    run_async(work())


@pytest.mark.parametrize("how", ["cancelled", "deadline", "torn"])
def test_a_caller_that_goes_away_leaves_nothing(tmp_path: Path, how: str) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            silent = await (await edge.raw()).welcome()
            edge.enter("u1")
            async with dialled(edge.address, me=PEER, keys=keys_of(PEER), server=Identity("edge", "ash")) as channel:
                call = called(channel, timeout=0.5 if how == "deadline" else None)
                for number in range(3):
                    await call.write(piece(number))
                ask = (await silent.asked()).ask
                devices = edge.zone.devices
                assert set(devices._jobs) == {ask}
                if how == "cancelled":
                    call.cancel()
                elif how == "deadline":
                    with pytest.raises(grpc.aio.AioRpcError) as error:
                        await call.read()
                    assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            await until(lambda: not devices._jobs)
            assert not devices._working
            assert not len(devices._turns)
            link = devices.members["u1"].link
            assert link is not None
            assert link.behind == 1
            # Its slot is free: the next asker is served on the same stream, and the late answer is no error.
            question = asyncio.create_task(edge.direction(2 * THETA))
            other = (await silent.asked()).ask
            for id in (ask, other):
                for chunk in chunks():
                    message = edge_pb2.Answer(ask=id, vector=chunk, gradients=1)
                    await silent.say(edge_pb2.AttendRequest(answer=message))
            assert (await question).devices == 1
            assert edge.refusals == {}

    run_async(work())


def test_a_caller_that_takes_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PIECE_WITHIN", 0.2)

    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            await edge.healthy()
            edge.zone.best = 3, np.zeros(16 << 20, np.float32)  # more than any window of HTTP/2
            fetch: Any = (await edge.channel(OPERATOR)).unary_stream("/sgfusion.v1.EdgeService/FetchModel")
            request = edge_pb2.FetchModelRequest(zone="ash", kind=edge_pb2.MODEL_KIND_BEST)
            call = fetch(request.SerializeToString())
            await until(lambda: edge.refusals == {"DeadlineError": 1})
            call.cancel()

    run_async(work())


# What comes back from a peer


def of_a_peer(answers: list[bytes]) -> Any:
    """What a caller makes of these answers."""

    async def pour(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            pass
        for one in answers:
            yield one

    async def scene() -> Any:
        me = Identity("edge", "ash")
        async with (
            serving(lambda server: register(server, {DIRECTION: pour}), me=me, keys=keys_of(me)) as address,
            dialled(address, me=PEER, keys=keys_of(PEER), server=me) as channel,
        ):
            return await ask_peer(
                channel,
                zone="birch",
                asked="ash",
                round=1,
                contract=CONTRACT,
                theta=THETA,
                fingerprint=MODEL.fingerprint,
                timeout=10,
            )

    return run_async(scene())


def answered(devices: int = 1, gradients: int = 1) -> list[bytes]:
    return [
        peer_pb2.DirectionResponse(devices=devices, gradients=gradients, direction=chunk).SerializeToString()
        for chunk in chunks()
    ]


def test_good_answers_of_a_peer() -> None:
    found = of_a_peer(answered(3, 5))
    assert (found.vector.tolist(), found.devices, found.gradients) == (THETA.tolist(), 3, 5)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([], "answered for 0 devices"),
        ([b"\xff" * 9], "zone 'ash' sent bytes that are no piece of a direction"),
        ([b""], "dtype is DTYPE_UNSPECIFIED"),
        (answered()[:2], "tensor ended after 4 of 6"),
        ([*answered(), *answered()], "offset is 0, expected 6"),
        (answered(devices=0), "answered for 0 devices"),
        (answered(devices=(1 << 32) - 1), "answered for 4294967295 devices"),
        (answered(gradients=(1 << 64) - 1), "with 18446744073709551615 gradients"),
    ],
)
def test_bad_answers_of_a_peer(answers: list[bytes], said: str) -> None:
    with pytest.raises(SGFusionError) as error:
        of_a_peer(answers)
    assert said in str(error.value)


# FetchModel


def test_models(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            channel = await edge.channel(OPERATOR)
            with pytest.raises(UnavailableError, match="zone 'ash' has no model yet: it is gathering"):
                await fetch_model(channel, "ash", "best", timeout=10)
            await edge.healthy()
            with pytest.raises(UnavailableError, match="zone 'ash' has no model yet"):
                await fetch_model(channel, "ash", "last", timeout=10)
            with pytest.raises(InputError, match="zone 'birch' is not here: this is the edge of 'ash'"):
                await fetch_model(channel, "birch", "best", timeout=10)
            for request, said in (
                (edge_pb2.FetchModelRequest(zone="ash"), "kind = 0: choose MODEL_KIND_BEST or MODEL_KIND_LAST"),
                (edge_pb2.FetchModelRequest(zone="ash", kind=7), "kind = 7"),  # type: ignore[arg-type]
                (edge_pb2.FetchModelRequest(zone="x" * 3_000_000), "is not here"),
                (b"\xff" * 9, "9 bytes to /sgfusion.v1.EdgeService/FetchModel are not its message"),
            ):
                raw = request if isinstance(request, bytes) else request.SerializeToString()
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await BY_NAME["FetchModel"].call(channel, raw)
                assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                assert said in str(error.value.details())
            assert edge.refusals == {"InputError": 4, "ProtocolError": 1, "UnavailableError": 2}
            edge.zone.last = 3, THETA
            round, fingerprint, weights = await fetch_model(channel, "ash", "last", timeout=10)
            assert (round, fingerprint, weights.tolist()) == (3, MODEL.fingerprint, THETA.tolist())

    run_async(work())


def test_every_rpc_has_its_tests_of_malformed_input() -> None:
    """Those of the cloud are in tests/cloud/test_malformed.py, which counts its own; that of every server is in
    tests/sgfusion/wire/test_server_rpc.py.
    """
    here = {"/sgfusion.v1.EdgeService/Attend", "/sgfusion.v1.EdgeService/FetchModel", DIRECTION}
    assert here == {path for path in ALLOWED if "CloudService" not in path and "ServerService" not in path}
