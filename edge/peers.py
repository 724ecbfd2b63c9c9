"""Other zones' edges, as this one asks them for directions on its weights (method 6; architecture, Faults).

A peer that is lost or late is tried again with backoff inside the round's budget, then left out of the round. One that
let a whole budget pass is not waited for again until it has answered.
"""

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from contextlib import suppress

import grpc.aio
import numpy as np
import numpy.typing as npt

from sgfusion.errors import (
    DeadlineError,
    PeerUnavailableError,
    SGFusionError,
    UnavailableError,
)
from sgfusion.plan import Peer, ZoneState
from sgfusion.wire.channel import Keys, backoff, open_channel
from sgfusion.wire.identity import Identity
from sgfusion.wire.logs import timed
from sgfusion.wire.measures import Measures
from sgfusion.wire.peer_rpc import ZoneDirection, ask_peer

Vector = npt.NDArray[np.float32]

GONE = {ZoneState.LEFT: "it has left the run"}
"""Not asked at all. One whose lease has run out is: the cloud may have lost it, and its peers not."""
_log = logging.getLogger("sgfusion.edge")


class Peers:
    """The directory, a channel to each peer that was asked, and which of them were late last time."""

    def __init__(self, zone: str, keys: Keys | None, *, budget: float, measures: Measures | None = None) -> None:
        self._zone = zone
        self._keys = keys
        self._measures = measures or Measures()
        self.budget = budget
        """Seconds for a peer to answer in a round."""
        self._directory: dict[int, Peer] = {}
        self._channels: dict[str, tuple[str, grpc.aio.Channel]] = {}  # by zone: the address, and the channel to it
        self._news = asyncio.Event()
        self.unreliable: set[int] = set()
        """Peers that let a whole budget pass, and have not answered since."""
        self._late: dict[int, asyncio.Task[ZoneDirection]] = {}  # questions to them that no round waits for

    def learn(self, directory: Iterable[Peer]) -> None:
        """The cloud's latest directory; who waits for a peer to come back looks again."""
        self._directory = {peer.number: peer for peer in directory}
        self._news.set()
        self._news = asyncio.Event()

    def edges(self) -> dict[str, str]:
        """Where other zones' edges are, for devices that roam."""
        return {p.zone: p.address for p in self._directory.values() if p.address and p.zone != self._zone}

    async def direction(
        self, number: int, theta: Vector, *, round: int, contract: str, fingerprint: str, request: str = ""
    ) -> ZoneDirection:
        """The direction of the zone of that number; PeerUnavailableError once the budget is spent.

        Cancelled while an unreliable peer has not answered, its question goes on: an answer, late as it is, shows that
        the peer is there again.
        """
        if number in self._late:
            raise PeerUnavailableError("it has not answered since it let a whole budget pass")
        question = asyncio.create_task(self._asked(number, theta, round, contract, fingerprint, request=request))
        try:
            return await asyncio.shield(question)
        except asyncio.CancelledError:
            if number not in self.unreliable:
                question.cancel()
            else:
                self._late[number] = question
                question.add_done_callback(lambda done: self._came(number, done))
            raise

    def _came(self, number: int, question: "asyncio.Task[ZoneDirection]") -> None:
        self._late.pop(number, None)
        if not question.cancelled():
            question.exception()  # seen: it was told of when its budget was spent

    async def _asked(
        self, number: int, theta: Vector, round: int, contract: str, fingerprint: str, *, request: str
    ) -> ZoneDirection:
        end = time.monotonic() + self.budget
        peer, attempt, last = None, 0, "the plan's directory does not have it"
        while (left := end - time.monotonic()) > 0:
            peer, news = self._directory.get(number), self._news
            if peer is not None and peer.state in GONE:
                raise PeerUnavailableError(GONE[peer.state])
            try:
                if peer is None or not peer.address:
                    raise UnavailableError("its edge has not enrolled yet")
                with timed(_log, "zone %s: question to zone %s", self._zone, peer.zone):
                    answer = await ask_peer(
                        self._channel(peer),
                        zone=self._zone,
                        asked=peer.zone,
                        round=round,
                        contract=contract,
                        theta=theta,
                        fingerprint=fingerprint,
                        timeout=left,
                        request=request,
                    )
            except DeadlineError as error:
                last = f"{error}; before that, {last}" if attempt else str(error)
                break
            except UnavailableError as error:
                last = str(error)
            except SGFusionError as error:  # trying again would change nothing
                _log.warning(
                    "zone %s: round %d without zone %s: %s", self._zone, round, peer.zone if peer else number, error
                )
                raise PeerUnavailableError(str(error)) from error
            else:
                self.unreliable.discard(number)
                return answer
            pause = min(left, backoff(attempt, random.random, most=2.0))
            attempt += 1
            self._measures.retried("peer", self._zone)
            if attempt == 1:
                _log.info("zone %s: peer %s: %s; trying again", self._zone, peer.zone if peer else number, last)
            # Not wait_for: in Python 3.11 it loses a cancellation that comes with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await news.wait()
        self.unreliable.add(number)
        _log.warning(
            "zone %s: round %d without zone %s: no answer within %g s: %s",
            self._zone,
            round,
            peer.zone if peer else number,
            self.budget,
            last,
        )
        raise PeerUnavailableError(f"no answer within {self.budget:g} s: {last}")

    def _channel(self, peer: Peer) -> grpc.aio.Channel:
        known = self._channels.get(peer.zone)
        if known is not None and known[0] == peer.address:
            return known[1]
        if known is not None:
            asyncio.get_running_loop().create_task(known[1].close())
        me = Identity("edge", self._zone)
        channel = open_channel(peer.address, server=Identity("edge", peer.zone), me=me, keys=self._keys)
        self._channels[peer.zone] = (peer.address, self._measures.metered(channel))
        return channel

    async def close(self) -> None:
        """Close all channels."""
        for question in self._late.values():
            question.cancel()
        for _, channel in self._channels.values():
            await channel.close()
        self._channels.clear()
