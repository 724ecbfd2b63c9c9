"""An edge that is stopped ends what others have open there, with a word why, and waits for none of it."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import edge.main as module
from edge.memory import Memory
from sgfusion.durable import make_folder
from sgfusion.errors import SGFusionError, UnavailableError
from sgfusion.runfile import contract
from sgfusion.wire.attending import Direction, Hello
from sgfusion.wire.device_rpc import Attending, Question
from sgfusion.wire.identity import Identity
from sgfusion.wire.peer_rpc import ask_peer
from sgfusion.wire.service import announced
from tests.cloud.clouds import ISSUER, a_cloud
from tests.cloud.values import MODEL, a_run
from tests.cluster.keys import dialled, run_async
from tests.edge.zones import until

THETA = np.ones(MODEL.length, np.float32)
ASH, BIRCH, DEVICE = Identity("edge", "ash"), Identity("edge", "birch"), Identity("device", "u1")
STOPPING = "the edge of zone 'ash' is stopping: come back when it is up again"


def test_it_ends_at_once_while_a_device_attends_and_a_peer_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its grace is an hour, and this test has not so long."""
    run_async(_stopped_in_the_middle(tmp_path, monkeypatch))
    assert "Traceback" not in capfd.readouterr().err


async def _stopped_in_the_middle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, asked = asyncio.Event(), asyncio.Event()

    async def until_stopped() -> str:
        await told.wait()
        return "SIGTERM"

    async def attend(stream: Attending) -> None:
        """Give θ⁰, without which an edge serves no peer, and no direction ever."""
        async for message in stream.messages():
            if isinstance(message, Question) and message.kind == "initial":
                await stream.answer(message.id, Direction(THETA))
            elif isinstance(message, Question):
                asked.set()

    monkeypatch.setattr(Memory, "hold", lambda memory: make_folder(memory.folder))  # else until we end
    monkeypatch.setattr(module, "until_stopped", until_stopped)
    monkeypatch.setattr(module, "GRACE", 3600.0)
    run = a_run(zones=("ash", "birch"))
    hello = Hello("ash", "u1", contract(run), MODEL, np.array([0.25, 0.25, 0.5, 0.0]))
    state = folder / "edge"
    async with a_cloud(folder / "cloud", run) as cloud:
        edge = asyncio.create_task(
            module.run_edge(
                "ash",
                cloud=cloud.address,
                state=state,
                listen="127.0.0.1:0",
                advertise=None,
                keys=ISSUER.keys(ASH),
                expected=1,
            )
        )
        await until(lambda: announced(state) is not None)
        address = announced(state) or ""
        async with (
            dialled(address, me=DEVICE, keys=ISSUER.keys(DEVICE), server=ASH) as device,
            dialled(address, me=BIRCH, keys=ISSUER.keys(BIRCH), server=ASH) as peer,
        ):
            await until((state / "run.toml").exists)
            attending = asyncio.create_task(attend(Attending(device, hello)))
            await until((state / "roster.json").exists)
            question = asyncio.create_task(
                ask_peer(
                    peer,
                    zone="birch",
                    asked="ash",
                    round=1,
                    contract=contract(run),
                    theta=THETA,
                    fingerprint=MODEL.fingerprint,
                    timeout=1000.0,
                )
            )
            await asked.wait()
            told.set()
            await edge
            for call in (attending, question):
                with pytest.raises(UnavailableError) as ended:
                    await call
                assert str(ended.value) == STOPPING
            with pytest.raises(SGFusionError):  # nobody listens there any more
                await attend(Attending(device, hello))
