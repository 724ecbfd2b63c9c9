"""Who never comes or never answers does not stop a run: it goes on within its deadlines, and says so."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from cloud.page.folder import FinishedRun
from console.concluding import write
from console.summary import Elsewhere
from console.watching import Watch
from device.tasks.task import load_task
from sgfusion.plan import ZoneState
from tests.cluster.harness import cluster_of, run_of
from tests.unhurried import UNHURRIED

LENIENT = ("quorum.devices=0.6", "deadlines={device=1.0, peer=3.0, zones=4.0}")
"""Two of three devices will do."""
THREE_ZONES = ("quorum.zones=0.75", "deadlines={device=60.0, peer=60.0, zones=4.0}")
"""Three of four zones will do, each with all of its devices."""
ENDLESS = "rounds=100000"
"""More than anybody waits for: the test sees what it is about, and stops the run."""


def test_a_device_that_never_answers(tmp_path: Path) -> None:
    """It is stopped while a zone is still missing: no round can have begun."""
    run = run_of("rounds=12", *LENIENT)
    *there, last = run.zones.names
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges(*there)
        cluster.host("good", zones=there, devices=["d0", "d1"])
        cluster.host("bad", zones=there, devices=["d2"])
        cluster.until(lambda s: all(len(z.attendance.attending) == 3 for z in s.zones if z.zone != last))
        os.kill(cluster.pid("bad"), signal.SIGSTOP)
        cluster.start_edges(last)
        cluster.host("last", zones=[last])
        cluster.until(lambda s: s.finished)
        status = cluster.status()
        _, records = cluster.records()
        late = {z.zone: [r.devices_left_out for r in z.rounds if r.devices_left_out] for z in records}
        log = cluster.log("edge-ash")
        os.kill(cluster.pid("bad"), signal.SIGCONT)
    assert all(z.state is ZoneState.DONE for z in status.zones)
    for zone in there:
        assert late[zone], zone  # in the report
        assert set().union(*late[zone]) == {"d2"}
        assert "has not answered within 1 s" in late[zone][0]["d2"]
    assert all("d2" in z.attendance.missing for z in status.zones if z.zone != last)  # in the status
    assert "goes on without device d2" in log  # and in the log


def test_a_device_that_never_comes(tmp_path: Path) -> None:
    run = run_of("rounds=4", *LENIENT)
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges(*run.zones.names)
        cluster.host("good", devices=["d0", "d1"])
        trained = cluster.finish()
        log = cluster.log("edge-ash")
    assert all(len(rounds) == 4 for rounds in trained.rounds.values())
    assert "begins with 2 of 3 devices" in log


def test_without_a_quorum_it_waits_and_says_what_for(tmp_path: Path) -> None:
    """Nothing is made up: three of three are needed. When the third comes, the run goes on to its end."""
    run = run_of("rounds=4", "deadlines.zones=2.0", "deadlines.device=1.0")
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges(*run.zones.names)
        cluster.host("good", devices=["d0", "d1"])
        short = "2 of 3 devices attended within 2 s, 3 are needed"
        status = cluster.until(lambda s: all(short in z.overdue for z in s.zones) and bool(s.overdue))
        assert "quorum.zones" in status.overdue
        cluster.host("last", devices=["d2"])
        cluster.finish()
        assert not any(zone.overdue for zone in cluster.status().zones)


def test_a_zone_that_never_comes(tmp_path: Path) -> None:
    run = run_of("rounds=8", *THREE_ZONES)
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges("ash", "birch", "cedar")
        cluster.host("devices", zones=["ash", "birch", "cedar"])
        cluster.until(lambda s: all(z.round == 8 for z in s.zones if z.zone != "elm"))
        status = cluster.status()
        log = cluster.log("cloud")
        tree = cluster.tree()
    assert status.zones[3].state is ZoneState.EXPECTED
    assert "missing: elm" in status.reason
    assert "missing: elm" in log
    assert tree.zones == ("ash", "birch", "cedar")
    assert all(3 not in zone.drawn for zone in status.zones)


def test_a_peer_that_is_lost_is_left_out_and_counted(tmp_path: Path) -> None:
    """Its zone is killed for good: others try within the budget, then go on without it and do not wait again."""
    run = run_of("rounds=60", "sampler.kind=all", "quorum.zones=0.5", "deadlines.peer=2.0")
    with cluster_of(run, tmp_path) as cluster:
        cluster.until_round(3, "ash")
        cluster.kill("edge-elm")
        cluster.until(lambda s: all(z.round == 60 for z in s.zones if z.zone != "elm"))
        status = cluster.status()
        _, records = cluster.records()
    left = [r.report.left_out for r in records[0].rounds if r.report.left_out]
    assert left
    assert all(set(reasons) == {3} for reasons in left)
    assert "no answer within 2 s" in left[0][3]
    assert status.zones[0].left_out  # the last round's, in the status


def test_a_zone_that_joins_while_others_train(tmp_path: Path) -> None:
    """The plan's version rises, edges take it up between rounds, and the others draw the new zone."""
    run = run_of(UNHURRIED, ENDLESS, "sampler.kind=all", *THREE_ZONES)
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges("ash", "birch", "cedar")
        cluster.host("devices", zones=["ash", "birch", "cedar"])
        cluster.until_round(1, "ash")
        assert cluster.status().plan == 1
        cluster.start_edges("elm")
        cluster.host("late", zones=["elm"])
        cluster.until(lambda s: s.plan == 2 and all(z.plan == 2 for z in s.zones))
        cluster.until(lambda s: all(set(z.drawn) == {0, 1, 2, 3} - {z.number} for z in s.zones))
        status = cluster.status()
        _, records = cluster.records()
    assert status.reason == "zone elm joined"
    for number, zone in enumerate(records):
        drawn = [r.report.drawn for r in zone.rounds]
        assert 3 not in drawn[0]
        assert set(drawn[-1]) == {0, 1, 2, 3} - {number}
        assert [r.report.round for r in zone.rounds] == list(range(1, len(drawn) + 1))  # none lost, none twice


def test_a_zone_that_leaves(tmp_path: Path) -> None:
    """Its edge is stopped and says so: the others draw it no more, and the run ends without it.

    Until it says so they wait for it, as each round draws all. The results' page knows how far it came.
    """
    run = run_of("rounds=60", "sampler.kind=all")
    with cluster_of(run, tmp_path) as cluster:
        cluster.until_round(3, "elm")
        cluster.kill("edge-elm")
        keys = str(tmp_path / "certs" / "edge-elm")
        command = ["leave", "--zone", "elm", "--cloud", cluster.address("cloud") or "", "--certs", keys]
        left = subprocess.run(
            [sys.executable, "-m", "console.main", *command], capture_output=True, text=True, check=False
        )
        assert (left.returncode, left.stdout) == (0, "zone elm has left the run\n"), left.stderr
        cluster.until(lambda s: s.finished)
        status = cluster.status()
        _, records = cluster.records()
        fetched = asyncio.run(Watch(cluster, Console(quiet=True)).fetch())
    write(tmp_path / "results", run, Elsewhere(load_task(run)), fetched, Console(quiet=True))
    source = FinishedRun(tmp_path / "results")
    found = json.loads(source.picture())
    last = asyncio.run(source.round(status.zones[3].round))
    source.close()
    elm = found["status"]["zones"][3]
    assert 3 <= elm["round"] == status.zones[3].round < 60
    assert (elm["state"], set(elm["attention"])) == ("left", {"0", "1", "2"})
    assert json.loads(last)["elm"]["attention"] == elm["attention"]
    assert [zone["state"] for zone in found["status"]["zones"]] == ["done"] * 3 + ["left"]
    assert [row[0] for row in found["series"]["elm"]["evaluations"]] == [r.round for r in records[3].evaluations]
    assert found["pooled"][-1][0] == 60  # of those who were there to the end
    assert set(json.loads((tmp_path / "results" / "summary.json").read_text())["zones"]) == {"ash", "birch", "cedar"}
    assert status.plan == 2
    assert "elm" in status.reason
    assert [z.state for z in status.zones] == [ZoneState.DONE] * 3 + [ZoneState.LEFT]
    assert records[0].rounds[-1].report.drawn == (1, 2)


def test_a_zone_whose_histogram_drifts(tmp_path: Path) -> None:
    """A device that comes later changes its zone's histogram; beyond the threshold the cloud makes a new plan."""
    run = run_of(UNHURRIED, ENDLESS, "hrg.drift=0.0001", *LENIENT)
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges(*run.zones.names)
        cluster.host("most", devices=["d0", "d1"])
        first = cluster.until(lambda s: all(z.round >= 1 for z in s.zones)).plan
        before = cluster.tree()
        cluster.host("late", devices=["d2"])
        cluster.until(lambda s: s.plan > first and all(z.plan > first for z in s.zones))
        assert (cluster.tree().distances != before.distances).any()
        assert "drifted by" in cluster.status().reason
