"""`ServerService`: what every server says of itself, its software and its clock (`server.proto`)."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc
import grpc.aio

from sgfusion.errors import InputError, ProtocolError
from sgfusion.proto.v1 import server_pb2, server_pb2_grpc
from sgfusion.wire.identity import Context
from sgfusion.wire.status import from_rpc_error
from sgfusion.wire.version import version
from sgfusion.wire.words import LONGEST_ID, heard_name


@dataclass(frozen=True)
class Description:
    """A server, by its own words."""

    version: str = ""
    time: float | None = None
    """Seconds since 1970."""


UNTOLD = Description()
"""What a server of an earlier version says, which does not know the call: nothing."""


class _Servicer(server_pb2_grpc.ServerServiceServicer):
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    async def Describe(  # noqa: N802
        self, _request: server_pb2.DescribeRequest, _context: Context
    ) -> server_pb2.DescribeResponse:
        return server_pb2.DescribeResponse(version=version(), time=self._clock())


def add_description(server: grpc.aio.Server, clock: Callable[[], float] = time.time) -> None:
    """Have the server say what it is; `clock` is that of its host."""
    server_pb2_grpc.add_ServerServiceServicer_to_server(_Servicer(clock), server)


async def describe(channel: grpc.aio.Channel, *, timeout: float) -> Description:
    """What the server at the other end says of itself."""
    try:
        response = await server_pb2_grpc.ServerServiceStub(channel).Describe(
            server_pb2.DescribeRequest(), timeout=timeout
        )
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return UNTOLD
        raise from_rpc_error(error) from error
    if response is None:  # what gRPC makes of bytes that it cannot parse
        raise ProtocolError("the server sent bytes that are no message")
    if len(response.version) > LONGEST_ID or not math.isfinite(response.time):
        raise InputError("the server says of itself what makes no sense: is it one of ours?")
    return Description(heard_name(response.version), response.time or None)
