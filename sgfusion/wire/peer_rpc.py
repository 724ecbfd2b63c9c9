"""`PeerService`: edges that ask each other for directions on their own weights (`peer.proto`, method 6)."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
import numpy as np
import numpy.typing as npt

from sgfusion.errors import InputError, ProtocolError, UnavailableError
from sgfusion.proto.v1 import peer_pb2, peer_pb2_grpc
from sgfusion.reports import Model
from sgfusion.wire.attending import LONGEST
from sgfusion.wire.codec import Assembly, to_chunks
from sgfusion.wire.identity import caller, require_edge_of
from sgfusion.wire.patience import PIECE_WITHIN, next_within, write_within
from sgfusion.wire.requests import checked_request
from sgfusion.wire.status import from_rpc_error

Vector = npt.NDArray[np.float32]
Context = grpc.aio.ServicerContext[Any, Any]

MOST_DEVICES = 1 << 20
MOST_GRADIENTS = 1 << 40
"""What a peer may claim: sums over all peers are still numbers on the wire."""


@dataclass(frozen=True, eq=False)
class ZoneDirection:
    """`∇_θ F_z` of a zone's devices: the mean of `devices` of them, who computed `gradients` gradients for it."""

    vector: Vector
    devices: int
    gradients: int


class PeerHandler(Protocol):
    """An edge, as other zones' edges see it."""

    @property
    def zone(self) -> str:
        """The zone that it is the edge of."""

    def model_for(self, contract: str) -> Model:
        """The model of the zone's devices; refuses the contract of another run, or any before it knows its own."""

    async def direction_for(
        self, zone: str, round: int, theta: Vector, seconds: float | None, request: str = ""
    ) -> ZoneDirection:
        """The direction on another zone's weights, who waits so long for it; `request` is for logs."""


MOST_OPEN = 4
"""Questions of one zone at a time: each holds a model's weights. A zone has one, or two if it tries again."""


class _Servicer(peer_pb2_grpc.PeerServiceServicer):
    def __init__(self, handler: PeerHandler) -> None:
        self._handler = handler
        self._open: Counter[str] = Counter()  # calls under way, by the certificate's zone

    async def Direction(  # type: ignore[override]  # noqa: N802 (its name in the proto; it writes and yields nothing)
        self, request_iterator: AsyncIterator[peer_pb2.DirectionRequest], context: Context
    ) -> None:
        who = caller(context).name
        if self._open[who] >= MOST_OPEN:
            raise UnavailableError(
                f"{MOST_OPEN} questions of zone {who!r} are open here: wait for an answer, or try again"
            )
        self._open[who] += 1
        try:
            await self._answer(request_iterator, context)
        finally:
            self._open[who] -= 1

    async def _answer(self, request_iterator: AsyncIterator[peer_pb2.DirectionRequest], context: Context) -> None:
        zone, round, contract, request, assembly = "", 0, "", "", None
        while (piece := await next_within(request_iterator, PIECE_WITHIN, "the next piece of the weights")) is not None:
            if assembly is None:
                zone, round, contract = piece.zone, piece.round, piece.contract
                require_edge_of(context, zone)
                request = checked_request(piece.request, zone)
                if piece.asked != self._handler.zone:
                    here = self._handler.zone
                    raise InputError(f"zone {piece.asked[:LONGEST]!r} is asked, and this is the edge of {here!r}")
                model = self._handler.model_for(contract)
                assembly = Assembly(fingerprint=model.fingerprint, length=model.length)
            header = zone, self._handler.zone, round, contract
            if (piece.zone, piece.asked, piece.round, piece.contract) != header:
                raise ProtocolError(
                    f"a piece of a request of {(zone, round)} says {(piece.zone[:LONGEST], piece.round)}, or another"
                    " contract or zone asked: all pieces of one request say the same"
                )
            assembly.add(piece.weights)
            if assembly.complete:
                break
        if assembly is None:
            raise ProtocolError("a request for a direction without weights: send them")
        seconds = context.time_remaining()
        answer = await self._handler.direction_for(zone, round, assembly.finish(), seconds, request)
        for chunk in to_chunks(answer.vector, model.fingerprint):
            response = peer_pb2.DirectionResponse(devices=answer.devices, gradients=answer.gradients, direction=chunk)
            await write_within(context, response)


def add_peer(server: grpc.aio.Server, handler: PeerHandler) -> None:
    """Serve other zones' edges."""
    peer_pb2_grpc.add_PeerServiceServicer_to_server(_Servicer(handler), server)


async def ask_peer(
    channel: grpc.aio.Channel,
    *,
    zone: str,
    asked: str,
    round: int,
    contract: str,
    theta: Vector,
    fingerprint: str,
    timeout: float,
    request: str = "",
) -> ZoneDirection:
    """The direction of zone `asked` on the weights of `zone`, within `timeout` seconds; `request` is for logs."""
    chunks = to_chunks(theta, fingerprint)  # its checks, here: an error inside of a stream would look like a cancel

    async def pieces() -> AsyncIterator[peer_pb2.DirectionRequest]:
        for chunk in chunks:
            yield peer_pb2.DirectionRequest(
                zone=zone, asked=asked, round=round, contract=contract, weights=chunk, request=request
            )

    assembly, devices, gradients = Assembly(fingerprint=fingerprint, length=len(theta)), 0, 0
    call = peer_pb2_grpc.PeerServiceStub(channel).Direction(pieces(), timeout=timeout)
    try:
        async for piece in call:
            if piece is None:  # what gRPC makes of bytes that it cannot parse
                raise ProtocolError(f"zone {asked!r} sent bytes that are no piece of a direction")
            devices, gradients = piece.devices, piece.gradients
            assembly.add(piece.direction)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from error
    finally:
        call.cancel()
    if not (1 <= devices <= MOST_DEVICES and gradients <= MOST_GRADIENTS):
        raise ProtocolError(
            f"zone {asked!r} answered for {devices} devices with {gradients} gradients: a mean is of 1 to"
            f" {MOST_DEVICES} devices, with at most {MOST_GRADIENTS} gradients"
        )
    return ZoneDirection(assembly.finish(), devices, gradients)
