"""Devices that attend their zones' edges: they dial out, say hello and answer, for ever (architecture)."""

import asyncio
import logging
import random
import time
from collections.abc import Mapping

from device.virtual import VirtualDevice
from sgfusion.errors import SGFusionError
from sgfusion.wire.attending import Directory, Welcome
from sgfusion.wire.channel import Keys, backoff, open_channel
from sgfusion.wire.device_rpc import Attending, Question
from sgfusion.wire.identity import Identity
from sgfusion.wire.logs import fields, timed

STEADY = 10.0
"""Seconds of attendance after which the next failure is a first one again."""
_log = logging.getLogger("sgfusion.device")


class AddressBook:
    """Where zones' edges are: what the device was told, and what edges say of each other."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._told = dict(known)
        self._known = dict(known)
        self._news = asyncio.Event()

    def learn(self, edges: Mapping[str, str]) -> None:
        """Of an edge's directory. What an owner has told the device stands: directories may hold inner addresses."""
        new = {zone: address for zone, address in edges.items() if zone not in self._told}
        if any(self._known.get(zone) != address for zone, address in new.items()):
            self._known.update(new)
            self._news.set()
            self._news = asyncio.Event()

    async def address_of(self, zone: str) -> str:
        """Waits until it is known: a device that roams learns it from an edge that it attends already."""
        if zone not in self._known:
            _log.info("the edge of zone %s is not known yet: waiting for another zone's edge to tell it", zone)
        while zone not in self._known:
            await self._news.wait()
        return self._known[zone]


async def attend(device: VirtualDevice, book: AddressBook, keys: Keys | None) -> None:
    """Attend for ever, through every outage, with backoff and jitter."""
    with fields(device=device.device, zone=device.zone):
        await _attend(device, book, keys)


async def _attend(device: VirtualDevice, book: AddressBook, keys: Keys | None) -> None:
    attempt, silent = 0, 0
    while True:
        address, began = await book.address_of(device.zone), time.monotonic()
        try:
            await _attend_once(device, book, address, keys)
            reason = "the stream has ended"
        except SGFusionError as error:
            reason = error.discreet
            device.measures.refused(device.zone, type(error).__name__)
        if time.monotonic() - began > STEADY:
            attempt = silent = 0
        if silent == 0 or attempt % 20 == 0:
            _log.warning(
                "device %s, zone %s: %s (edge at %s); tries again", device.device, device.zone, reason, address
            )
        silent += 1
        device.measures.retried("edge", device.zone)
        await asyncio.sleep(0.02 + backoff(attempt, random.random, most=5.0))
        attempt += 1


async def _attend_once(device: VirtualDevice, book: AddressBook, address: str, keys: Keys | None) -> None:
    me = Identity("device", device.device)
    channel = device.measures.metered(open_channel(address, server=Identity("edge", device.zone), me=me, keys=keys))
    answering: set[asyncio.Task[None]] = set()
    welcomed = False
    try:
        stream = Attending(channel, device.hello)
        async for message in stream.messages():
            if isinstance(message, Welcome):
                if not welcomed:
                    device.measures.attends(device.zone)
                welcomed = True
                _log.info("device %s attends zone %s at %s", device.device, device.zone, address)
            elif isinstance(message, Directory):
                book.learn(message.edges)
            else:
                task = asyncio.create_task(_answer(device, stream, message))
                answering.add(task)
                task.add_done_callback(answering.discard)
            del message  # weights may be large, and the next question long in coming
    finally:
        if welcomed:
            device.measures.left(device.zone)
        for task in answering:
            task.cancel()
        await channel.close()


async def _answer(device: VirtualDevice, stream: Attending, question: Question) -> None:
    id, request, answering = question.id, question.request, device.answer(question)
    del question  # its weights are no longer needed once there is an answer
    try:
        with fields(request=request), timed(_log, "device %s: %s", device.device, id):
            await stream.answer(id, await answering)
    except SGFusionError as error:  # the stream is gone; the edge asks again on the next one
        _log.debug("device %s: %s", device.device, error)
