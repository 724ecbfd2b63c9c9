"""`sgfusion doctor` on a real cluster: all is well; then an edge is gone, devices freeze, a key is another's."""

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from console.doctor.deployment import deployment_findings, look_at_deployment
from console.doctor.findings import Finding
from console.doctor.processes import look_at_processes
from console.doctor.vantage import Vantage, look_from, view_findings
from console.reach import CLOUD, enter, of_folder
from sgfusion.wire.identity import Identity
from sgfusion.wire.version import version
from tests.cluster.harness import cluster_of, run_of
from tests.cluster.test_follow import reach
from tests.console.commands import sgfusion
from tests.unhurried import UNHURRIED

Capture = pytest.CaptureFixture[str]
ASH, BIRCH = Identity("edge", "ash"), Identity("edge", "birch")


def findings(capsys: Capture, *arguments: str | Path) -> tuple[int, dict[str, dict[str, str]]]:
    done = sgfusion(capsys, "doctor", *arguments, "--json")
    return done.code, {each["check"]: each for each in json.loads(done.out)["findings"] if each["check"] != "ports"}


def slow() -> float:
    """A host's clock that is half a minute behind that of the cluster's servers."""
    return time.time() - 30


def clocks(found: list[Finding]) -> list[tuple[str, str]]:
    """What is said of clocks, without how much they are apart: the machine may be busy."""
    return [(each.verdict, re.sub(r"[\d.]+ to [\d.]+", "…", each.text)) for each in found if each.check == "clock"]


def test_a_healthy_cluster_and_one_that_is_not(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "results"
    with cluster_of(run_of(UNHURRIED, "rounds=3000"), folder / "cluster" / "mark") as cluster:
        shutil.copytree(cluster.folder / "certs", folder / "cluster" / "certs")
        enter(cluster.folder, folder / "cluster" / "certs" / "operator")
        assert of_folder(folder).certs == folder / "cluster" / "certs" / "operator", "for handshakes"
        cluster.until_round(1)
        for asked in ((str(folder),), reach(cluster)):
            code, found = findings(capsys, *asked)
            wrong = {check: each for check, each in found.items() if each["verdict"] != "ok"}
            assert set(wrong) <= {"engine"}, wrong
            assert code == 0
            assert found["zones"]["text"].startswith("4 of 4 edges answer, the slowest in ")
            assert "run cluster, plan 1" in found["cloud"]["text"]
            assert found["versions"]["text"].startswith("the cloud, 4 edges and this console are of ")
            assert found["clock"]["text"].endswith(" s of the cloud's and 4 edges'")
        behind = deployment_findings(look_at_deployment(of_folder(folder), clock=slow))
        all_five = "the clocks of the cloud, edge ash, edge birch, edge cedar and 1 more are … s ahead of this host's"
        assert clocks(behind) == [("look", f"{all_five}: times in logs and events do not match")]
        _, found = findings(capsys, str(folder))
        assert found["processes"]["text"] == f"6 of 6 of sgfusion up (process {os.getpid()}) run"
        assert re.search(r": (\d+) of \1, keys fit, 364 days left", found["certificates"]["text"])
        cluster.kill("edge-birch")
        shutil.copy(
            folder / "cluster" / "certs" / "edge-elm" / "tls.key", folder / "cluster" / "certs" / "edge-ash" / "tls.key"
        )
        with cluster.frozen("devices-0"):
            code, found = findings(capsys, str(folder))
        assert code == 1
        assert "processes" not in found, "who does not run is told by name, and not also counted"
        birch, devices = found["process edge-birch"], found["process devices-0"]
        assert birch["text"].startswith(f"process {cluster.pid('edge-birch')} is gone; it said: ")
        assert ". So zone birch: its edge at " in birch["text"], "one cause is one finding"
        assert "is not reached" in birch["text"]
        assert str(cluster.services["edge-birch"].log) in birch["remedy"]
        assert devices["text"].startswith(f"process {cluster.pid('devices-0')} is frozen: a signal has stopped it")
        assert devices["remedy"] == f"kill -CONT {cluster.pid('devices-0')}"
        assert {"process cloud", "process edge-ash"}.isdisjoint(found)
        assert not [check for check in found if check.startswith("zone ")], "what is behind it was told"
        assert "edge-ash/tls.key is not the key of tls.crt" in found["certificates"]["text"]
        assert found["zones"]["text"].startswith("3 edges answer, the slowest in ")
        assert sum("Identity" in name for name in cluster.status().refusals) == 0, "a doctor does no harm"
        cluster.start_service("edge-birch")
        code, found = findings(capsys, str(folder))
        assert found["process edge-birch"]["text"].startswith("started again once, the last time ")
        assert ", after one that ended by SIGKILL" in found["process edge-birch"]["text"]
        assert "somebody killed it" in found["process edge-birch"]["remedy"]
        with cluster.frozen("cloud"):
            _, found = findings(capsys, str(folder))
        assert "is frozen: a signal has stopped it. So cloud: the cloud at " in found["process cloud"]["text"]
        assert "cloud" not in found
    assert look_at_processes(folder) == [], "who stops in order leaves nothing to wonder about"


def test_from_an_edges_own_host(tmp_path: Path, capsys: Capture) -> None:
    """With its own keys alone, and its state: the cloud is reached, and all peers but the one that is gone."""
    with cluster_of(run_of(UNHURRIED, "rounds=3000"), tmp_path) as cluster:
        cluster.until_round(1, "ash")
        asked = ("--cloud", cluster.address("cloud") or "", "--certs", tmp_path / "certs" / "edge-ash")
        code, found = findings(capsys, *asked, "--state", tmp_path / "edges" / "ash")
        assert code == 0, found
        assert "proves who it is and takes us for edge ash" in found["cloud"]["text"]
        assert found["peers"]["text"].startswith("3 of 3 answer, prove who they are and take us")
        assert found["clock"]["text"].endswith(" s of the cloud's and 3 edges'")
        all_four = "the cloud, edge birch, edge cedar, edge elm"
        assert found["versions"]["text"] == f"{all_four} and this host are of {version()}"
        servers = ((CLOUD, cluster.address("cloud") or ""),)
        vantage = Vantage(servers, tmp_path / "certs" / "edge-ash", ASH, tmp_path / "edges" / "ash")
        assert clocks(view_findings(look_from(vantage, clock=slow))) == [
            ("look", f"the clocks of {all_four} are … s ahead of this host's: times in logs and events do not match")
        ]
        cluster.kill("edge-birch")
        code, found = findings(capsys, *asked, "--state", tmp_path / "edges" / "ash")
        assert code == 1
        assert found["peers"]["text"].startswith("2 of 3 answer")
        assert "is not reached: Connection refused" in found["zone birch"]["text"]
        assert cluster.status().refusals == {}, "a doctor does no harm"


def test_from_a_devices_own_host(tmp_path: Path, capsys: Capture) -> None:
    """With the folder of keys that its host has, and no cloud, which devices are kept from."""
    with cluster_of(run_of(UNHURRIED, "rounds=3000"), tmp_path) as cluster:
        cluster.until_round(1, "ash")
        ash, birch = (cluster.address(f"edge-{zone}") for zone in ("ash", "birch"))
        cluster.kill("cloud")
        keys = tmp_path / "host"
        for own in (tmp_path / "certs").glob("device-*"):
            shutil.copytree(own, keys / own.name)
        asked = ("--edge", f"ash={ash}", "--edge", f"birch={birch}", "--certs", keys)
        code, found = findings(capsys, *asked)
        assert code == 0, found
        for zone in ("ash", "birch"):
            assert "proves who it is and takes us for device " in found[f"edge {zone}"]["text"]
        assert "calls edges alone: no cloud is dialled" in found["role"]["text"]
        assert found["clock"]["text"].endswith(" s of 2 edges'")
        assert found["versions"]["text"] == f"edge ash, edge birch and this host are of {version()}"
        own = min(keys.glob("device-*"))
        me = Identity("device", own.name.removeprefix("device-"))
        seen = look_from(Vantage(((ASH, ash or ""), (BIRCH, birch or "")), own, me), clock=slow)
        ahead = "the clocks of edge ash, edge birch are … s ahead of this host's: times in logs and events do not match"
        assert clocks(view_findings(seen)) == [("look", ahead)]
        assert "cloud" not in found
        cluster.kill("edge-birch")
        code, found = findings(capsys, *asked)
        assert (code, found["edge ash"]["verdict"]) == (1, "ok")
        assert "is not reached: Connection refused" in found["edge birch"]["text"]
