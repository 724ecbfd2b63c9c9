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
    ContractError,
    DeadlineError,
    InputError,
    PeerUnavailableError,
    SGFusionError,
    UnavailableError,
)
from sgfusion.plan import Peer, ZoneState
from sgfusion.wire.channel import Keys, backoff, open_channel
from sgfusion.wire.identity import Identity
from sgfusion.wire.peer_rpc import ZoneDirection, ask_peer

Vector = npt.NDArray[np.float32]

GONE = {ZoneState.LOST: "its lease at the cloud has run out", ZoneState.LEFT: "it has left the run"}
_log = logging.getLogger("sgfusion.edge")


class Peers:
    """The directory, a channel to each peer that was asked, and which of them were late last time."""

    def __init__(self, zone: str, keys: Keys | None, *, budget: float) -> None:
        self._zone = zone
        self._keys = keys
        self.budget = budget
        """Seconds for a peer to answer in a round."""
        self._directory: dict[int, Peer] = {}
        self._channels: dict[str, tuple[str, grpc.aio.Channel]] = {}  # by zone: the address, and the channel to it
        self._news = asyncio.Event()
        self.unreliable: set[int] = set()
        """Peers that let a whole budget pass, and have not answered since."""

    def learn(self, directory: Iterable[Peer]) -> None:
        """The cloud's latest directory; who waits for a peer to come back looks again."""
        self._directory = {peer.number: peer for peer in directory}
        self._news.set()
        self._news = asyncio.Event()

    def edges(self) -> dict[str, str]:
        """Where other zones' edges are, for devices that roam."""
        return {p.zone: p.address for p in self._directory.values() if p.address and p.zone != self._zone}

    async def direction(
        self, number: int, theta: Vector, *, round: int, contract: str, fingerprint: str
    ) -> ZoneDirection:
        """The direction of the zone of that number; PeerUnavailableError once the budget is spent."""
        end = time.monotonic() + self.budget
        attempt, last = 0, "the plan's directory does not have it"
        while (left := end - time.monotonic()) > 0:
            peer, news = self._directory.get(number), self._news
            if peer is not None and peer.state in GONE:
                raise PeerUnavailableError(GONE[peer.state])
            try:
                if peer is None or not peer.address:
                    raise UnavailableError("its edge has not enrolled yet")
                answer = await ask_peer(
                    self._channel(peer),
                    zone=self._zone,
                    asked=peer.zone,
                    round=round,
                    contract=contract,
                    theta=theta,
                    fingerprint=fingerprint,
                    timeout=left,
                )
            except DeadlineError as error:
                last = str(error)
                break
            except UnavailableError as error:
                last = str(error)
            except (ContractError, InputError, SGFusionError) as error:  # trying again would change nothing
                raise PeerUnavailableError(str(error)) from error
            else:
                self.unreliable.discard(number)
                return answer
            pause = min(left, backoff(attempt, random.random, most=2.0))
            attempt += 1
            if attempt == 1:
                _log.info("zone %s: peer %s: %s; trying again", self._zone, peer.zone if peer else number, last)
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), pause)
        self.unreliable.add(number)
        raise PeerUnavailableError(f"no answer within {self.budget:g} s: {last}")

    def _channel(self, peer: Peer) -> grpc.aio.Channel:
        known = self._channels.get(peer.zone)
        if known is not None and known[0] == peer.address:
            return known[1]
        if known is not None:
            asyncio.get_running_loop().create_task(known[1].close())
        me = Identity("edge", self._zone)
        channel = open_channel(peer.address, server=Identity("edge", peer.zone), me=me, keys=self._keys)
        self._channels[peer.zone] = (peer.address, channel)
        return channel

    async def close(self) -> None:
        """Close all channels."""
        for _, channel in self._channels.values():
            await channel.close()
        self._channels.clear()
