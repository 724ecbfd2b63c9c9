"""What a device may send wrongly on Attend: a status that names it, a count, and its neighbours go on (Faults)."""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest

from sgfusion.errors import (
    ContractError,
    DeadlineError,
    HistogramError,
    IdentityError,
    InputError,
    ProtocolError,
    SGFusionError,
    TensorError,
    UnknownAskError,
)
from sgfusion.proto.v1 import cloud_pb2, edge_pb2
from sgfusion.proto.v1.tensor_pb2 import DTYPE_UNSPECIFIED, TensorChunk
from sgfusion.wire import edge_rpc
from sgfusion.wire.attending import Ask
from sgfusion.wire.identity import Identity
from tests.cluster.keys import run_async
from tests.edge.zones import CONTRACT, MODEL, THETA, Edge, Raw, an_edge, answer, chunks, hello, keys_of, until

HUGE = 100_001


def histogram(*masses: float) -> dict[str, Any]:
    return {"histogram": masses}


@pytest.mark.parametrize(
    ("first", "kind", "said"),
    [
        (answer("direction-00"), ProtocolError, "the first message of a device is not a Hello"),
        (edge_pb2.AttendRequest(), ProtocolError, "the first message of a device is not a Hello"),
        (b"\xff" * 40, ProtocolError, "40 bytes to /sgfusion.v1.EdgeService/Attend are not its message"),
        (hello(zone="birch"), InputError, "zone 'birch' is not attended here: this is the edge of 'ash'"),
        (hello(zone=""), InputError, "hello.zone has 0 characters"),
        (hello(zone="x" * 3_000_000), InputError, "hello.zone has 3000000 characters: give 1 to 200"),
        (hello("u2"), IdentityError, "device u1 may not speak for device u2"),
        (hello("u" * 201), InputError, "hello.device has 201 characters"),
        (hello(contract=""), InputError, "hello.contract has 0 characters"),
        (hello(contract="c" * 64), ContractError, f"has contract cccccccccccccccc…, its zone's is {CONTRACT[:16]}…"),
        (hello(model={"fingerprint": "linear/7"}), ContractError, "run the same version of the task"),
        (hello(model={"fingerprint": ""}), InputError, "model.fingerprint has 0 characters"),
        (hello(model={"fingerprint": "f" * 201}), InputError, "model.fingerprint has 201 characters"),
        (hello(model={"length": 0}), InputError, "model.length = 0: a model has 1 to 1073741824 weights"),
        (hello(model={"length": 1 << 40}), InputError, "model.length = 1099511627776"),
        (hello(model={"length": 7}), ContractError, "the zone's devices have"),
        (hello(model={"bins": 0}), InputError, "model.bins = 0"),
        (hello(model={"bins": HUGE}), InputError, "model.bins = 100001"),
        (hello(model={"edges": [1.0, 2.0]}), InputError, "model.edges has 2 numbers: give bins + 1 = 5, ascending"),
        (hello(model={"edges": [1, 2, 2, 3, 4]}), InputError, "model.edges has 5 numbers: give bins + 1 = 5"),
        (hello(model={"edges": [1, 2, 3, 4, math.inf]}), InputError, "model.edges has 5 numbers"),
        (hello(epsilon=math.nan), InputError, "hello.epsilon = nan: give the ε that was spent"),
        (hello(epsilon=-1.0), InputError, "hello.epsilon = -1.0: give the ε that was spent"),
        (hello(version="v" * 201), InputError, "hello.version has 201 characters: give 200 at most"),
        (hello(model={"bins": 3}), HistogramError, "hello.histogram has 4 bins, hello.model says 3"),
        (hello(model={"bins": 1}, **histogram(1.0)), ContractError, "bins=1"),
        (hello(model={"metric": None}), InputError, "model.metric.name = ''"),
        (hello(model={"metric": cloud_pb2.Metric(name="m" * 201)}), InputError, "model.metric.name = 'mmm"),
        (hello(**histogram()), HistogramError, "hello.histogram has 0 bins"),
        (hello(**histogram(0.5, 0.5)), HistogramError, "hello.histogram has 2 bins"),
        (hello(**histogram(math.nan, 0.5, 0.5, 0.0)), HistogramError, "device 'u1': bin 0 holds nan"),
        (hello(**histogram(0.5, math.inf, 0.5, 0.0)), HistogramError, "device 'u1': bin 1 holds inf"),
        (hello(**histogram(1.5, -0.5, 0.0, 0.0)), HistogramError, "device 'u1': bin 1 holds a negative number,"),
        (hello(**histogram(0.5, 0.5, 0.5, 0.5)), HistogramError, "does not sum to 1: scale it"),
        (hello(**histogram(0.0, 0.0, 0.0, 0.0)), HistogramError, "does not sum to 1: scale it"),
    ],
)
def test_hellos(tmp_path: Path, first: edge_pb2.AttendRequest | bytes, kind: type[SGFusionError], said: str) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            await edge.healthy()
            error = await (await edge.raw()).refused(first)
            assert type(error) is kind
            assert said in str(error)
            assert len(str(error)) <= 1000
            assert edge.refusals == {kind.__name__: 1}
            assert set(edge.zone.devices.members) == {"a0"}
            await still_serves(edge)
            await (await edge.raw()).welcome()  # and the same device, by the book

    run_async(work())


async def still_serves(edge: Edge) -> None:
    """The device beside it answers a question."""
    edge.enter("a0")
    assert (await edge.direction()).vector.tolist() == (2 * THETA).tolist()


def test_silence_instead_of_a_hello_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_rpc, "HELLO_WITHIN", 0.1)

    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            error = await (await edge.raw()).refused()
            assert isinstance(error, DeadlineError)
            assert "a device's Hello has not come within 0.1 s" in str(error)
            assert edge.refusals == {"DeadlineError": 1}
            quiet = await edge.raw()  # ended by the device before it said anything: nothing is wrong
            await quiet.call.done_writing()
            assert await quiet.call.read() is grpc.aio.EOF
            assert edge.refusals == {"DeadlineError": 1}

    run_async(work())


def chunk(number: int = 0, **wrong: Any) -> TensorChunk:
    found = chunks()[number]
    for name, value in wrong.items():
        setattr(found, name, value)
    return found


def numbers(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


def vectors(*parts: TensorChunk, loss: float = 0.5) -> Callable[[str], list[edge_pb2.AttendRequest]]:
    return lambda ask: [answer(ask, vector=part, gradients=1, loss=loss) for part in parts]


def other(**content: Any) -> Callable[[str], list[edge_pb2.AttendRequest]]:
    return lambda ask: [answer(ask, **content)]


EVALUATED = edge_pb2.Evaluated(validation=cloud_pb2.Score(total=1, count=1), test=cloud_pb2.Score(total=1, count=1))
BROKEN = [
    (lambda _: [hello()], ProtocolError, "a message with hello: after its Hello a device sends answers only"),
    (lambda _: [edge_pb2.AttendRequest()], ProtocolError, "a message with nothing"),
    (lambda _: [b"\x12\xff"], ProtocolError, "2 bytes to /sgfusion.v1.EdgeService/Attend are not its message"),
    (lambda _: [answer("")], UnknownAskError, "answer to ''"),
    (lambda _: [answer("direction-00", vector=chunk())], UnknownAskError, "'direction-00', which device 'u1' was not"),
    (lambda _: [answer("x" * 3_000_000)], UnknownAskError, f"answer to '{'x' * 200}', which device 'u1' was not asked"),
    (other(), ProtocolError, "holds nothing: it was asked for 'direction'"),
    (other(evaluated=EVALUATED), ProtocolError, "holds evaluated: it was asked for 'direction'"),
    (vectors(chunk(fingerprint="linear/7")), TensorError, "fingerprint is 'linear/7', expected 'linear/6'"),
    (vectors(chunk(fingerprint="")), TensorError, "fingerprint is ''"),
    (vectors(chunk(fingerprint="f" * 3_000_000)), TensorError, "fingerprint is 'fff"),
    (vectors(chunk(dtype=DTYPE_UNSPECIFIED)), TensorError, "dtype is DTYPE_UNSPECIFIED"),
    (vectors(chunk(dtype=9)), TensorError, "dtype is unknown (9)"),
    (vectors(chunk(length=7)), TensorError, "length is 7, expected 6"),
    (vectors(chunk(length=1 << 63)), TensorError, "length is 9223372036854775808"),
    (vectors(chunk(1)), TensorError, "offset is 2, expected 0: a chunk is missing"),
    (vectors(chunk(offset=(1 << 64) - 1)), TensorError, "offset is 18446744073709551615"),
    (vectors(chunk(), chunk()), TensorError, "offset is 0, expected 2: it is repeated"),
    (vectors(chunk(), chunk(2)), TensorError, "offset is 4, expected 2"),
    (vectors(chunk(data=b"")), TensorError, "chunk holds 0 bytes"),
    (vectors(chunk(data=b"123")), TensorError, "chunk holds 3 bytes"),
    (vectors(chunk(data=bytes((1 << 20) + 4))), TensorError, "chunk holds 1048580 bytes"),
    (vectors(chunk(data=numbers(*range(7)))), TensorError, "chunk ends at element 7, expected at most 6"),
    (vectors(*chunks(), chunk(offset=6)), UnknownAskError, "was not asked"),  # after its end nothing is asked
    (vectors(chunk(data=numbers(1, math.nan))), TensorError, "element 1 is nan"),
    (vectors(chunk(0), chunk(1, data=numbers(-math.inf, 1))), TensorError, "element 2 is -inf"),
    (vectors(chunk(0), chunk(1, checksum=1)), TensorError, "checksum is 0x00000001"),
    (vectors(*(chunk(i, checksum=1) for i in range(3))), TensorError, "checksum of the assembled tensor"),
    (vectors(*chunks(), loss=math.nan), InputError, "loss of device 'u1' is nan"),
    (vectors(*chunks(), loss=-math.inf), InputError, "loss of device 'u1' is -inf"),
]


@pytest.mark.parametrize(("broken", "kind", "said"), BROKEN)
def test_answers(tmp_path: Path, broken: Callable[[str], list[Any]], kind: type[SGFusionError], said: str) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            beside = await edge.healthy()
            bad = await (await edge.raw()).welcome()
            edge.enter("a0", "u1")
            question = asyncio.create_task(edge.direction())
            ask = await bad.asked()
            error = await bad.refused(*broken(ask.ask))
            assert type(error) is kind
            assert said in str(error)
            assert edge.refusals == {kind.__name__: 1}
            if said != "was not asked":
                # It comes back, is asked for what it owes, and answers as it should.
                again = await (await edge.raw()).welcome()
                assert (await again.asked()).ask == ask.ask
                await again.say(*vectors(*chunks(4 * THETA))(ask.ask))
            expected = 1.5 * THETA if said == "was not asked" else 3 * THETA
            assert (await question).vector.tolist() == expected.tolist()
            assert beside.asked == [ask.ask]  # once, on the stream that went on
            assert edge.zone.devices._jobs == {}

    run_async(work())


@pytest.mark.parametrize(
    ("broken", "kind", "said"),
    [
        (other(vector=chunk()), ProtocolError, "holds vector: it was asked for 'evaluation'"),
        (
            other(evaluated=edge_pb2.Evaluated(validation=cloud_pb2.Score(total=-1.0, count=1))),
            InputError,
            "score of device 'u1' is -1.0: its root is asked for",
        ),
        (
            other(evaluated=edge_pb2.Evaluated(test=cloud_pb2.Score(total=1.0, count=(1 << 64) - 1))),
            InputError,
            "is of 18446744073709551615 labels",
        ),
    ],
)
def test_evaluations(tmp_path: Path, broken: Callable[[str], list[Any]], kind: type[SGFusionError], said: str) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            bad = await (await edge.raw()).welcome()
            question = asyncio.create_task(edge.zone.devices.evaluate(THETA))
            error = await bad.refused(*broken((await bad.asked()).ask))
            assert type(error) is kind
            assert said in str(error)
            again = await (await edge.raw()).welcome()
            await again.say(*other(evaluated=EVALUATED)((await again.asked()).ask))
            assert (await question).validation.count == 1

    run_async(work())


def test_a_score_that_is_no_number_is_taken(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            device = await (await edge.raw()).welcome()
            question = asyncio.create_task(edge.zone.devices.evaluate(THETA))
            score = cloud_pb2.Score(total=math.nan, count=3)
            await device.say(*other(evaluated=edge_pb2.Evaluated(validation=score))((await device.asked()).ask))
            assert math.isnan((await question).validation.total)

    run_async(work())


def test_a_flood_after_the_end_of_a_tensor_ends_the_stream_and_holds_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            await edge.healthy()
            bad = await (await edge.raw()).welcome()
            edge.enter("a0", "u1")
            question = asyncio.create_task(edge.direction())
            ask = (await bad.asked()).ask
            flood = vectors(*chunks(), *(chunk(data=bytes(1 << 20), offset=6 + i) for i in range(50)))(ask)
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the edge has ended the stream
                await bad.say(*flood)
            await until(lambda: edge.refusals == {"UnknownAskError": 1})
            assert (await question).devices == 2  # what it said before was good
            await until(lambda: edge.zone.devices.members["u1"].link is None)
            await until(lambda: edge.zone.report().attendance.missing == {"u1": "its stream has ended"})

    run_async(work())


def test_a_message_above_the_limit_ends_its_own_stream(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            await edge.healthy()
            keys = keys_of(Identity("device", "u1"))
            name = Identity("edge", "ash").server_name
            async with grpc.aio.secure_channel(  # without our own limit on what is sent
                edge.address,
                grpc.ssl_channel_credentials(keys.ca, keys.key, keys.certificate),
                [("grpc.ssl_target_name_override", name)],
            ) as channel:
                bad = await Raw(channel).welcome()
                answering = asyncio.create_task(bad.call.read())
                await bad.call.write(bytes(5 << 20))
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await answering
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            await until(lambda: edge.zone.devices.members["u1"].link is None)
            del edge.zone.devices.members["u1"]
            await still_serves(edge)

    run_async(work())


def test_a_device_cannot_answer_what_another_was_asked(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            honest, thief = await (await edge.raw("u1")).welcome("u1"), await edge.raw("u2")
            edge.enter("u1")
            question = asyncio.create_task(edge.direction())
            ask = await honest.asked()
            await thief.welcome("u2")  # later than the question, so it is not one of those asked
            # The first chunk alone: after a refusal a further write is an error of gRPC's own, which hides the edge's.
            error = await thief.refused(vectors(*chunks(100 * THETA))(ask.ask)[0])
            assert isinstance(error, UnknownAskError)
            assert f"answer to '{ask.ask}', which device 'u2' was not asked" in str(error)
            await honest.say(*vectors(*chunks(2 * THETA))(ask.ask))
            assert (await question).vector.tolist() == (2 * THETA).tolist()

    run_async(work())


def test_a_long_reason_is_cut_to_one_line(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path, quorum=0.5) as edge:
            await edge.healthy()
            device = await (await edge.raw()).welcome()
            question = asyncio.create_task(edge.zone.devices.direction(THETA, "ash"))
            failure = edge_pb2.Failure(reason="no\nmemory " * 300_000)
            await device.say(*other(failure=failure)((await device.asked()).ask))
            (reason,) = (await question).left_out.values()
            assert reason == ("no memory " * 30).strip()
            assert edge.refusals == {}

    run_async(work())


def test_a_stream_that_ends_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            device = await (await edge.raw()).welcome()
            edge.enter("u1")
            question = asyncio.create_task(edge.direction())
            ask = (await device.asked()).ask
            await device.say(*vectors(chunk())(ask))
            await device.call.done_writing()
            error = await device.refused()
            assert isinstance(error, ProtocolError)
            assert "device 'u1' ended its stream in the middle of an answer" in str(error)
            # The same, torn off: nobody is there to be told.
            torn = await (await edge.raw()).welcome()
            await torn.say(*vectors(chunk())((await torn.asked()).ask))
            torn.call.cancel()
            await until(lambda: edge.zone.devices.members["u1"].link is None)
            whole = await (await edge.raw()).welcome()
            await whole.say(*vectors(*chunks())((await whole.asked()).ask))
            assert (await question).devices == 1
            assert edge.refusals == {"ProtocolError": 1}

    run_async(work())


@pytest.mark.parametrize("begun", [0, 1, 2])
def test_an_answer_after_the_question_was_withdrawn_is_dropped(tmp_path: Path, begun: int) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            device = await (await edge.raw()).welcome()
            edge.enter("u1")
            asking = asyncio.create_task(edge.direction())
            ask = (await device.asked()).ask
            parts = vectors(*chunks(7 * THETA))(ask)
            await device.say(*parts[:begun])
            link = edge.zone.devices.members["u1"].link
            assert link is not None
            await until(lambda: (link._owed[ask].assembly is not None) == (begun > 0))
            asking.cancel()
            await until(lambda: not edge.zone.devices._jobs)
            assert link.behind == 1
            assert link._owed[ask].assembly is None  # its memory is free
            if begun == 2:  # asked again meanwhile: the answer whose beginning is lost does not count
                asking = asyncio.create_task(edge.direction())
                assert (await device.asked()).ask == ask
                await device.say(*parts[begun:], *vectors(*chunks(3 * THETA))(ask))
                assert (await asking).vector.tolist() == (3 * THETA).tolist()
            elif begun == 0:  # asked again meanwhile: the answer that is to come will do, and it is not asked twice
                asking = asyncio.create_task(edge.direction())
                await until(lambda: link.behind == 0)
                await device.say(*parts)
                assert (await asking).vector.tolist() == (7 * THETA).tolist()
            else:
                await device.say(*parts[begun:])
            await until(lambda: not link._owed)
            assert edge.refusals == {}
            next_one = asyncio.create_task(edge.direction(2 * THETA))
            await device.say(*vectors(*chunks())((await device.asked()).ask))
            assert (await next_one).devices == 1

    run_async(work())


def test_a_device_that_attends_anew_replaces_its_earlier_stream(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            first = await (await edge.raw()).welcome()
            edge.enter("u1")
            question = asyncio.create_task(edge.direction())
            ask = (await first.asked()).ask
            await first.say(*vectors(chunk())(ask))
            second = await (await edge.raw()).welcome()
            assert (await second.asked()).ask == ask
            error = await first.refused()
            assert "device 'u1' attends anew: this stream is replaced" in str(error)
            await second.say(*vectors(*chunks(5 * THETA))(ask))
            assert (await question).vector.tolist() == (5 * THETA).tolist()
            assert edge.zone.report().attendance.attending == ("u1",)
            assert edge.refusals == {"UnavailableError": 1}

    run_async(work())


def test_a_device_that_reads_nothing_holds_no_questions(tmp_path: Path) -> None:
    """Its connection lives, so gRPC does not end it; but what nobody waits for must not wait for it."""

    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            deaf = await edge.raw()
            await deaf.say(hello())
            await until(lambda: "u1" in edge.zone.devices.members)
            link = edge.zone.devices.members["u1"].link
            assert link is not None
            weights = np.zeros(MODEL.length, np.float32)
            for number in range(300):
                weights[0] = number
                ask = Ask("direction", weights.copy(), MODEL.fingerprint)
                link.ask(ask)
                await asyncio.sleep(0)
                link.withdraw(ask)
                link.tell(edges={"birch": f"127.0.0.1:{number + 1}"})
            await asyncio.sleep(0.1)
            assert len(link._unsent) + len(link._told) <= 1
            assert len(link._owed) <= edge_rpc.MOST_BEHIND
            # It is asked again once it has caught up.
            link.ask(Ask("direction", THETA, MODEL.fingerprint))
            ids = []
            while True:
                message = await deaf.call.read()
                if message.WhichOneof("message") == "ask":
                    ids.append(message.ask.ask)
                    if ids[-1] == Ask("direction", THETA, MODEL.fingerprint).id:
                        break
                    await deaf.say(*vectors(*chunks())(ids[-1]))
            assert edge.refusals == {}

    run_async(work())


def test_a_rawly_spoken_stream_is_a_good_one(tmp_path: Path) -> None:
    """So that no refusal of these tests is for another reason than the one given."""

    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            device: Raw = await (await edge.raw()).welcome()
            edge.enter("u1")
            question = asyncio.create_task(edge.direction())
            ask = await device.asked()
            assert ask.kind == edge_pb2.ASK_KIND_DIRECTION
            assert np.frombuffer(ask.weights.data, "<f4").tolist() == THETA.tolist()
            await device.say(*vectors(*chunks(3 * THETA))(ask.ask))
            found = await question
            assert (found.vector.tolist(), found.devices, found.gradients) == ((3 * THETA).tolist(), 1, 1)
            assert edge.refusals == {}

    run_async(work())
