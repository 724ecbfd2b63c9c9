"""Devices that attend for ever: where edges are, and what becomes of a broken stream (architecture, Faults)."""

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from device import attendance
from device.attendance import AddressBook, attend
from device.measures import DeviceMeasures
from sgfusion.wire.attending import Answer, Hello
from sgfusion.wire.device_rpc import Question
from sgfusion.wire.identity import Identity
from tests.cluster.keys import run_async
from tests.edge.zones import THETA, an_edge, domain_hello, doubled, keys_of, until


def test_what_edges_say_of_each_other_is_learnt() -> None:
    async def work() -> None:
        book = AddressBook({"ash": "h:1"})
        waiting = asyncio.create_task(book.address_of("birch"))
        assert await book.address_of("ash") == "h:1"
        book.learn({"cedar": "h:3"})
        await asyncio.sleep(0.01)
        assert not waiting.done()
        book.learn({"birch": "h:2", "cedar": "h:3"})
        assert await waiting == "h:2"
        book.learn({"birch": "h:9"})  # it moved
        assert await book.address_of("birch") == "h:9"

    run_async(work())


def test_what_the_owner_said_stands() -> None:
    async def work() -> None:
        book = AddressBook({"ash": "outside:1"})
        book.learn({"ash": "inside:1"})
        assert await book.address_of("ash") == "outside:1"

    run_async(work())


def test_old_news_wake_nobody() -> None:
    book = AddressBook({})
    book.learn({"ash": "h:1"})
    news = book._news
    book.learn({"ash": "h:1"})
    assert book._news is news
    assert not news.is_set()


class Heard(DeviceMeasures):
    """Why devices could not attend."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def refused(self, zone: str, reason: str) -> None:
        assert zone == "ash"
        self.reasons[reason] += 1


class Device:
    """Answers by the book, after whatever wait."""

    def __init__(self, device: str = "u1", wait: float = 0.0) -> None:
        self.zone, self.device = "ash", device
        self.measures = Heard()
        self.hello: Hello = domain_hello(device)
        self.wait = wait
        self.questions: list[str] = []

    async def answer(self, question: Question) -> Answer:
        self.questions.append(question.id)
        await asyncio.sleep(self.wait)
        return doubled(question)


async def attending(device: Device, book: AddressBook) -> "asyncio.Task[None]":
    keys = keys_of(Identity("device", device.device))
    return asyncio.create_task(attend(device, book, keys))  # type: ignore[arg-type]


async def stopped(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_a_device_comes_back_whatever_ends_its_stream_and_answers_what_it_owes(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            device = Device(wait=0.3)
            task = await attending(device, AddressBook({"ash": edge.address}))
            devices = edge.zone.devices
            await until(lambda: edge.zone.report().attendance.attending == ("u1",))
            edge.enter("u1")
            for number in range(3):
                question = asyncio.create_task(edge.direction(THETA + number))
                await until(lambda count=number: len(device.questions) > 2 * count)  # type: ignore[misc]
                link = devices.members["u1"].link
                assert link is not None
                link.close("for a test")
                assert (await question).devices == 1
            assert len(device.questions) == 6  # each one again on the next stream
            assert not task.done()
            await stopped(task)

    run_async(work())


def test_a_device_outlasts_an_edge_that_refuses_it_and_addresses_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attendance, "backoff", lambda *_args, **_options: 0.0)

    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            book = AddressBook({})
            device = Device()
            task = await attending(device, book)
            for wrong in ("nowhere", "127.0.0.1:1", "[::1", ""):
                book.learn({"ash": wrong})
                device.measures.reasons.clear()
                await until(lambda: device.measures.reasons.total() > 1)
                assert not task.done()
            device.hello = Hello("ash", "u1", "another run", device.hello.model, device.hello.histogram)
            book.learn({"ash": edge.address})
            await until(lambda: edge.refusals.get("ContractError", 0) > 2)
            assert device.measures.reasons["ContractError"] >= 2
            device.hello = domain_hello("u1")
            await until(lambda: edge.zone.report().attendance.attending == ("u1",))
            await stopped(task)

    run_async(work())


def test_many_questions_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            task = await attending(Device(wait=0.4), AddressBook({"ash": edge.address}))
            await until(lambda: edge.zone.report().attendance.attending == ("u1",))
            edge.enter("u1")
            begin = asyncio.get_running_loop().time()
            await asyncio.gather(*(edge.direction(THETA + number) for number in range(4)))
            assert asyncio.get_running_loop().time() - begin < 1.2
            assert edge.refusals == {}
            await stopped(task)

    run_async(work())
