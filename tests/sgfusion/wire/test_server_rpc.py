"""What every server says of itself: its version and its clock, to whoever may speak to servers."""

from typing import Any

import grpc
import pytest

from sgfusion.errors import InputError, ProtocolError, SGFusionError
from sgfusion.proto.v1 import server_pb2
from sgfusion.wire.identity import Identity
from sgfusion.wire.server_rpc import UNTOLD, Description, add_description, describe
from sgfusion.wire.status import Refusals, from_rpc_error
from sgfusion.wire.version import version
from tests.cluster.keys import CLOUD, OPERATOR, dialled, run_async, serving
from tests.cluster.rpcs import BY_NAME, register
from tests.edge.zones import keys_of

ASH, DEVICE = Identity("edge", "ash"), Identity("device", "u1")
DESCRIBE = BY_NAME["Describe"]


@pytest.mark.parametrize("server", [CLOUD, ASH])
@pytest.mark.parametrize("me", [DEVICE, Identity("edge", "birch"), OPERATOR])
def test_a_server_tells_its_version_and_its_clock(server: Identity, me: Identity) -> None:
    async def scene() -> Description:
        async with (
            serving(lambda serves: add_description(serves, lambda: 1234.5), me=server, keys=keys_of(server)) as address,
            dialled(address, me=me, keys=keys_of(me), server=server) as channel,
        ):
            return await describe(channel, timeout=10)

    assert run_async(scene()) == Description(version(), 1234.5)


def test_garbage_is_named_and_counted() -> None:
    async def scene() -> tuple[SGFusionError, dict[str, int]]:
        refusals = Refusals()
        async with (
            serving(add_description, keys=keys_of(CLOUD), refusals=refusals) as address,
            dialled(address, me=DEVICE, keys=keys_of(DEVICE)) as channel,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await DESCRIBE.call(channel, b"\xff" * 9)
        return from_rpc_error(error.value), refusals.counts()

    error, counts = run_async(scene())
    assert isinstance(error, ProtocolError)
    assert f"9 bytes to {DESCRIBE.path} are not its message" in str(error)
    assert counts == {"ProtocolError": 1}


def described(says: server_pb2.DescribeResponse | bytes | None) -> Description:
    """What a caller makes of a server's words; None is one of an earlier version, which has no such call."""

    async def answer(_request: bytes, _context: Any) -> bytes:
        return says if isinstance(says, bytes) else says.SerializeToString()  # type: ignore[union-attr]

    async def scene() -> Description:
        async with (
            serving(lambda server: register(server, {} if says is None else {DESCRIBE.path: answer})) as address,
            dialled(address, me=OPERATOR) as channel,
        ):
            return await describe(channel, timeout=10)

    return run_async(scene())


def test_a_server_of_an_earlier_version_tells_nothing() -> None:
    assert described(None) == UNTOLD
    assert described(b"") == UNTOLD, "nor does one that leaves all out"


def test_what_it_says_moves_no_cursor() -> None:
    assert described(server_pb2.DescribeResponse(version="0.2\n", time=1)) == Description("0.2\\n", 1)


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        (b"\xff" * 9, ProtocolError),
        (server_pb2.DescribeResponse(version="v" * 201, time=1), InputError),
        (server_pb2.DescribeResponse(version="0.2", time=float("nan")), InputError),
        (server_pb2.DescribeResponse(version="0.2", time=float("inf")), InputError),
    ],
)
def test_what_makes_no_sense_is_refused(says: server_pb2.DescribeResponse | bytes, kind: type[SGFusionError]) -> None:
    with pytest.raises(kind):
        described(says)
