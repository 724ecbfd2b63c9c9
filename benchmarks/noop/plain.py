"""Plain gRPC: bidirectional streams of bytes, one connection a device; scatter, gather, a mean in float64.

The floor: what somebody would write by hand who needs none of what a round is otherwise checked for.
"""

import argparse
import asyncio
import time
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import numpy.typing as npt

from benchmarks.noop.parent import end_with_parent, say, serve_rounds
from sgfusion.wire.channel import Keys
from sgfusion.wire.identity import Identity, folder_of

METHOD = "/noop/Attend"
EDGE = Identity("edge", "noop")
OWN_CONNECTION = ("grpc.use_local_subchannel_pool", 1)
Stream = Any  # grpc.aio.ServicerContext, whose types know of messages only


class _Server(grpc.GenericRpcHandler):
    def __init__(self, devices: int, weights: int) -> None:
        self._devices, self._weights = devices, weights
        self._streams: list[Stream] = []
        self._all_here = asyncio.Event()

    def service(self, _details: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(self._attend)

    async def _attend(self, _requests: Any, context: Stream) -> None:
        self._streams.append(context)
        if len(self._streams) == self._devices:
            self._all_here.set()
        await asyncio.Event().wait()  # until the server stops

    async def run(self, certs: Path | None) -> None:
        """Serve, and do rounds for the parent."""
        server = grpc.aio.server(handlers=[self])
        if certs is None:
            port = server.add_insecure_port("127.0.0.1:0")
        else:
            keys = Keys.load(folder_of(certs, EDGE))
            credentials = grpc.ssl_server_credentials([(keys.key, keys.certificate)], keys.ca, require_client_auth=True)
            port = server.add_secure_port("127.0.0.1:0", credentials)
        await server.start()
        say(f"127.0.0.1:{port}")
        await self._all_here.wait()
        say("ready")
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(
            serve_rounds, lambda rounds: asyncio.run_coroutine_threadsafe(self._rounds(rounds), loop).result()
        )
        await server.stop(None)

    async def _rounds(self, rounds: int) -> list[float]:
        seconds = []
        for _ in range(rounds):
            theta = np.random.default_rng().random(self._weights, np.float32)
            began = time.perf_counter()
            mean = await self._round(theta)
            seconds.append(time.perf_counter() - began)
            if not np.array_equal(mean, theta):
                raise RuntimeError("the mean of equal vectors is another one")
        return seconds

    async def _round(self, theta: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        sent = theta.tobytes()

        async def exchange(stream: Stream) -> bytes:
            await stream.write(sent)
            return await stream.read()  # type: ignore[no-any-return]

        total = np.zeros(self._weights)
        for answer in await asyncio.gather(*map(exchange, self._streams)):
            total += np.frombuffer(answer, "<f4")
        return (total / len(self._streams)).astype(np.float32)


async def attend(address: str, first: int, count: int, certs: Path | None) -> None:
    """So many devices, which send back what comes."""
    await asyncio.gather(*(_device(address, f"d{number:03}", certs) for number in range(first, first + count)))


async def _device(address: str, name: str, certs: Path | None) -> None:
    if certs is None:
        channel = grpc.aio.insecure_channel(address, [OWN_CONNECTION])
    else:
        keys = Keys.load(folder_of(certs, Identity("device", name)))
        credentials = grpc.ssl_channel_credentials(keys.ca, keys.key, keys.certificate)
        options = [OWN_CONNECTION, ("grpc.ssl_target_name_override", EDGE.server_name)]
        channel = grpc.aio.secure_channel(address, credentials, options)
    async with channel:
        stream: Any = channel.stream_stream(METHOD)()
        while (message := await stream.read()) is not grpc.aio.EOF:
            await stream.write(message)


def main() -> None:
    """One process of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--weights", type=int, required=True)
    parser.add_argument("--attend", help="be devices, of the server with this address")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.attend is None:
        asyncio.run(_Server(given.devices, given.weights).run(given.certs))
    else:
        end_with_parent()
        asyncio.run(attend(given.attend, given.first, given.devices, given.certs))


if __name__ == "__main__":
    main()
