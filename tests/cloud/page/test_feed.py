"""Messages, and viewers of any speed: each ends with the latest, and none costs memory or holds up another."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing

from hypothesis import given
from hypothesis import strategies as st

from cloud.page.feed import BEAT, LINGER, Feed
from tests.cluster.keys import run_async


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Viewer:
    """A browser: it fetches the picture, applies messages, and fetches anew when told to."""

    def __init__(self, feed: Feed, told: list[int]) -> None:
        self._feed, self._told = feed, told
        self.fetches = 0
        self._fetch()

    def _fetch(self) -> None:
        self.fetches += 1
        self.has, self.number = list(self._told), self._feed.sequence

    def read(self) -> None:
        text, number = self._feed.after(self.number)
        for kind, data in re.findall(r"event: (\w+)\ndata: (.*)\n\n", text.decode()):
            if kind == "reload":
                self._fetch()
                return
            self.has.append(int(data))
        self.number = number


steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 0)),
        st.tuples(st.just("skip"), st.integers(0, 0)),
        st.tuples(st.just("read"), st.integers(0, 2)),
        st.tuples(st.just("reconnect"), st.integers(0, 2)),
    ),
    max_size=60,
)


@given(steps, st.integers(1, 5), st.integers(1, 500))
def test_any_interleaving_leaves_every_viewer_with_everything(
    steps: list[tuple[str, int]], most: int, room: int
) -> None:
    """A message is applied once, in order, or the picture that has it is fetched."""
    feed = Feed(7, Clock(), most=most, room=room)
    told: list[int] = []
    viewers = [Viewer(feed, told) for _ in range(3)]
    for step, which in steps:
        if step == "publish":
            told.append(len(told))
            feed.publish("status", str(told[-1]))
        elif step == "skip":
            told.append(len(told))
            feed.skip()
        else:
            viewers[which].read()  # a reconnection is a read from the number that it had
    for viewer in viewers:
        viewer.read()
        assert viewer.has == told
        viewer.read()
        assert viewer.has == told
        assert viewer.number == feed.sequence


@given(st.integers(0, 8))
def test_who_reconnects_in_time_loses_nothing_and_fetches_nothing(behind: int) -> None:
    told: list[int] = []
    feed = Feed(0, Clock(), most=8)
    viewer = Viewer(feed, told)
    for number in range(behind):
        told.append(number)
        feed.publish("status", str(number))
    viewer.read()
    assert viewer.has == list(range(behind))
    assert viewer.fetches == 1


def test_who_is_too_far_behind_is_told_to_fetch() -> None:
    feed = Feed(0, Clock(), most=2)
    for number in range(4):
        feed.publish("status", str(number))
    assert feed.after(2)[0].count(b"event: status") == 2
    assert feed.after(1) == (b"id: 4\nevent: reload\ndata: {}\n\n", 4)
    assert feed.after(5) == (b"id: 4\nevent: reload\ndata: {}\n\n", 4)  # a number of another life
    assert feed.after(4) == (b"", 4)


def test_room_is_bounded_by_bytes_too_but_for_the_last_message() -> None:
    feed = Feed(0, Clock(), most=100, room=300)
    for _ in range(10):
        feed.publish("status", "x" * 100)
    assert feed.after(8)[0].count(b"event: status") == 2
    assert b"reload" in feed.after(7)[0]
    feed.publish("status", "x" * 1000)
    assert b"x" * 1000 in feed.after(10)[0]
    assert b"reload" in feed.after(9)[0]


def test_messages_are_made_while_somebody_looks_or_is_about_to() -> None:
    clock = Clock()
    feed = Feed(0, clock)
    seen = [feed.watched]
    feed.expect_viewer()
    for seconds in (0.0, LINGER, 1.0):
        clock.now += seconds
        seen.append(feed.watched)
    assert seen == [False, True, True, False]


async def taken(stream: AsyncIterator[bytes]) -> bytes:
    return await anext(stream)


def test_a_stream_says_how_soon_to_come_back_then_what_is_new_and_ends_with_the_feed() -> None:
    async def work() -> None:
        clock = Clock()
        feed = Feed(0, clock)
        feed.publish("plan", "{}")
        async with aclosing(feed.watch(0)) as stream:
            assert await taken(stream) == b"retry: 2000\n\n"
            assert (feed.viewers, feed.watched) == (1, True)
            assert await taken(stream) == b"id: 1\nevent: plan\ndata: {}\n\n"
            coming = asyncio.create_task(taken(stream))
            await asyncio.sleep(0)
            feed.publish("news", "[1]")
            feed.publish("status", "[2]")
            assert await coming == b"id: 2\nevent: news\ndata: [1]\n\nid: 3\nevent: status\ndata: [2]\n\n"
            coming = asyncio.create_task(taken(stream))
            await asyncio.sleep(0)
            feed.close()
            await asyncio.wait([coming])
            assert isinstance(coming.exception(), StopAsyncIteration)
        assert feed.viewers == 0
        assert feed.watched

    run_async(work())


def test_a_silent_stream_says_that_it_is_there() -> None:
    async def work() -> None:
        feed = Feed(0, Clock(), beat_every=0.01)
        async with aclosing(feed.watch(0)) as stream:
            assert await taken(stream) == b"retry: 2000\n\n"
            assert await taken(stream) == BEAT
            assert await taken(stream) == BEAT

    run_async(work())
