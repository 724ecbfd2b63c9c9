"""A cluster from outside: real servers that are fine, strangers, silent, skewed or of another protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import grpc.aio
import pytest

from console.doctor import deployment
from console.doctor.deployment import Answer, Deployment, deployment_findings, look_at_deployment
from console.doctor.findings import Finding, ok
from console.reach import Reached
from sgfusion.errors import UnavailableError, UnprovenError
from sgfusion.plan import ZoneState
from sgfusion.proto.v1 import cloud_pb2
from sgfusion.reports import NOT_YET, Attendance, RunStatus, ZoneStatus
from sgfusion.waiting import Waiting
from sgfusion.wire.identity import Identity
from sgfusion.wire.server_rpc import add_description
from tests.cloud.clouds import ISSUER
from tests.cluster.keys import CLOUD, OPERATOR, Issuer, run_async, serving
from tests.cluster.rpcs import BY_NAME, register, register_greeters
from tests.console.doctor.test_certificates import write
from tests.containers.test_edge_errors import silence
from tests.edge.zones import an_edge
from tests.edge.zones import keys_of as edge_keys

T = TypeVar("T")
KEYS = ISSUER.keys(OPERATOR)
GET_STATUS = BY_NAME["GetStatus"].path
NOW = 1_795_000_000.0


def a_status(*zones: ZoneStatus, **more: Any) -> RunStatus:
    return RunStatus("demo", 30, 1, "all have reported", zones, finished=False, **{"version": "0.2.0", **more})


def zone(name: str = "ash", state: ZoneState = ZoneState.TRAINING, **more: Any) -> ZoneStatus:
    return ZoneStatus(0, name, more.pop("address", "10.0.0.7:7070"), state, 4, **{"version": "0.2.0", **more})


CLOUDS = Answer(0.012, skew=0.0)
SEEN = Deployment("10.0.0.1:7070", CLOUDS, a_status(zone()), {"ash": Answer(0.034)}, "0.2.0")


def only(seen: Deployment) -> Finding:
    (found,) = [finding for finding in deployment_findings(seen) if finding.verdict != "ok"]
    return found


def test_all_is_well() -> None:
    assert deployment_findings(SEEN) == [
        ok("cloud", "10.0.0.1:7070 answers in 12 ms: run demo, plan 1"),
        ok("clock", "within 0.1 s of the cloud's"),
        ok("versions", "the cloud, 1 edge and this console are of 0.2.0"),
        ok("zones", "1 of 1 edges answer, the slowest in 34 ms"),
    ]


def test_devices_that_start_as_their_edge_did_are_not_missing_yet() -> None:
    starting = zone(attendance=Attendance(2, ("u1",), {"u2": NOT_YET}))
    assert {finding.verdict for finding in deployment_findings(replace(SEEN, status=a_status(starting)))} == {"ok"}


def test_who_answers_and_still_holds_others_up() -> None:
    slow = zone(waiting=Waiting(12, 9.0, (), ("u1", "u2")))
    found = only(replace(SEEN, status=a_status(slow)))
    assert (found.check, found.text) == ("zone ash", "round 12 waits 9 s for its devices u1, u2")
    away = {"ash": Answer(2.0, UnavailableError("is it up?"))}
    assert "waits" not in only(replace(SEEN, status=a_status(slow), edges=away)).text


@pytest.mark.parametrize(
    ("skew", "verdict", "text"),
    [
        (-30.0, "look", "the cloud's clock is 30.0 s behind this host's: times in logs and events do not match"),
        (2.5, "look", "the cloud's clock is 2.5 s ahead of this host's: times in logs and events do not match"),
        (7200.0, "broken", "the cloud's clock is 7200.0 s ahead of this host's: certificates that are made on one"),
        (None, "look", "it is of an earlier version: it does not tell its time"),
    ],
)
def test_clocks_that_differ(skew: float | None, verdict: str, text: str) -> None:
    found = only(replace(SEEN, cloud=replace(CLOUDS, skew=skew)))
    assert found.verdict == verdict
    assert found.text.startswith(text)


def test_an_edges_clock_that_differs() -> None:
    seen = replace(SEEN, edges={"ash": Answer(0.034, skew=-30.0)})
    assert only(seen).text == "edge ash's clock is 30.0 s behind this host's: times in logs and events do not match"
    assert ok("clock", "within 0.1 s of the cloud's") in deployment_findings(seen)


@pytest.mark.parametrize(
    ("seen", "check", "text"),
    [
        (zone(state=ZoneState.EXPECTED, address=""), "zone ash", "its edge has not enrolled"),
        (zone(state=ZoneState.LEFT), "zone ash", "it has left the run"),
        (zone(state=ZoneState.LOST), "zone ash", "the cloud has not heard of it for a lease"),
        (zone(overdue="waits for u1"), "zone ash", "overdue: waits for u1"),
        (zone(attendance=Attendance(2, (), {"u1": "gone"})), "zone ash", "missing: u1 (gone)"),
        (zone(diverged="not finite"), "zone ash", "diverged: not finite"),
    ],
)
def test_zones_that_are_in_trouble(seen: ZoneStatus, check: str, text: str) -> None:
    found = only(replace(SEEN, status=a_status(seen)))
    assert (found.check, found.verdict, found.text) == (check, "look", text)


@pytest.mark.parametrize(
    ("status", "here", "text"),
    [
        (a_status(zone()), "0.3.0", "this console of 0.3.0; the cloud, edge ash of 0.2.0"),
        (a_status(zone(), version="0.3.0"), "0.3.0", "this console, the cloud of 0.3.0; edge ash of 0.2.0"),
        (
            a_status(zone(version=""), version=""),
            "0.3.0",
            "this console of 0.3.0; the cloud, edge ash of an earlier one that does not say",
        ),
        (
            a_status(zone(attendance=Attendance(3, ("u1", "u2"), other_versions=2))),
            "0.2.0",
            "this console, the cloud, edge ash of 0.2.0; 2 devices of ash of another than their edge",
        ),
    ],
)
def test_versions_that_differ(status: RunStatus, here: str, text: str) -> None:
    found = only(replace(SEEN, status=status, here=here))
    assert (found.check, found.verdict, found.text) == ("versions", "look", text)
    assert "the cloud first, then edges, then devices (docs/operate.md" in found.remedy


def test_the_version_of_a_zone_that_is_gone_is_nobodys_trouble() -> None:
    gone = replace(SEEN, status=a_status(zone(version="0.1.0", state=ZoneState.LEFT)), edges={})
    assert only(gone).text == "it has left the run"


def test_an_edge_that_has_not_reported_yet_has_not_said_its_version() -> None:
    found = deployment_findings(replace(SEEN, status=a_status(zone(version="", state=ZoneState.GATHERING))))
    assert ok("versions", "the cloud, 0 edges and this console are of 0.2.0") in found


def test_the_version_of_an_edge_that_we_do_not_reach_is_compared_all_the_same() -> None:
    """The cloud knows it. It is counted with none that is well."""
    away = {"ash": Answer(error=UnavailableError("no answer"))}
    found = deployment_findings(replace(SEEN, edges=away, status=a_status(zone(version="0.1.0"))))
    (skew,) = (finding for finding in found if finding.check == "versions")
    assert (skew.verdict, "edge ash of 0.1.0" in skew.text) == ("look", True)
    same = deployment_findings(replace(SEEN, edges=away))
    assert ok("versions", "the cloud, 0 edges and this console are of 0.2.0") in same


def test_certificates_of_servers_that_end() -> None:
    """Of one that has ended the certificate is told, and not that somebody cannot prove who he is."""
    soon, ended = timedelta(days=3.5), timedelta(days=-2.5)
    assert only(replace(SEEN, cloud=replace(CLOUDS, left=soon))).text == (
        "the certificate of the cloud at 10.0.0.1:7070 ends in 3 days"
    )
    edge = only(replace(SEEN, edges={"ash": Answer(0.03, left=soon)}))
    assert (edge.check, edge.verdict) == ("zone ash", "look")
    assert edge.text == "the certificate of its edge at 10.0.0.7:7070 ends in 3 days"
    stranger = UnprovenError("no connection: its certificate has ended")
    lost = only(replace(SEEN, edges={"ash": Answer(0.03, stranger, ended)}))
    assert (lost.verdict, lost.text) == ("broken", "the certificate of its edge at 10.0.0.7:7070 ended 2 days ago")
    cloud = only(replace(SEEN, cloud=Answer(0.03, stranger, ended)))
    assert (cloud.verdict, cloud.text) == ("broken", "the certificate of the cloud at 10.0.0.1:7070 ended 2 days ago")
    assert "restart it" in cloud.remedy
    fine = replace(
        SEEN, cloud=replace(CLOUDS, left=timedelta(days=31)), edges={"ash": Answer(0.03, left=timedelta(31))}
    )
    assert all(finding.verdict == "ok" for finding in deployment_findings(fine))


def test_a_run_that_waits_for_zones() -> None:
    assert only(replace(SEEN, status=a_status(zone(), overdue="3 of 4 zones"))).text == "overdue: 3 of 4 zones"


def test_an_edge_that_is_not_reached() -> None:
    lost = Answer(1.0, UnavailableError("no connection to 10.0.0.7:7070 (Connection refused)"))
    found = only(replace(SEEN, edges={"ash": lost}))
    assert (found.check, found.verdict) == ("zone ash", "broken")
    assert found.text.startswith("its edge at 10.0.0.7:7070 is not reached: no connection to")


# Real servers


def seen_of(address: str, issuer: Issuer = ISSUER) -> Callable[[], Deployment]:
    reached = Reached(address, issuer.keys(OPERATOR))
    return lambda: look_at_deployment(reached, clock=lambda: NOW)


async def beside(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


def broken_by(seen: Deployment) -> str:
    (finding,) = [each for each in deployment_findings(seen) if each.verdict == "broken"]
    assert finding.remedy
    return finding.text


async def served(
    status: cloud_pb2.Status, then: Callable[[str], Awaitable[T]], clock: Callable[[], float] | None = None
) -> T:
    """By a cloud that tells its host's clock, if it has one."""

    async def answer(_request: bytes, _context: Any) -> bytes:
        return cloud_pb2.GetStatusResponse(status=status).SerializeToString()

    def serves(server: grpc.aio.Server) -> None:
        register(server, {GET_STATUS: answer})
        if clock is not None:
            add_description(server, clock)

    async with serving(serves, keys=ISSUER.keys(CLOUD)) as address:
        return await then(address)


def test_a_cloud_whose_clock_is_an_hour_behind() -> None:
    status = cloud_pb2.Status(run="demo", rounds=3, time=NOW - 3700)
    seen = run_async(served(status, lambda address: beside(seen_of(address))))
    assert broken_by(seen).startswith("the cloud's clock is 37")


def test_a_clouds_clock_is_that_of_its_host_and_not_the_one_that_its_leases_go_by() -> None:
    """Which goes on as it did when somebody sets the host's clock, as doctor says to."""
    status = cloud_pb2.Status(run="demo", rounds=3, time=NOW - 3700)
    seen = run_async(served(status, lambda address: beside(seen_of(address)), lambda: NOW))
    (clock,) = [finding for finding in deployment_findings(seen) if finding.check == "clock"]
    assert clock.verdict == "ok", clock


def test_a_cloud_of_an_earlier_version() -> None:
    seen = run_async(served(cloud_pb2.Status(run="demo", rounds=3), lambda address: beside(seen_of(address))))
    assert only(seen).text == "it is of an earlier version: it does not tell its time"


def test_a_cloud_of_another_ca_one_that_refuses_us_and_one_that_does_not_know_the_call() -> None:
    async def scene() -> list[str]:
        texts = []
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD)) as address:
            texts.append(broken_by(await beside(seen_of(address, Issuer()))))
            device = Reached(address, ISSUER.keys(Identity("device", "u1")))
            texts.append(broken_by(await beside(lambda: look_at_deployment(device))))
        async with serving(lambda _server: None, keys=ISSUER.keys(CLOUD)) as address:
            texts.append(broken_by(await beside(seen_of(address))))
        return texts

    stranger, refused, other = run_async(scene())
    assert "does not prove who it is: no connection to" in stranger
    assert "of another CA than the ca.crt here" in stranger
    assert "refuses us: device u1 may not call /sgfusion.v1.CloudService/GetStatus" in refused
    assert "speaks another protocol: " in other


def test_a_cloud_that_says_what_makes_no_sense() -> None:
    status = cloud_pb2.Status(run="demo", rounds=3, zones=[cloud_pb2.ZoneStatus(zone="ash")])
    seen = run_async(served(status, lambda address: beside(seen_of(address))))
    assert "speaks another protocol: " in broken_by(seen)


def test_a_cloud_whose_certificate_has_ended(tmp_path: Path) -> None:
    write(tmp_path, KEYS)

    async def scene() -> Deployment:
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD, begins=-9, ends=-1.5)) as address:
            return await beside(lambda: look_at_deployment(Reached(address, KEYS, tmp_path)))

    seen = run_async(scene())
    assert broken_by(seen) == f"the certificate of the cloud at {seen.address} ended 1 day ago"


def test_a_cloud_that_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "WITHIN", 0.7)
    nobody = broken_by(seen_of("127.0.0.1:1")())
    assert nobody.startswith("the cloud at 127.0.0.1:1 is not reached: no connection to 127.0.0.1:1")
    assert "has a name that is unknown here" in broken_by(seen_of("cloud.onion:7070")())
    with silence() as address:
        assert broken_by(seen_of(address)()) == f"the cloud at {address} does not answer within 0.7 s"


def test_edges_are_dialled_as_an_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is fine though it has no model yet, one is somebody else, nobody is at the third, the fourth is silent."""
    monkeypatch.setattr(deployment, "WITHIN", 3.0)
    edges = {"ash": "", "birch": "", "cedar": "127.0.0.1:1", "elm": ""}

    async def scene() -> Deployment:
        async with an_edge(tmp_path) as edge:
            with silence() as silent:
                edges.update(ash=edge.address, birch=edge.address, elm=silent)
                zones = [
                    cloud_pb2.ZoneStatus(
                        number=number,
                        zone=name,
                        address=address,
                        state=cloud_pb2.ZONE_STATE_TRAINING,
                        attendance=cloud_pb2.Attendance(),
                    )
                    for number, (name, address) in enumerate(edges.items())
                ]

                async def answer(_request: bytes, _context: Any) -> bytes:
                    status = cloud_pb2.Status(run="demo", rounds=3, time=1.0, zones=zones)
                    return cloud_pb2.GetStatusResponse(status=status).SerializeToString()

                async with serving(lambda s: register(s, {GET_STATUS: answer}), keys=edge_keys(CLOUD)) as address:
                    write(tmp_path / "operator", edge_keys(OPERATOR))
                    reached = Reached(address, edge_keys(OPERATOR), tmp_path / "operator")
                    return await beside(lambda: look_at_deployment(reached))

    found = {each.check: each for each in deployment_findings(run_async(scene()))}
    assert found["zones"].text.startswith("1 edge answers, the slowest in ")
    assert found["zone ash"].text == f"the certificate of its edge at {edges['ash']} ends in 8 days", "it shows it"
    assert "does not prove who it is" in found["zone birch"].text
    assert "is not reached: no connection to 127.0.0.1:1" in found["zone cedar"].text
    assert "does not answer within 3 s" in found["zone elm"].text or "is not reached" in found["zone elm"].text
