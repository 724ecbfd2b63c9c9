"""Bytes of messages, counted where gRPC makes and takes them, on both sides of every kind of call."""

from collections import Counter

import pytest

from sgfusion.wire.channel import open_channel, start_server, stop_server
from sgfusion.wire.identity import ALLOWED, Identity
from sgfusion.wire.measures import Measures, Traffic
from sgfusion.wire.status import Refusals
from tests.cluster.keys import CLOUD, run_async
from tests.cluster.rpcs import RPCS, Rpc, register_greeters

SENT, ANSWERED = b"\x0a\x03ash", b"welcome"


async def called(rpc: Rpc, times: int, server: Traffic | None, client: Measures) -> None:
    """Call it over a real socket, by whoever may."""
    role = min(ALLOWED[rpc.path])
    me = Identity(role, "ash" if role in ("edge", "device") else "")
    serving, address = await start_server(
        register_greeters, "127.0.0.1:0", me=CLOUD, keys=None, refusals=Refusals(), traffic=server
    )
    try:
        async with open_channel(address, server=CLOUD, me=me, keys=None) as channel:
            client.metered(channel)
            for _ in range(times):
                assert await rpc.call(channel, SENT) == [ANSWERED]
    finally:
        await stop_server(serving, 1.0)


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.path.rpartition("/")[2])
def test_what_one_side_sends_the_other_receives(rpc: Rpc) -> None:
    server, client = Traffic(), Measures()
    client.traffic = Traffic()
    run_async(called(rpc, 3, server, client))
    name = rpc.path.rpartition("/")[2]
    assert client.traffic.sent == Counter({(name, "client"): 3 * len(SENT)})
    assert client.traffic.received == Counter({(name, "client"): 3 * len(ANSWERED)})
    assert server.received == Counter({(name, "server"): 3 * len(SENT)})
    assert server.sent == Counter({(name, "server"): 3 * len(ANSWERED)})


def test_without_metrics_nothing_is_counted_and_calls_are_as_they_were() -> None:
    run_async(called(RPCS[0], 1, None, Measures()))
    with Measures().phase("own"), Measures().phase("own"):  # one context for all, however nested
        pass
