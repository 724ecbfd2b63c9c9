"""A request's name from a peer's question to the devices: the first asker's, and an odd one hurts nobody."""

import asyncio
import logging
from pathlib import Path

import numpy as np
import pytest

from sgfusion.wire.attending import Answer, Ask
from sgfusion.wire.device_rpc import Attending, Question
from sgfusion.wire.identity import Identity
from sgfusion.wire.logs import fields
from sgfusion.wire.peer_rpc import ask_peer
from tests.cluster.keys import run_async
from tests.edge.zones import CONTRACT, MODEL, PEER, THETA, Edge, Healthy, an_edge, domain_hello, doubled


class Listening(Healthy):
    """A device that remembers the names of its questions."""

    def __init__(self, stream: Attending) -> None:
        self.requests: list[str] = []
        super().__init__(stream, self._noted)

    def _noted(self, question: Question) -> Answer:
        self.requests.append(question.request)
        return doubled(question)


async def listening(edge: Edge) -> Listening:
    found = Listening(Attending(await edge.channel(Identity("device", "a0")), domain_hello("a0")))
    edge.stack.push_async_callback(found.stop)
    await found.here.wait()
    edge.enter("a0")
    return found


async def asked(edge: Edge, request: str, theta: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    answer = await ask_peer(
        await edge.channel(PEER),
        zone=PEER.name,
        asked="ash",
        round=7,
        contract=CONTRACT,
        theta=theta,
        fingerprint=MODEL.fingerprint,
        timeout=10,
        request=request,
    )
    assert answer.vector.tolist() == (2 * theta).tolist()


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        (f"{PEER.name}.7", f"{PEER.name}.7"),
        ("", ""),
        ("ash.7", ""),  # another zone's
        (f"{PEER.name}.7\n2026-11-12T10:11:12.123Z CRITICAL", ""),
        (f"{PEER.name}." + "7" * 1000, ""),
    ],
)
def test_a_peers_request_reaches_its_devices_if_it_is_one(sent: str, arrives: str, tmp_path: Path) -> None:
    async def work() -> list[str]:
        async with an_edge(tmp_path) as edge:
            device = await listening(edge)
            await asked(edge, sent, THETA)
            return device.requests

    assert run_async(work()) == [arrives]


def test_who_asks_the_same_later_shares_the_first_ones_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> tuple[list[str], list[str]]:
        async with an_edge(tmp_path) as edge:
            device = await listening(edge)
            member = edge.zone.devices.members["a0"]
            link, member.link = member.link, None  # it is asked when it is back: there is time for two askers
            own = asyncio.create_task(edge.zone.devices.direction(THETA, "ash", request="ash.1"))
            await asyncio.sleep(0)
            peer = asyncio.create_task(asked(edge, f"{PEER.name}.1", THETA))
            while len(next(iter(edge.zone.devices._jobs.values())).askers) < 2:
                await asyncio.sleep(0.01)
            assert link is not None
            edge.zone.devices.join(link)
            await asyncio.gather(own, peer)
            return device.requests, device.asked

    with caplog.at_level(logging.DEBUG, "sgfusion"):
        requests, ids = run_async(work())
    (shared,) = [record for record in caplog.records if "shares" in record.message]
    assert shared.message == f"zone ash: shares {ids[0]} with ash.1"
    assert shared.__dict__["request"] == f"{PEER.name}.1"
    assert requests == ["ash.1"]
    assert ids == [Ask("direction", THETA, MODEL.fingerprint).id], "its name is by its content alone"


def test_events_of_a_question_have_its_own_request_whoever_set_it_going(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with an_edge(tmp_path) as edge:
            await listening(edge)
            with fields(request="elsewhere.3", round=3):
                await edge.zone.devices.direction(THETA, PEER.name, request=f"{PEER.name}.9")

    with caplog.at_level(logging.DEBUG, "sgfusion"):
        run_async(work())
    about = [r for r in caplog.records if "asks its devices" in r.message or "have answered" in r.message]
    assert len(about) == 2
    assert {(record.__dict__["request"], record.__dict__["round"]) for record in about} == {(f"{PEER.name}.9", None)}
