"""What docs/edge.md says of errors: the code that people run is brought to say each of them, in the page's words.

No engine is needed here; what only containers show is in test_edge_elsewhere.py.
"""

import ast
import asyncio
import io
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from console.reach import reach
from console.status import status_lines, status_table
from device.attendance import AddressBook, attend
from device.main import Hosted, run_devices
from device.measures import DeviceMeasures
from edge.cloud_link import CloudLink
from edge.main import run_edge
from edge.memory import Memory
from edge.peers import Peers
from edge.training import Training
from edge.zone import Zone
from sgfusion import heap
from sgfusion.errors import SGFusionError
from sgfusion.plan import Peer, ZoneState
from sgfusion.reports import RunStatus
from sgfusion.runfile import RunFile, contract
from sgfusion.wire.attending import Hello
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.edge_rpc import add_edge
from sgfusion.wire.identity import Identity
from tests.cloud.clouds import ISSUER, Cluster, a_cloud
from tests.cloud.values import MODEL, a_run
from tests.cluster.harness import run_of
from tests.cluster.keys import CLOUD, OPERATOR, Issuer, run_async, serving
from tests.cluster.rpcs import register_greeters
from tests.containers.edge_page import explained, quoted

ZONE = "wielkopolskie"
EDGE, DEVICE = Identity("edge", ZONE), Identity("device", "d0")
DOCKERS_OWN = ("pull access denied", "no such host")
"""Said by the engine when it asks a registry, which no test does."""
HISTOGRAM = np.array([0.25, 0.25, 0.5, 0.0])


@contextmanager
def logged() -> Iterator[list[str]]:
    """What services log from here on that is no routine, as `grep -v INFO` leaves it."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("sgfusion")
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.removeHandler(handler)


@contextmanager
def going_on(*works: Awaitable[Any]) -> Iterator[None]:
    """While these go on, which never end."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def first(found: list[str]) -> str:
    while not found:
        await asyncio.sleep(0.01)
    return found[0]


def refused(work: Callable[[], object]) -> str:
    """What a command ends with."""
    with pytest.raises(SGFusionError) as error:
        work()
    return str(error.value)


def write_keys(folder: Path, keys: Keys) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in (("ca.crt", keys.ca), ("tls.crt", keys.certificate), ("tls.key", keys.key)):
        (folder / name).write_bytes(content)
    return folder


# The edge does not start


def test_keys_that_are_of_no_use(tmp_path: Path) -> None:
    folder = write_keys(tmp_path / "keys", ISSUER.keys(EDGE))
    assert explained("tls.crt is the certificate of", refused(lambda: Keys.load(folder, Identity("edge", "lublin"))))
    behind = refused(lambda: Keys.load(folder, EDGE, now=lambda: time.time() - 9e6))
    assert explained("tls.crt is valid from", behind)
    write_keys(folder, ISSUER.keys(EDGE, begins=-9, ends=-1))
    assert explained("tls.crt ended on", refused(lambda: Keys.load(folder, EDGE)))


@pytest.mark.parametrize("setting", ["cloud", "advertise"])
def test_an_address_without_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setattr(Memory, "hold", lambda _: None)
    given: dict[str, Any] = {"cloud": "127.0.0.1:1", "advertise": "127.0.0.1:2", setting: "cloud.example"}
    edge = run_edge(ZONE, **given, state=tmp_path, listen="127.0.0.1:0", keys=None, expected=1)
    assert explained("address is", refused(lambda: run_async(edge)))


# It does not reach its cloud


async def enrolment(address: str, keys: Keys) -> str:
    """What an edge logs first that cannot enrol there."""
    zone: Any = SimpleNamespace(zone=ZONE)
    async with open_channel(address, server=CLOUD, me=EDGE, keys=keys) as channel:
        with logged() as found, going_on(CloudLink(zone, channel, "127.0.0.1:1").run()):
            return await first(found)


def test_a_name_that_nobody_has() -> None:
    """No resolver asks anybody for names that end in .onion."""
    said = run_async(enrolment("cloud.onion:7070", ISSUER.keys(EDGE)))
    assert explained("errors resolving", said.replace("cloud.onion", "cloud.example"))


def test_a_port_that_nobody_listens_on() -> None:
    assert explained("no connection to … (Failed", run_async(enrolment("127.0.0.1:1", ISSUER.keys(EDGE))))


@contextmanager
def silence() -> Iterator[str]:
    """The address of a listener that has no room for one more: the next who knock are not even refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(server.getsockname())
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            for each in waiting:
                each.close()


def test_nobody_answers() -> None:
    """gRPC has two clocks for the five seconds of an attempt, and either may be the first."""
    with silence() as address:
        said = run_async(enrolment(address, ISSUER.keys(EDGE)))
    assert explained("no connection to … (… connect()", said) or explained("no connection to … (tcp", said), said


@pytest.mark.parametrize(
    ("begins", "server", "served", "mine"),
    [
        ("no connection to …: who answers", Identity("edge", "lubelskie"), {}, {}),
        ("no connection to …: its certificate is of", CLOUD, {"issuer": Issuer()}, {}),
        ("no connection to …: its certificate has ended", CLOUD, {"ends": -0.5}, {}),
        ("no connection to … (Socket closed)", CLOUD, {}, {"ends": -0.5}),
    ],
)
def test_certificates_that_prove_nothing(
    begins: str, server: Identity, served: dict[str, Any], mine: dict[str, Any]
) -> None:
    issuer = served.pop("issuer", ISSUER)

    async def work() -> str:
        async with serving(register_greeters, me=server, keys=issuer.keys(server, **served)) as address:
            return await enrolment(address, ISSUER.keys(EDGE, **mine))

    said = run_async(work())
    assert explained(begins, said), said
    assert "is the service up" not in said or "Socket closed" in said


# Its devices


async def attendance(address: str, hello: Hello) -> str:
    """What a device logs first that cannot attend there."""
    device: Any = SimpleNamespace(zone=hello.zone, device=hello.device, hello=hello, measures=DeviceMeasures())
    with logged() as found, going_on(attend(device, AddressBook({hello.zone: address}), ISSUER.keys(DEVICE))):
        while not (told := [line for line in found if line.startswith("device d0")]):
            await asyncio.sleep(0.01)
        return told[0]


@asynccontextmanager
async def an_edge(zone: Zone) -> AsyncIterator[str]:
    async with serving(
        lambda server: add_edge(server, zone), me=EDGE, keys=ISSUER.keys(EDGE), refusals=zone.refusals
    ) as address:
        yield address


def a_run_of_the_zone(*overrides: str) -> RunFile:
    return a_run(*overrides, zones=(ZONE,))


def a_hello(device: str = "d0", run: RunFile | None = None) -> Hello:
    return Hello(ZONE, device, contract(run or a_run_of_the_zone()), MODEL, HISTOGRAM)


def test_devices_that_come_before_the_run_or_with_another(tmp_path: Path) -> None:
    async def work() -> tuple[str, str]:
        zone = Zone(ZONE, Memory(tmp_path), keys=None, expected=1)
        async with an_edge(zone) as address:
            early = await attendance(address, a_hello())
            zone.take_run(a_run_of_the_zone().to_toml(), 0)
            return early, await attendance(address, a_hello(run=a_run_of_the_zone("seed=6")))

    early, other = run_async(work())
    assert explained("edge of zone", early)
    assert explained("has contract", other)


def test_a_device_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "keep_freed_memory", lambda _: None)
    run = run_of("zones.names=['ash']")
    host = run_devices(run, Hosted(), edges={"ash": "127.0.0.1:1"}, state=tmp_path, certs=tmp_path / "keys", threads=1)
    said = refused(lambda: run_async(host))
    assert explained("/keys/device-", said.replace(str(tmp_path), "")), said


# What the cloud and other edges see


@contextmanager
def running(folder: Path, cluster: Cluster, expected: int) -> Iterator[Zone]:
    """The zone's edge as far as the cloud sees it, at an address of its own."""
    zone = Zone(ZONE, Memory(folder), keys=None, expected=expected)
    channel = open_channel(cluster.address, server=CLOUD, me=EDGE, keys=ISSUER.keys(EDGE))
    with going_on(CloudLink(zone, channel, f"{ZONE}:1").run(), Training(zone).run()):
        yield zone


def shown(status: RunStatus) -> str:
    """As `sgfusion status` prints it."""
    printed = io.StringIO()
    Console(width=200, file=printed).print(status_table(status, 200))
    return "\n".join([printed.getvalue(), *status_lines(status, 0.0)])


def test_a_zone_that_waits_for_its_devices(tmp_path: Path) -> None:
    async def work() -> str:
        run = a_run_of_the_zone("deadlines.zones=0.5")
        async with a_cloud(tmp_path / "cloud", run) as cluster:
            with running(tmp_path / "edge", cluster, expected=9) as zone:
                await zone.enrolled.wait()
                for number in range(8):
                    zone.joined(zone.attend(a_hello(f"d{number}")))
                return shown(await cluster.status_when(lambda status: any(zone.overdue for zone in status.zones)))

    said = run_async(work())
    for words in ("gathering", "8/9", "overdue: "):
        assert explained(words, said), said


def test_a_second_edge_with_the_same_keys(tmp_path: Path) -> None:
    async def work() -> tuple[str, list[str]]:
        async with a_cloud(tmp_path / "cloud", a_run_of_the_zone()) as cluster:
            with logged() as found, running(tmp_path / "edge", cluster, expected=1) as zone:
                await zone.enrolled.wait()
                await cluster.enrol(ZONE, port=2)
                told = await first(found)
                await cluster.enrol("podlaskie")  # news in the directory, but not of this
                status = await cluster.status_when(lambda status: len(status.zones) == 2)
                return told, [event.text for event in status.events]

    told, events = run_async(work())
    assert explained("the cloud now has it at", told), told
    assert any(explained("zone wielkopolskie moved to", text) for text in events), events


def test_a_zone_of_which_nothing_is_heard(tmp_path: Path) -> None:
    async def work() -> list[str]:
        run = a_run_of_the_zone("deadlines.zones=0.5")
        async with a_cloud(tmp_path, run, lease=0.2) as cluster:
            await cluster.enrol(ZONE)
            status = await cluster.status_when(lambda status: status.zones[0].state is ZoneState.LEFT)
            return [event.text for event in status.events]

    events = run_async(work())
    for begins in ("zone wielkopolskie is lost", "zone wielkopolskie counts as left"):
        assert any(explained(begins, text) for text in events), events


def test_a_peer_that_is_not_reached() -> None:
    async def work() -> str:
        peers = Peers("lubelskie", None, budget=0.3)
        peers.learn([Peer(3, ZONE, "127.0.0.1:1", ZoneState.TRAINING)])
        with logged() as found, suppress(SGFusionError):
            await peers.direction(3, np.ones(3, np.float32), round=468, contract="c", fingerprint="f")
        await peers.close()
        return found[0]

    said = run_async(work())
    assert explained("round 468 without zone wielkopolskie", said), said


def test_the_progress_of_another_run(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.keep_run(a_run_of_the_zone().to_toml())
    said = refused(lambda: memory.keep_run(a_run_of_the_zone("seed=6").to_toml()))
    assert explained("/state holds", said.replace(str(tmp_path), "/state")), said


def test_an_operator_with_keys_of_another_run(tmp_path: Path) -> None:
    """`status` says so, and `follow` at once, though it would wait for a cloud that is away."""
    folder = write_keys(tmp_path, Issuer().keys(OPERATOR))

    async def work() -> list[str]:
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD)) as address:
            reached = reach(None, address, folder, insecure=False)
            asked = [lambda: reached.ask(lambda client: client.status()), reached.refuse_a_stranger]
            return [await asyncio.to_thread(refused, question) for question in asked]

    for said in run_async(work()):
        assert explained("no connection to …: its certificate is of", said), said
    away = reach(None, "127.0.0.1:1", folder, insecure=False)
    away.refuse_a_stranger()
    assert "is the service up" in refused(lambda: away.ask(lambda client: client.status()))


def test_every_word_that_the_page_quotes_is_brought_about_by_a_test() -> None:
    """Here or in test_edge_elsewhere.py: one of them has words that begin so, other than in a docstring."""
    beside = Path(__file__).with_name("test_edge_elsewhere.py")
    nodes = [node for path in (Path(__file__), beside) for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    asked = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
    begins = tuple(words for words in asked if isinstance(words, str) and len(words) > 8)
    for words in quoted():
        assert words in DOCKERS_OWN or words in asked or words.startswith(begins), words
