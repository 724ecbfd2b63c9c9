"""Our own path: an edge's `Zone` behind its real server, asked for one direction after the other.

All that an edge does for a question, with all its checks: identity, fingerprint, checksum, finite numbers, the order of
devices. What an edge does beside it is not here: training, checkpoints, the cloud. Devices answer with the weights they
got, without torch; they speak by `Attending`, and answer in a task of their own as real ones do.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import grpc.aio
import numpy as np

from benchmarks.noop.parent import end_with_parent, say, serve_rounds
from edge.memory import Memory
from edge.zone import Zone
from sgfusion import heap
from sgfusion.evaluation import Metric
from sgfusion.reports import Model
from sgfusion.runfile import contract, parse_run_file
from sgfusion.wire.attending import Direction, Hello
from sgfusion.wire.channel import Keys, open_channel, start_server
from sgfusion.wire.device_rpc import Attending, Question
from sgfusion.wire.edge_rpc import add_edge
from sgfusion.wire.identity import Identity, folder_of
from sgfusion.wire.peer_rpc import add_peer

RUN = """
name = "noop"
seed = 1
rounds = 1
[task]
name = "linear"
[data]
source = "generated_zones"
[zones]
names = ["noop"]
"""
EDGE = Identity("edge", "noop")


async def serve(devices: int, weights: int, certs: Path | None) -> None:
    """Serve, and do rounds for the parent."""
    heap.keep_freed_memory(heap.EDGE)
    keys = None if certs is None else Keys.load(folder_of(certs, EDGE))
    with tempfile.TemporaryDirectory() as folder:
        zone = Zone(EDGE.name, Memory(Path(folder)), keys=keys, expected=devices)
        zone.take_run(RUN, 0)

        def register(server: grpc.aio.Server) -> None:
            add_edge(server, zone)
            add_peer(server, zone)

        server, address = await start_server(register, "127.0.0.1:0", me=EDGE, keys=keys, refusals=zone.refusals)
        say(address)
        while len(zone.devices.members) < devices:
            await zone.changed.wait()
        say("ready")
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(
            serve_rounds, lambda n: asyncio.run_coroutine_threadsafe(_rounds(zone, weights, n), loop).result()
        )
        await server.stop(None)


async def _rounds(zone: Zone, weights: int, rounds: int) -> list[float]:
    seconds = []
    for _ in range(rounds):
        # New weights each time: the same question is asked once, whoever wants to know.
        theta = np.random.default_rng().random(weights, np.float32)
        began = time.perf_counter()
        answer = await zone.devices.direction(theta, zone.zone)
        seconds.append(time.perf_counter() - began)
        if not np.array_equal(answer.mean, theta) or answer.devices != len(zone.devices.members):
            raise RuntimeError("the mean of equal vectors is another one, or a device did not answer")
    return seconds


async def attend(address: str, first: int, count: int, weights: int, certs: Path | None) -> None:
    """So many devices."""
    heap.keep_freed_memory(heap.HOST)
    run = parse_run_file(RUN)
    model = Model("noop", weights, Metric("none", "", root=False, lower_is_better=True), 1)
    await asyncio.gather(
        *(
            _device(address, Hello(EDGE.name, f"d{number:03}", contract(run), model, np.ones(1)), certs)
            for number in range(first, first + count)
        )
    )


async def _device(address: str, hello: Hello, certs: Path | None) -> None:
    me = Identity("device", hello.device)
    keys = None if certs is None else Keys.load(folder_of(certs, me))
    answering: set[asyncio.Task[None]] = set()
    async with open_channel(address, server=EDGE, me=me, keys=keys) as channel:
        stream = Attending(channel, hello)
        async for message in stream.messages():
            if isinstance(message, Question) and message.weights is not None:
                task = asyncio.create_task(stream.answer(message.id, Direction(message.weights, 1, 0.0)))
                answering.add(task)
                task.add_done_callback(answering.discard)


def main() -> None:
    """One process of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--weights", type=int, required=True)
    parser.add_argument("--attend", help="be devices, of the edge with this address")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.attend is None:
        asyncio.run(serve(given.devices, given.weights, given.certs))
    else:
        end_with_parent()
        asyncio.run(attend(given.attend, given.first, given.devices, given.weights, given.certs))


if __name__ == "__main__":
    main()
