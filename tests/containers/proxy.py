"""A TCP proxy that delays: what comes in leaves a tenth of a second later, in order, as much of it as there is.

Run inside of a container by its text alone, so nothing is imported here but the standard library:
`python3 -c TEXT 7070=edge-ash:7070 ...`, each a port to listen on and where it leads.
"""

import asyncio
import sys

DELAY = 0.1
"""Seconds, each way: 200 ms there and back."""
PIECE = 1 << 16


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, to its end. Reading goes on while what was read waits, so that a delay limits no throughput."""
    clock = asyncio.get_running_loop().time
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def read() -> None:
        while piece := await reader.read(PIECE):
            under_way.put_nowait((clock() + DELAY, piece))
        under_way.put_nowait((clock() + DELAY, b""))

    async def write() -> None:
        while True:
            due, piece = await under_way.get()
            await asyncio.sleep(due - clock())
            if not piece:
                writer.write_eof()
                return
            writer.write(piece)
            await writer.drain()

    async with asyncio.TaskGroup() as both:
        both.create_task(read())
        both.create_task(write())


async def serve(port: int, host: str, to: int, *, listen: str = "0.0.0.0") -> asyncio.Server:  # noqa: S104 (in a container)
    """Listen on the port, and lead all who come to another."""

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(host, to)
        except OSError as error:  # its caller will try again
            print(f"{host}:{to}: {error}", flush=True)
            writer.close()
            return
        print(f"leads to {host}:{to}", flush=True)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(carry(reader, back))
                both.create_task(carry(there, writer))
        except* OSError:  # what breaks off on one side does so on the other
            pass
        finally:
            writer.close()
            back.close()

    return await asyncio.start_server(lead, listen, port)


async def serve_all(pairs: list[str]) -> None:
    servers = []
    for pair in pairs:
        port, _, place = pair.partition("=")
        host, _, to = place.rpartition(":")
        servers.append(await serve(int(port), host, int(to)))
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(serve_all(sys.argv[1:]))
