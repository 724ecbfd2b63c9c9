"""A deployment from an edge's or a device's own host, by its own keys: real handshakes with servers of each kind."""

import asyncio
import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc.aio
import pytest

from console.doctor import handshake
from console.doctor.findings import Finding, broken, look, ok
from console.doctor.handshake import Met, Shown, meet, met_findings
from console.doctor.vantage import Vantage, View, look_from, view_findings
from edge.memory import Memory
from sgfusion.plan import Draws, Peer, ZonePlan, ZoneState
from sgfusion.wire.channel import Keys
from sgfusion.wire.identity import Identity
from sgfusion.wire.server_rpc import add_description
from tests.cluster.keys import CLOUD, Issuer, run_async, serving
from tests.cluster.rpcs import register_greeters
from tests.console.doctor.test_certificates import write
from tests.console.doctor.test_deployment import beside
from tests.containers.test_edge_errors import silence

ASH, BIRCH, CEDAR = (Identity("edge", name) for name in ("ash", "birch", "cedar"))
DEVICE = Identity("device", "u1")
ISSUER = Issuer()
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SHOWN = Shown(CLOUD.uri, frozenset({CLOUD.server_name}), NOW - timedelta(9), NOW + timedelta(days=300), by_our_ca=True)
MET = Met("10.0.0.1:7070", shown=SHOWN, seconds=0.012, now=NOW)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    write(tmp_path / "keys", ISSUER.keys(ASH, ends=90))
    return tmp_path / "keys"


def fault(met: Met) -> Finding:
    """The one thing that is wrong."""
    (found,) = [finding for finding in met_findings("cloud", met, CLOUD, ASH) if finding.verdict != "ok"]
    return found


def test_all_is_well() -> None:
    well = "the cloud at 10.0.0.1:7070 answers in 12 ms, proves who it is and takes us for edge ash"
    assert met_findings("cloud", MET, CLOUD, ASH) == [ok("cloud", well)]


@pytest.mark.parametrize(
    ("met", "verdict", "text"),
    [
        (Met("10.0.0.1:7070", "Connection refused"), "broken", "the cloud at 10.0.0.1:7070 is not reached: Connection"),
        (
            replace(MET, shown=replace(SHOWN, by_our_ca=False)),
            "broken",
            "who answers at 10.0.0.1:7070 has a certificate",
        ),
        (
            replace(MET, shown=replace(SHOWN, uri=BIRCH.uri, names=frozenset({BIRCH.server_name}))),
            "broken",
            "at 10.0.0.1:7070 answers edge birch, and not the cloud",
        ),
        (replace(MET, shown=replace(SHOWN, ends=NOW + timedelta(days=3.5))), "look", "the certificate of the cloud at"),
        (replace(MET, shown=replace(SHOWN, ends=NOW)), "broken", "the certificate of the cloud at 10.0.0.1:7070 ended"),
        (
            replace(MET, refused="it hung up"),
            "broken",
            "the cloud at 10.0.0.1:7070 does not take our certificate, of edge",
        ),
    ],
)
def test_each_fault(met: Met, verdict: str, text: str) -> None:
    found = fault(met)
    assert (found.check, found.verdict) == ("cloud", verdict)
    assert found.text.startswith(text)


def test_the_end_of_a_strangers_certificate_is_not_ours_to_tell() -> None:
    assert MET.left == timedelta(days=300)
    assert replace(MET, shown=replace(SHOWN, by_our_ca=False)).left is None


@pytest.mark.parametrize("host", ["a..b", "x" * 70 + ".example"])
def test_a_host_that_is_no_name_is_told(keys: Path, host: str) -> None:
    assert asyncio.run(meet(f"{host}:7070", keys)).error


def test_a_name_server_that_hangs_holds_nobody_up(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop's own threads are waited for at its end."""
    asked, answer = threading.Event(), threading.Event()

    def hangs(*_: object, **__: object) -> list[object]:
        asked.set()
        answer.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    began = time.monotonic()
    try:
        assert asyncio.run(meet("slow.example:7070", keys, 0.2)).error == "no answer within 0.2 s"
        assert asked.is_set()
        assert time.monotonic() - began < 30
    finally:
        answer.set()


def test_a_certificate_of_the_future_says_that_the_clock_is_behind() -> None:
    behind = fault(replace(MET, shown=replace(SHOWN, begins=NOW + timedelta(hours=1))))
    assert (behind.check, behind.verdict) == ("clock", "broken")


def test_a_device_looks_at_its_edges_and_no_cloud_is_missed(tmp_path: Path) -> None:
    """Where its networks keep it from the cloud, a healthy device is told to be healthy."""
    write(tmp_path, ISSUER.keys(DEVICE, ends=90))

    async def scene() -> View:
        async with serving(add_description, me=ASH, keys=ISSUER.keys(ASH, ends=90)) as ash:
            servers = ((ASH, ash), (BIRCH, ash), (CEDAR, "127.0.0.1:1"))
            return await beside(lambda: look_from(Vantage(servers, tmp_path, DEVICE)))

    seen = run_async(scene(), 60)
    assert set(seen.told) == {ASH}, "nobody believes a server that is not who it should be"
    ash, birch, cedar, *_, role = view_findings(seen)
    assert (ash.check, ash.verdict) == ("edge ash", "ok")
    assert ash.text.endswith("proves who it is and takes us for device u1")
    assert (birch.check, birch.verdict) == ("edge birch", "broken")
    assert birch.text.endswith("answers edge ash, and not the edge birch")
    assert cedar == broken(
        "edge cedar",
        "the edge cedar at 127.0.0.1:1 is not reached: Connection refused",
        "start it, or correct its address; does a firewall drop it?",
    )
    assert role == ok("role", "device u1 calls edges alone: no cloud is dialled")


def test_servers_of_each_kind(keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "WITHIN", 5.0)
    stranger, ended, mixed = tmp_path / "stranger", tmp_path / "ended", tmp_path / "mixed"
    other = Issuer().keys(ASH, ends=90)
    write(stranger, other)
    write(ended, ISSUER.keys(ASH, begins=-9, ends=-1))
    write(mixed, Keys(ISSUER.ca, other.certificate, other.key))

    async def scene() -> dict[str, Finding]:
        found = {}
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD, ends=90)) as address:
            found["fine"] = met_findings("cloud", await meet(address, keys), CLOUD, ASH)[0]
            for name, folder in (("stranger", stranger), ("ended", ended), ("mixed", mixed), ("none", tmp_path)):
                found[name] = fault(await meet(address, folder))
        async with serving(register_greeters, me=BIRCH, keys=ISSUER.keys(BIRCH, ends=90)) as address:
            found["another"] = fault(await meet(address, keys))
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD, ends=3.5)) as address:
            found["soon"] = fault(await meet(address, keys))
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD, begins=-9, ends=-2.5)) as address:
            found["over"] = fault(await meet(address, keys))
        async with serving(register_greeters) as address:
            found["plain"] = fault(await meet(address, keys))
        with silence() as address:
            found["silent"] = fault(await meet(address, keys, 0.3))
        found["nobody"] = fault(await meet("127.0.0.1:1", keys))
        found["nowhere"] = fault(await meet("cloud.onion:7070", keys))
        return found

    found = {name: finding.text for name, finding in run_async(scene(), 60).items()}
    assert "proves who it is and takes us for edge ash" in found["fine"]
    assert "of another CA than the ca.crt here" in found["stranger"]
    assert "does not take our certificate, of edge ash" in found["ended"]
    assert "does not take our certificate, of edge ash" in found["mixed"]
    assert f"the keys in {tmp_path} cannot be used (No such file or directory)" in found["none"]
    assert "answers edge birch, and not the cloud" in found["another"]
    assert found["soon"].endswith("ends in 3 days")
    assert found["over"].endswith("ended 2 days ago")
    assert "it does not speak TLS as we do" in found["plain"]
    assert found["silent"].endswith("is not reached: no answer within 0.3 s")
    assert found["nobody"].endswith("is not reached: Connection refused")
    assert "its name is unknown here" in found["nowhere"]


def earlier(_server: grpc.aio.Server) -> None:
    """As a server of an earlier version, which does not say what it is."""


def plan_of(*peers: Peer, number: int = 0) -> ZonePlan:
    return ZonePlan(1, number, "all have reported", Draws("fixed"), peers)


def test_peers_of_the_last_plan(keys: Path, tmp_path: Path) -> None:
    """One is there, nobody is at the second; nobody dials who has left, is lost or never came, nor the zone itself."""

    async def scene() -> View:
        async with (
            serving(earlier, keys=ISSUER.keys(CLOUD, ends=90)) as cloud,
            serving(earlier, me=BIRCH, keys=ISSUER.keys(BIRCH, ends=3.5)) as birch,
        ):
            peers = [
                Peer(0, "ash", "127.0.0.1:2", ZoneState.TRAINING),
                Peer(1, "birch", birch, ZoneState.TRAINING),
                Peer(2, "cedar", "127.0.0.1:1", ZoneState.DONE),
                Peer(3, "elm", "127.0.0.1:3", ZoneState.LEFT),
                Peer(4, "fir", "127.0.0.1:4", ZoneState.LOST),
                Peer(5, "gum", "", ZoneState.EXPECTED),
            ]
            Memory(tmp_path / "state").keep_plan(plan_of(*peers))
            vantage = Vantage(((CLOUD, cloud),), keys, ASH, tmp_path / "state")
            return await beside(lambda: look_from(vantage))

    cloud, untold, peers, soon, lost = view_findings(run_async(scene(), 60))
    assert (cloud.check, cloud.verdict) == ("cloud", "ok")
    assert untold == ok(
        "versions", "the cloud, edge birch do not tell version and time: they are of an earlier version"
    )
    assert peers.text.startswith("1 of 2 answer, prove who they are and take us, the slowest in ")
    assert (soon.check, soon.verdict, soon.text[-9:]) == ("zone birch", "look", "in 3 days")
    assert (lost.check, lost.verdict) == ("zone cedar", "broken")
    assert lost.text == "the edge cedar at 127.0.0.1:1 is not reached: Connection refused"


def test_a_state_without_a_plan_anothers_and_one_that_cannot_be_read(keys: Path, tmp_path: Path) -> None:
    vantage = Vantage(((CLOUD, "127.0.0.1:1"),), keys, ASH, tmp_path / "state")

    def told() -> Finding:
        (_, found) = view_findings(look_from(vantage))
        return found

    assert told() == look(
        "peers", f"{tmp_path / 'state'} holds no plan yet", "look again when the edge has enrolled: its log says when"
    )
    Memory(tmp_path / "state").keep_plan(plan_of(Peer(0, "ash", "a:1", ZoneState.TRAINING)))
    assert told() == ok("peers", "none in the last plan that is there")
    Memory(tmp_path / "state").keep_plan(plan_of(Peer(0, "elm", "a:1", ZoneState.TRAINING)))
    assert told() == broken(
        "peers", f"{tmp_path / 'state'} is of zone elm, and the keys are those of edge ash", "give its own --state"
    )
    plan = (tmp_path / "state" / "plan.json").read_text()
    for other in ("half of", plan.replace('"training"', '"a state of a later version"')):
        assert other != plan
        (tmp_path / "state" / "plan.json").write_text(other)
        assert told().text.startswith(f"the plan in {tmp_path / 'state'} cannot be read: ")
