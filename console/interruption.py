"""Ctrl-C, however it comes. A module of its own: it has to hold before torch is loaded, which takes seconds."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM, for who has to tell it from Ctrl-C: a person may mean the step that is at hand, a system means all."""


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM is as good as Ctrl-C, and that counts even for a process whose shell had it ignore it."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        try:
            signal.raise_signal(signal.SIGINT)  # which asyncio has a way of its own with
        except KeyboardInterrupt:
            raise Terminated from None

    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: interrupt}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
