"""What stands between gRPC and every handler: who may call, and what becomes of an error (architecture, Faults).

A handler sees only callers that the table admits, and raises our errors; here alone they become statuses.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from inspect import isasyncgenfunction
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from sgfusion.errors import ProtocolError, SGFusionError, UnavailableError
from sgfusion.wire.identity import Context, Identity, admit
from sgfusion.wire.measures import Traffic
from sgfusion.wire.repeats import Repeats
from sgfusion.wire.status import Refusals, metadata_of, to_status

T = TypeVar("T")
Handler = Any  # grpc.RpcMethodHandler[Any, Any], which its stubs have as a class without its own attributes
Details = Any


class Boundary(grpc.aio.ServerInterceptor):
    """Checks the caller, counts and translates errors, and keeps the details of our own failures to our log."""

    def __init__(self, me: Identity, refusals: Refusals, traffic: Traffic | None = None) -> None:
        self._log = logging.getLogger(f"sgfusion.{me.role}")
        self._refusals = refusals
        self._repeats = Repeats()
        self._traffic = traffic

    async def intercept_service(
        self, continuation: Callable[[Details], Awaitable[Handler]], details: Details
    ) -> Handler:
        """The handler of the call, guarded; none if nobody registered one, which gRPC answers by UNIMPLEMENTED."""
        handler = await continuation(details)
        return handler if handler is None else self._guarded(details.method, handler)

    def _guarded(self, method: str, handler: Handler) -> Handler:
        deserialize, serialize = handler.request_deserializer, _serializer(handler.response_serializer)
        if self._traffic is not None:
            deserialize = self._traffic.receiving(method, "server", deserialize)
            serialize = self._traffic.sending(method, "server", serialize)
        parse = _parser(method, deserialize)
        # A stream's messages are parsed while the handler reads, inside the guard. gRPC would parse a single request
        # before it calls us, so that one is taken as bytes and parsed here.
        deserializer = parse if handler.request_streaming else None

        def received(request: Any) -> Any:
            return request if handler.request_streaming else parse(request)

        if not handler.response_streaming:
            inner = handler.stream_unary if handler.request_streaming else handler.unary_unary

            async def respond(request: Any, context: Context) -> Any:
                return await self._guard(method, context, lambda: inner(received(request), context))

            make = (
                grpc.stream_unary_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
            return make(respond, deserializer, serialize)

        inner = handler.stream_stream if handler.request_streaming else handler.unary_stream

        async def pour(request: Any, context: Context) -> None:
            # Always by context.write: a handler's generator is then closed as soon as its call ends, and not whenever
            # it is collected.
            if isasyncgenfunction(inner):
                async with aclosing(inner(received(request), context)) as responses:
                    async for response in responses:
                        await context.write(response)
            else:
                await inner(received(request), context)

        async def stream(request: Any, context: Context) -> None:
            await self._guard(method, context, lambda: pour(request, context))

        make = (
            grpc.stream_stream_rpc_method_handler if handler.request_streaming else grpc.unary_stream_rpc_method_handler
        )
        return make(stream, deserializer, serialize)

    async def _guard(self, method: str, context: Context, work: Callable[[], Awaitable[T]]) -> T:
        who = "a caller without identity"
        try:
            who = admit(context, method).uri
            return await work()
        except grpc.aio.AbortError:  # the handler has said its own
            raise
        except SGFusionError as error:
            await self._refuse(method, who, context, error)
        except Exception:  # noqa: BLE001 - whatever it is, the service goes on and the caller gets an answer
            self._refusals.count("internal")
            self._log.exception("%s of %s failed", method, who)
            failure = SGFusionError(f"{method} failed on the other side; its log says why")
            await context.abort(grpc.StatusCode.INTERNAL, str(failure), metadata_of(failure))

    async def _refuse(self, method: str, who: str, context: Context, error: SGFusionError) -> NoReturn:
        code, message = to_status(error)
        self._refusals.count(type(error).__name__)
        # One line, whatever the caller wrote into what the message repeats.
        name, words = type(error).__name__, " ".join(message.split())
        # "Not yet" is part of a normal start, and the same for all: a line each would bury why it lasts. What is wrong
        # with a caller is told of each, and not again and again while it tries on.
        normal = isinstance(error, UnavailableError)
        more = self._repeats.told((method, name) if normal else (method, who, words), time.monotonic())
        if more is not None:
            level = logging.INFO if normal else logging.WARNING
            since = f"; {more} more of these since the last line" if more else ""
            self._log.log(level, "refused %s of %s: %s: %s%s", method, who, name, words, since)
        await context.abort(code, message, metadata_of(error))


def _serializer(serializer: Callable[[Any], bytes] | None) -> Callable[[Any], bytes] | None:
    """A handler that sends many callers the same message may write it as bytes, serialized once."""
    if serializer is None:
        return None
    return lambda message: message if isinstance(message, bytes) else serializer(message)


def _parser(method: str, deserializer: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    def parse(raw: bytes) -> Any:
        if deserializer is None:
            return raw
        try:
            return deserializer(raw)
        except DecodeError as error:
            raise ProtocolError(f"{len(raw)} bytes to {method} are not its message: {error}") from error

    return parse
