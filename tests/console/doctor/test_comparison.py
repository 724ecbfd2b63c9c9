"""Clocks and versions of servers against this host's: of one, of many, and of those that tell nothing."""

from collections.abc import Callable
from pathlib import Path

import grpc.aio
import pytest

from console.doctor.comparison import Told, clock_findings, comparison_findings
from console.doctor.findings import Finding, ok
from console.doctor.vantage import Vantage, View, look_from, view_findings
from sgfusion.wire.identity import Identity
from sgfusion.wire.server_rpc import add_description
from sgfusion.wire.version import version
from tests.cluster.keys import CLOUD, Issuer, run_async, serving
from tests.console.doctor.test_certificates import write
from tests.console.doctor.test_deployment import beside

ASH, BIRCH, CEDAR = (Identity("edge", name) for name in ("ash", "birch", "cedar"))
DEVICE = Identity("device", "u1")
NOW = 1_795_000_000.0


@pytest.mark.parametrize(
    ("skews", "text"),
    [
        ({CLOUD: 0.0}, "within 0.1 s of the cloud's"),
        ({ASH: -0.42}, "within 0.4 s of edge ash's"),
        ({CLOUD: 0.1, ASH: -1.3}, "within 1.3 s of the cloud's and edge ash's"),
        ({CLOUD: 0.1, ASH: 0.0, BIRCH: 0.0}, "within 0.1 s of the cloud's and 2 edges'"),
    ],
)
def test_clocks_that_are_alike(skews: dict[Identity, float], text: str) -> None:
    assert clock_findings(skews) == [ok("clock", text)]


@pytest.mark.parametrize(
    ("skews", "verdict", "text"),
    [
        ({ASH: 2.0}, "look", "edge ash's clock is 2.0 s ahead of this host's: times in logs and events do not match"),
        ({ASH: -3600.0}, "broken", "edge ash's clock is 3600.0 s behind this host's: certificates that are made on"),
        (
            {CLOUD: 29.5, ASH: 30.0, BIRCH: 31.0},
            "look",
            "the clocks of the cloud, edge ash, edge birch are 29.5 to 31.0 s ahead of this host's: times in logs",
        ),
    ],
)
def test_clocks_that_differ_alike_are_one_finding(skews: dict[Identity, float], verdict: str, text: str) -> None:
    (found,) = clock_findings(skews)
    assert (found.check, found.verdict) == ("clock", verdict)
    assert found.text.startswith(text)


def test_clocks_that_differ_otherwise_are_told_apart_from_those_that_are_right() -> None:
    right, ahead, behind, far = clock_findings({CLOUD: 0.0, ASH: 3.0, BIRCH: -3.0, CEDAR: -4000.0})
    assert right == ok("clock", "within 0.1 s of the cloud's")
    assert [found.text.split(":")[0] for found in (ahead, behind, far)] == [
        "edge ash's clock is 3.0 s ahead of this host's",
        "edge birch's clock is 3.0 s behind this host's",
        "edge cedar's clock is 4000.0 s behind this host's",
    ]
    assert [found.verdict for found in (ahead, behind, far)] == ["look", "look", "broken"]


def test_versions() -> None:
    def of(**versions: str) -> Finding:
        (found,) = comparison_findings({Identity("edge", name): Told(said) for name, said in versions.items()}, "0.2.0")
        return found

    assert of(ash="0.2.0", birch="0.2.0") == ok("versions", "edge ash, edge birch and this host are of 0.2.0")
    other = of(ash="0.3.0", birch="0.2.0")
    assert (other.verdict, other.text) == ("look", "this host, edge birch of 0.2.0; edge ash of 0.3.0")
    assert "the cloud first, then edges, then devices (docs/operate.md" in other.remedy


def test_who_tells_nothing_is_no_alarm_and_who_does_not_answer_is_not_told_of() -> None:
    assert comparison_findings({}, "0.2.0") == []
    assert comparison_findings({CLOUD: Told(), ASH: Told("0.2.0", 0.0)}, "0.2.0") == [
        ok("clock", "within 0.1 s of edge ash's"),
        ok("versions", "edge ash and this host are of 0.2.0"),
        ok("versions", "the cloud does not tell version and time: it is of an earlier version"),
    ]


@pytest.mark.parametrize(("me", "server"), [(ASH, CLOUD), (DEVICE, ASH)])
@pytest.mark.parametrize("behind", [0.0, 30.0])
def test_a_server_whose_clock_is_behind(tmp_path: Path, me: Identity, server: Identity, behind: float) -> None:
    """By the keys of an edge and of a device."""
    issuer = Issuer()
    write(tmp_path, issuer.keys(me, ends=90))

    def serves(clock: Callable[[], float]) -> Callable[[grpc.aio.Server], None]:
        return lambda started: add_description(started, clock)

    async def scene() -> View:
        async with serving(serves(lambda: NOW - behind), me=server, keys=issuer.keys(server, ends=90)) as address:
            vantage = Vantage(((server, address),), tmp_path, me)
            return await beside(lambda: look_from(vantage, clock=lambda: NOW))

    seen = run_async(scene())
    found = {finding.check: finding for finding in view_findings(seen)}
    assert found[str(server)].verdict == "ok"
    assert found["clock"].verdict == ("look" if behind else "ok")
    assert ("s behind this host's" in found["clock"].text) == bool(behind)
    who = "the cloud" if server == CLOUD else "edge ash"
    assert found["versions"] == ok("versions", f"{who} and this host are of {version()}")
