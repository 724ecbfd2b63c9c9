"""Server-sent events: each message is made once for all viewers, numbered, and kept for a while for who reconnects.

A viewer has no queue. It remembers the number of the last message that it got, and looks for the next ones when the
bell rings; what it was too slow for is gone, and it is told to fetch everything anew. So a viewer that does not read
costs one connection and no memory, and holds up nobody.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

MOST_MESSAGES = 200
"""That are kept, of all kinds: a minute of one kind, while something changes all the time."""
MOST_BYTES = 8 << 20
"""Of them together."""
BEAT = b"event: beat\ndata: {}\n\n"
BEAT_EVERY = 15.0
"""Seconds after which a silent stream says that it is there: proxies keep it open, and a page whose line has died
without a word misses it. Comments would do for the former alone, as no script sees them.
"""
LINGER = 60.0
"""Seconds after the last viewer for which messages are still made: one that reloads or reconnects then misses none."""


class Feed:
    """The messages of a page. Numbers rise by one from `first`, which a later life of the page must not fall below."""

    def __init__(
        self,
        first: int,
        clock: Callable[[], float],
        *,
        most: int = MOST_MESSAGES,
        room: int = MOST_BYTES,
        beat_every: float = BEAT_EVERY,
    ) -> None:
        self._clock, self._most, self._room, self._beat_every = clock, most, room, beat_every
        self._last = first
        self._kept: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._bell = asyncio.Event()
        self._wanted = clock() - LINGER - 1
        self._viewers = 0
        self._closed = False

    @property
    def sequence(self) -> int:
        """The number of the last message."""
        return self._last

    @property
    def viewers(self) -> int:
        """Who watches now."""
        return self._viewers

    @property
    def watched(self) -> bool:
        """Whether anybody would miss a message: who watches, or has fetched the picture and is about to."""
        return self._viewers > 0 or self._clock() - self._wanted <= LINGER

    def expect_viewer(self) -> None:
        """Somebody has the picture as it is now."""
        self._wanted = self._clock()

    def publish(self, kind: str, text: str) -> None:
        """A message to all. The text is JSON on one line."""
        self._last += 1
        self._kept.append((self._last, f"id: {self._last}\nevent: {kind}\ndata: {text}\n\n".encode()))
        self._bytes += len(self._kept[-1][1])
        while len(self._kept) > self._most or (self._bytes > self._room and len(self._kept) > 1):
            self._bytes -= len(self._kept.popleft()[1])
        self._ring()

    def skip(self) -> None:
        """Something has changed that nobody is told: who comes back with an older number has to fetch anew."""
        self._last += 1
        self._kept.clear()
        self._bytes = 0

    def close(self) -> None:
        """End all streams, each when its viewer has all messages."""
        self._closed = True
        self._ring()

    def after(self, number: int) -> tuple[bytes, int]:
        """What a viewer that has message `number` gets next, and the number it has then."""
        if number == self._last:
            return b"", number
        first = self._kept[0][0] if self._kept else self._last + 1
        if not first - 1 <= number <= self._last:
            return f"id: {self._last}\nevent: reload\ndata: {{}}\n\n".encode(), self._last
        return b"".join(text for has, text in self._kept if has > number), self._last

    async def watch(self, number: int) -> AsyncGenerator[bytes]:
        """What a viewer gets that has message `number`, until the feed is closed and it has all that was said."""
        self._viewers += 1
        try:
            yield b"retry: 2000\n\n"
            while True:
                bell = self._bell
                news, number = self.after(number)
                if news:
                    yield news
                    continue
                if self._closed:
                    return
                try:
                    # Not wait_for: in Python 3.11 it loses a cancellation that comes with the bell.
                    async with asyncio.timeout(self._beat_every):
                        await bell.wait()
                except TimeoutError:
                    yield BEAT
        finally:
            self._viewers -= 1
            self._wanted = self._clock()

    def _ring(self) -> None:
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()
