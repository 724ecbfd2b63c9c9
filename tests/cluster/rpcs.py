"""Every RPC of the compiled protos, with a handler that greets, and a way to call it: for tests of who may."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from sgfusion.proto.v1 import cloud_pb2, edge_pb2, peer_pb2, server_pb2

FILES = (cloud_pb2, edge_pb2, peer_pb2, server_pb2)


@dataclass(frozen=True)
class Rpc:
    """One RPC, by its full path."""

    path: str
    streams_in: bool
    streams_out: bool

    async def call(self, channel: grpc.aio.Channel, request: bytes = b"", timeout: float = 10) -> list[bytes]:
        """Send one message; all that comes back."""
        kind = f"{'stream' if self.streams_in else 'unary'}_{'stream' if self.streams_out else 'unary'}"
        call = getattr(channel, kind)(self.path)(_once(request) if self.streams_in else request, timeout=timeout)
        return [response async for response in call] if self.streams_out else [await call]


async def _once(request: bytes) -> AsyncIterator[bytes]:
    yield request


RPCS = tuple(
    Rpc(f"/{service.full_name}/{method.name}", method.client_streaming, method.server_streaming)
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
)
BY_NAME = {rpc.path.rpartition("/")[2]: rpc for rpc in RPCS}


def register_greeters(server: grpc.aio.Server) -> None:
    """Have every RPC answer b"welcome" to all who get as far."""

    async def answer(_request: Any, _context: Any) -> bytes:
        return b"welcome"

    async def pour(request: Any, _context: Any) -> AsyncIterator[bytes]:
        if not isinstance(request, bytes):
            async for _ in request:
                pass
        yield b"welcome"

    register(server, {rpc.path: pour if rpc.streams_out else answer for rpc in RPCS})


def register(server: grpc.aio.Server, behaviours: dict[str, Any], **codecs: Any) -> None:
    """Add handlers by path; without codecs they speak bytes."""
    kinds = {(rpc.path): (rpc.streams_in, rpc.streams_out) for rpc in RPCS}
    makers = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    for path, behaviour in behaviours.items():
        _, service, name = path.split("/")
        make: Any = makers[kinds.get(path, (False, False))]
        handlers = {name: make(behaviour, **codecs)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
