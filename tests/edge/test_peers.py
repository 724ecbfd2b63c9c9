"""A peer that let a budget pass is not waited for, and counts again once it answers, however late."""

import asyncio
from typing import Any

import numpy as np
import pytest

import edge.peers as module
from edge.peers import Peers
from sgfusion.errors import DeadlineError, PeerUnavailableError, SGFusionError, UnavailableError
from sgfusion.plan import Peer, ZoneState
from sgfusion.wire.peer_rpc import ZoneDirection
from tests.cluster.keys import run_async

THETA = np.ones(3, np.float32)
BIRCH = Peer(1, "birch", "127.0.0.1:1", ZoneState.TRAINING)


def asked(peers: Peers) -> Any:
    return peers.direction(1, THETA, round=1, contract="c", fingerprint="f")


def test_it_comes_back_by_a_late_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        free = asyncio.Event()

        async def answering(*_: object, **__: object) -> ZoneDirection:
            await free.wait()
            return ZoneDirection(THETA, 1, 1)

        monkeypatch.setattr(module, "ask_peer", answering)
        peers = Peers("ash", None, budget=30.0)
        peers.learn([BIRCH])
        peers.unreliable.add(1)
        question = asyncio.create_task(asked(peers))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        question.cancel()  # the round goes on without it
        await asyncio.gather(question, return_exceptions=True)
        with pytest.raises(PeerUnavailableError, match="has not answered since"):
            await asked(peers)
        free.set()
        while peers.unreliable:
            await asyncio.sleep(0.01)
        assert (await asked(peers)).devices == 1
        await peers.close()

    run_async(work())


def test_one_that_never_answers_is_unreliable_after_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object, **__: object) -> ZoneDirection:
        raise UnavailableError("nobody there")

    async def work() -> None:
        monkeypatch.setattr(module, "ask_peer", away)
        peers = Peers("ash", None, budget=0.2)
        peers.learn([BIRCH])
        with pytest.raises(PeerUnavailableError, match=r"no answer within 0\.2 s: nobody there"):
            await asked(peers)
        assert peers.unreliable == {1}
        await peers.close()

    run_async(work())


def test_when_time_is_up_in_an_attempt_it_is_told_why_the_one_before_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[SGFusionError] = [UnavailableError("nobody there"), DeadlineError("time is up")]

    async def away(*_: object, **__: object) -> ZoneDirection:
        raise failures.pop(0)

    async def work() -> None:
        monkeypatch.setattr(module, "ask_peer", away)
        peers = Peers("ash", None, budget=30.0)
        peers.learn([BIRCH])
        with pytest.raises(PeerUnavailableError, match="no answer within 30 s: time is up; before that, nobody there"):
            await asked(peers)
        failures.append(DeadlineError("time is up"))
        with pytest.raises(PeerUnavailableError, match=r"no answer within 30 s: time is up$"):
            await asked(peers)
        await peers.close()

    run_async(work())
