"""What a service tells of its own work as it works: durations, retries, bytes. Without `--metrics` nobody listens.

Who works calls a `Measures` and knows nothing of Prometheus: `metrics.py` has the ones that keep it. What can be seen
by looking (who attends, what waits) is not told here but looked at when somebody asks.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import grpc.aio

Side = Literal["client", "server"]
Hop = Literal["cloud", "peer", "device", "edge"]
"""Whom a service tried again: an edge its cloud, its peers and its own devices, a device its edge."""
Codec = Callable[[Any], Any]

_NOTHING: AbstractContextManager[None] = nullcontext()


class Traffic:
    """Bytes of messages by RPC and by which side of it we are, as they are on the wire inside gRPC's frames.

    Counted on the event loop, where gRPC parses and serializes; read from anywhere.
    """

    def __init__(self) -> None:
        self.sent: Counter[tuple[str, ...]] = Counter()
        self.received: Counter[tuple[str, ...]] = Counter()

    def sending(self, method: str, side: Side, serializer: Codec | None) -> Codec | None:
        """The serializer of a method, which counts what it makes. Bytes that are ready stay as they are."""
        key = _name(method), side

        def counted(message: Any) -> Any:
            raw = message if serializer is None else serializer(message)
            self.sent[key] += len(raw)
            return raw

        return counted

    def receiving(self, method: str, side: Side, deserializer: Codec | None) -> Codec | None:
        """The deserializer of a method, which counts what it is given."""
        key = _name(method), side

        def counted(raw: bytes) -> Any:
            self.received[key] += len(raw)
            return raw if deserializer is None else deserializer(raw)

        return counted

    def metered(self, channel: grpc.aio.Channel) -> grpc.aio.Channel:
        """The channel, whose calls are counted from here on."""
        for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
            setattr(channel, kind, self._calls(getattr(channel, kind)))
        return channel

    def _calls(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(
            method: str,
            request_serializer: Codec | None = None,
            response_deserializer: Codec | None = None,
            **more: Any,
        ) -> Any:
            return make(
                method,
                request_serializer=self.sending(method, "client", request_serializer),
                response_deserializer=self.receiving(method, "client", response_deserializer),
                **more,
            )

        return made


class Measures:
    """What every tier tells. This one forgets it all, at the cost of a call."""

    traffic: Traffic | None = None
    """None: bytes are not counted."""

    def phase(self, name: str) -> AbstractContextManager[object]:
        """Around a phase of the work: how long it takes, however it ends."""
        del name
        return _NOTHING

    def took(self, name: str, seconds: float) -> None:
        """A phase that was timed elsewhere."""

    def retried(self, hop: Hop, zone: str) -> None:
        """Somebody did not answer, or refused for now, and is tried again."""

    def metered(self, channel: grpc.aio.Channel) -> grpc.aio.Channel:
        """The channel; its bytes are counted if anybody listens."""
        return channel if self.traffic is None else self.traffic.metered(channel)


def _name(method: str) -> str:
    """`Attend` of `/sgfusion.v1.EdgeService/Attend`: no two services have RPCs of one name."""
    return method.rpartition("/")[2]
