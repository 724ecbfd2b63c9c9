"""Waits for the other side of a stream, each with an end: who stops in the middle holds no memory for ever."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from sgfusion.errors import DeadlineError
from sgfusion.wire.identity import Context

Message = TypeVar("Message")

PIECE_WITHIN = 60.0
"""Seconds for one message to come or to be taken: a mebibyte, on the slowest of lines."""


async def next_within(messages: AsyncIterator[Message], seconds: float, what: str) -> Message | None:
    """The next message, None at the end of the stream; too late is an error that names what was to come."""
    try:
        async with asyncio.timeout(seconds):
            return await anext(messages, None)
    except TimeoutError:
        raise DeadlineError(f"{what} has not come within {seconds:g} s: send it, or end the stream") from None


async def write_within(context: Context, message: Any) -> None:
    """Send it, to a caller who takes it."""
    try:
        async with asyncio.timeout(PIECE_WITHIN):
            await context.write(message)
    except TimeoutError:
        raise DeadlineError(f"nothing was taken for {PIECE_WITHIN:g} s: read the stream, or end it") from None
