"""An edge under all sorts of input at once: it goes on, serves its other devices, and keeps nothing (Faults)."""

import asyncio
import gc
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sgfusion.proto.v1 import edge_pb2, peer_pb2
from sgfusion.wire.attending import Ask
from sgfusion.wire.codec import Assembly
from sgfusion.wire.identity import Identity
from tests.cluster.keys import run_async
from tests.edge.zones import CONTRACT, HISTOGRAM, MODEL, PEER, THETA, Edge, an_edge, answer, chunks, hello, until

PATIENCE = 120.0


async def serves(edge: Edge, number: int) -> None:
    """The healthy device a0 answers a direction that it was not asked before."""
    theta = THETA + np.float32(number)
    for device in [name for name in edge.zone.devices.members if name != "a0"]:
        del edge.zone.devices.members[device]  # who has gone would be waited for
    edge.enter("a0")
    assert (await edge.direction(theta)).vector.tolist() == (2 * theta).tolist()


# Below gRPC


def garbage() -> list[bytes]:
    return [
        b"",
        b"GET / HTTP/1.1\r\nHost: ash\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(1000),
        b"\x16\x03\x01\xff\xff" + b"\x01" * 4000,  # a TLS record that never ends
        bytes(range(256)) * 400,
    ]


def test_garbage_and_half_handshakes_on_the_socket_do_not_disturb_a_stream(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            device = await edge.healthy()
            host, port = edge.address.rsplit(":", 1)
            for number, raw in enumerate(garbage() * 4):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(raw)
                with suppress(OSError, TimeoutError):
                    await writer.drain()
                    async with asyncio.timeout(0.2):
                        await reader.read()
                await serves(edge, number)
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
            held = [socket.create_connection((host, int(port))) for _ in range(50)]  # say nothing at all
            half = [_half_handshake(host, int(port)) for _ in range(20)]
            await serves(edge, 1000)
            for connection in (*held, *half):
                connection.close()
            await serves(edge, 1001)
            assert not device.task.done()
            assert edge.zone.report().attendance.attending == ("a0",)
            assert edge.refusals == {}  # none of them got as far as a call

    run_async(work(), PATIENCE)


def _half_handshake(host: str, port: int) -> socket.socket:
    """A TLS client that says hello and then no more."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    connection = socket.create_connection((host, port))
    connection.sendall(outgoing.read())
    return connection


# Sequences of messages, changed at random


def good_stream(ask: str) -> list[edge_pb2.AttendRequest]:
    return [hello(), *(answer(ask, vector=chunk, gradients=1, loss=0.5) for chunk in chunks())]


def good_request() -> list[peer_pb2.DirectionRequest]:
    return [
        peer_pb2.DirectionRequest(zone="birch", asked="ash", round=1, contract=CONTRACT, weights=chunk)
        for chunk in chunks()
    ]


FLOATS = st.sampled_from([0.0, -1.0, 1e300, float("nan"), float("inf")])


def leaves(message: Message, data: st.DataObject) -> None:
    """Change one field of the message, or of one inside of it."""
    field: Any = data.draw(st.sampled_from(tuple(message.DESCRIPTOR.fields)))
    if field.is_repeated:
        message.ClearField(field.name)
        if field.message_type is None:
            getattr(message, field.name).extend(data.draw(st.lists(FLOATS, max_size=6)))
    elif field.message_type is not None:
        if data.draw(st.booleans()):
            leaves(getattr(message, field.name), data)
        else:
            getattr(message, field.name).SetInParent()
    else:
        values: dict[int, st.SearchStrategy[Any]] = {
            field.CPPTYPE_STRING: st.binary(max_size=40)
            if field.type == field.TYPE_BYTES
            else st.text(max_size=40) | st.just("x" * 5000),
            field.CPPTYPE_DOUBLE: FLOATS,
            field.CPPTYPE_BOOL: st.booleans(),
            field.CPPTYPE_UINT32: st.integers(0, (1 << 32) - 1),
            field.CPPTYPE_UINT64: st.integers(0, (1 << 64) - 1) | st.integers(0, 8),
            field.CPPTYPE_ENUM: st.integers(0, 5),
        }
        setattr(message, field.name, data.draw(values[field.cpp_type]))


def mutated(messages: list[Any], data: st.DataObject) -> list[bytes]:
    """Messages left out, repeated, swapped, changed, or with other bytes."""
    for _ in range(data.draw(st.integers(1, 3))):
        if not messages:
            break
        at = data.draw(st.integers(0, len(messages) - 1))
        how = data.draw(st.sampled_from(["drop", "repeat", "swap", "field", "field", "field", "bytes"]))
        if how == "drop":
            del messages[at]
        elif how == "repeat":
            messages.insert(at, messages[at])
        elif how == "swap":
            messages[at], messages[0] = messages[0], messages[at]
        elif how == "field" and not isinstance(messages[at], bytes):
            changed = type(messages[at])()
            changed.CopyFrom(messages[at])
            leaves(changed, data)
            messages[at] = changed
        else:
            messages[at] = data.draw(st.binary(max_size=60))
    return [one if isinstance(one, bytes) else one.SerializeToString() for one in messages]


async def spoken(channel: grpc.aio.Channel, path: str, messages: list[bytes], ask: str = "") -> None:
    """Say it all, after the first message once the ask is here, and hang up; the answer is never INTERNAL."""
    call: Any = channel.stream_stream(path)()
    asked = asyncio.Event()

    async def listen() -> None:
        try:
            while (message := await call.read()) is not grpc.aio.EOF:
                if ask.encode() in message:
                    asked.set()
        finally:
            asked.set()

    listening = asyncio.create_task(listen())
    with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        for number, message in enumerate(messages):
            await call.write(message)
            if ask and number == 0:
                async with asyncio.timeout(5):
                    await asked.wait()
        await call.done_writing()
    try:
        async with asyncio.timeout(5):
            await listening
    except grpc.aio.AioRpcError as error:
        ours = error.details() != "Internal error from Core"  # our own write, after the edge had ended the stream
        assert not ours or error.code() not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN), error  # noqa: PT017
        assert error.details()  # noqa: PT017
    call.cancel()


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_sequence_of_messages_ends_an_edge(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    async def work() -> None:
        async with an_edge(tmp_path_factory.mktemp("any")) as edge:
            await edge.healthy()
            edge.enter("a0")
            devices = edge.zone.devices
            for number in range(data.draw(st.integers(1, 4))):
                if data.draw(st.booleans()):
                    devices.remember({"u1": HISTOGRAM}, {"u1": 0.0})
                    theta = THETA - np.float32(number)
                    question = asyncio.create_task(devices.direction(theta, "ash"))
                    ask = Ask("direction", theta, MODEL.fingerprint).id
                    channel = await edge.channel(Identity("device", "u1"))
                    messages = mutated(good_stream(ask), data)
                    await spoken(channel, "/sgfusion.v1.EdgeService/Attend", messages, ask)
                    await until(lambda: devices.members["u1"].link is None)
                    question.cancel()
                    await asyncio.gather(question, return_exceptions=True)
                else:
                    channel = await edge.channel(PEER)
                    await spoken(channel, "/sgfusion.v1.PeerService/Direction", mutated(good_request(), data))
                assert "internal" not in edge.refusals
                await until(lambda: not devices._jobs)
                await serves(edge, number)

    run_async(work(), PATIENCE)


# What is kept


def _assemblies() -> int:
    gc.collect()
    return sum(type(one) is Assembly for one in gc.get_objects())  # isinstance would ask each one for its class


def test_after_two_hundred_bad_streams_nothing_is_kept(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            await edge.healthy()
            warm = await edge.raw()
            await warm.refused(answer("x"))
            await refuse_a_direction(edge)
            await serves(edge, 0)
            devices = edge.zone.devices
            tasks, assemblies = len(asyncio.all_tasks()), _assemblies()
            for number in range(200):
                kind = number % 4
                if kind == 0:
                    await (await edge.raw()).refused(answer("x"))
                elif kind == 1:
                    await refuse_a_direction(edge)
                else:
                    # In the middle of an answer to a real question: refused, or torn off.
                    bad = await (await edge.raw()).welcome()
                    edge.enter("a0", "u1")
                    question = asyncio.create_task(edge.direction(THETA + np.float32(number)))
                    ask = (await bad.asked()).ask
                    first = answer(ask, vector=chunks()[0], gradients=1)
                    if kind == 2:
                        await bad.refused(first, first)
                    else:
                        await bad.say(first)
                        bad.call.cancel()
                    await until(lambda: devices.members["u1"].link is None)
                    question.cancel()
                    await until(lambda: not devices._jobs)
                    del devices.members["u1"], question
            await serves(edge, 999)
            await until(lambda: len(asyncio.all_tasks()) <= tasks)
            await until(lambda: _assemblies() <= assemblies)
            assert [name for name, member in devices.members.items() if member.link] == ["a0"]
            link = devices.members["a0"].link
            assert link is not None
            await until(lambda: not link._owed)
            assert not devices._jobs
            assert not devices._working
            assert not len(devices._turns)
            assert edge.refusals == {"ProtocolError": 1 + 50, "TensorError": 50 + 50, "UnavailableError": 1}

    run_async(work(), PATIENCE)


async def refuse_a_direction(edge: Edge) -> None:
    call: Any = (await edge.channel(PEER)).stream_stream("/sgfusion.v1.PeerService/Direction")()
    good = good_request()
    with pytest.raises(grpc.aio.AioRpcError):  # noqa: PT012
        await call.write(good[0].SerializeToString())
        await call.write(good[0].SerializeToString())
        await call.read()
