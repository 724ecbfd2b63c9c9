"""The same bytes after kills, restarts, late starts and freezes: with full participation no fault changes a model."""

import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.live import who_holds_up
from sgfusion.durable import UNFINISHED
from sgfusion.plan import ZoneState
from sgfusion.reports import RunStatus
from sgfusion.runfile import RunFile
from tests.cluster.harness import Cluster, Trained, cluster_of, run_of, simulated

ROUNDS = 100
"""For a fault to fall into: no test is further than round 40 when its last one does."""


@pytest.fixture(scope="module")
def run() -> RunFile:
    return run_of(f"rounds={ROUNDS}", "evaluation.every=10", "deadlines.peer=120.0")


@pytest.fixture(scope="module")
def undisturbed(run: RunFile) -> Trained:
    return simulated(run)


@pytest.fixture(scope="module")
def short() -> tuple[RunFile, Trained]:
    """A run and its end, for what befalls a cluster before the first round."""
    run = run_of("rounds=12", "deadlines.peer=120.0")
    return run, simulated(run)


def said(status: RunStatus, word: str) -> list[str]:
    """Events that say it."""
    return [event.text for event in status.events if word in event.text]


@pytest.fixture
def cluster(run: RunFile, tmp_path: Path) -> Iterator[Cluster]:
    with cluster_of(run, tmp_path) as started:
        yield started


def test_edges_killed_in_the_middle_of_rounds(cluster: Cluster, undisturbed: Trained) -> None:
    for zone, round in (("ash", 3), ("birch", 20), ("ash", 40)):
        cluster.until_round(round, zone)
        cluster.restart(f"edge-{zone}")
    cluster.finish().same_as(undisturbed)
    assert "goes on after round" in cluster.log("edge-ash")
    restarts = sorted(event.text for event in cluster.status().events if "started anew" in event.text)
    assert restarts == [f"zone {zone}: its edge was started anew" for zone in ("ash", "ash", "birch")]


def test_an_edge_killed_while_it_writes_a_checkpoint(cluster: Cluster, undisturbed: Trained) -> None:
    """Killed the moment that an unfinished file is seen; tried until one is left behind."""
    folder = cluster.folder / "edges" / "cedar" / "checkpoints"
    cluster.until_round(2, "cedar")
    left = []
    for _ in range(20):
        end = time.monotonic() + 30
        while not list(folder.glob(f".*{UNFINISHED}")) and time.monotonic() < end:
            pass
        cluster.kill("edge-cedar")
        left = list(folder.glob(f".*{UNFINISHED}"))
        cluster.start_service("edge-cedar")
        if left or cluster.status().zones[2].round == ROUNDS:
            break
    assert left, "no kill hit a checkpoint: the run is too short for this machine"
    cluster.finish().same_as(undisturbed)
    assert not list(folder.glob(f".*{UNFINISHED}"))


def test_the_cloud_killed_before_there_is_a_dendrogram(short: tuple[RunFile, Trained], tmp_path: Path) -> None:
    run, undisturbed = short
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_service("cloud")
        cluster.wait_for(["cloud"])
        for zone in ("ash", "birch"):
            cluster.start_service(f"edge-{zone}")
        cluster.until(lambda status: sum(bool(zone.address) for zone in status.zones) == 2)
        cluster.restart("cloud")
        cluster.wait_for(["cloud"])
        for zone in ("cedar", "elm"):
            cluster.start_service(f"edge-{zone}")
        cluster.wait_for(["edge-ash", "edge-birch", "edge-cedar", "edge-elm"])
        cluster.start_service("devices-0")
        cluster.finish().same_as(undisturbed)


def test_the_cloud_killed_while_it_fits_the_dendrogram(tmp_path: Path) -> None:
    """A fit of some seconds, for the kill to fall into."""
    run = run_of("rounds=12", "hrg.restarts=1500")
    with cluster_of(run, tmp_path) as cluster:
        end = time.monotonic() + 60
        while "fits plan 1" not in cluster.log("cloud") and time.monotonic() < end:
            time.sleep(0.002)
        cluster.kill("cloud")
        assert "sgfusion.cloud: plan 1" not in cluster.log("cloud")
        cluster.start_service("cloud")
        cluster.finish().same_as(simulated(run))


def test_the_cloud_killed_while_zones_train(cluster: Cluster, undisturbed: Trained) -> None:
    """Training goes on without it, and no round that was acknowledged is lost."""
    before = cluster.until_round(3)
    cluster.kill("cloud")
    time.sleep(1.0)
    cluster.start_service("cloud")
    cluster.wait_for(["cloud"])
    after = cluster.status()
    for was, now in zip(before.zones, after.zones, strict=True):
        assert now.round >= was.round
    assert after.plan == before.plan == 1
    cluster.finish().same_as(undisturbed)
    assert not said(cluster.status(), "started anew"), "no edge was"
    (back,) = said(cluster.status(), "cloud is back")
    assert re.fullmatch(r"the cloud is back: its state was last written \d+ s ago", back)
    assert not said(cluster.status(), "gone"), "no device was"


def test_cloud_and_an_edge_killed_together(cluster: Cluster, undisturbed: Trained) -> None:
    """The edge restarts while the cloud is away: it goes on by the plan that it has."""
    cluster.until_round(5, "elm")
    cluster.kill("cloud")
    cluster.restart("edge-elm")
    end = time.monotonic() + 60
    while "goes on after round" not in cluster.log("edge-elm") and time.monotonic() < end:
        time.sleep(0.05)
    assert "goes on after round" in cluster.log("edge-elm")
    cluster.start_service("cloud")
    cluster.finish().same_as(undisturbed)


def test_the_device_host_killed(cluster: Cluster, undisturbed: Trained) -> None:
    cluster.until_round(3)
    cluster.kill("devices-0")
    # Not these alone: a busy edge may tell of some devices first, and then of all.
    gone = "3 of 3 devices are gone: d0, d1, d2 (its stream has ended)"
    zones = ("ash", "birch", "cedar", "elm")
    cluster.until(lambda status: {f"zone {zone}: {gone}" for zone in zones} <= set(said(status, "gone")))
    cluster.start_service("devices-0")
    again = {f"zone {zone}: all 3 devices attend again" for zone in zones}
    cluster.until(lambda status: again <= set(said(status, "attend again")))
    cluster.until_round(30)
    cluster.restart("devices-0")
    cluster.finish().same_as(undisturbed)


def test_a_peer_frozen_for_a_while(cluster: Cluster, undisturbed: Trained) -> None:
    """Peers say that they wait for it long before its lease has run out."""
    cluster.until_round(3, "birch")
    with cluster.frozen("edge-birch"):
        blamed = re.compile(r"birch: (\d zones wait|\w+ waits \d+ s) for it")
        told = cluster.until(lambda status: any(map(blamed.match, who_holds_up(status))))
        assert told.zones[1].state is ZoneState.TRAINING, "it is not lost yet"
        pid = cluster.pid("edge-birch")
        assert cluster.revive() == [f"edge-birch is frozen (stopped by a signal); kill -CONT {pid} lets it go on"]
    cluster.until(lambda _: any("edge-birch goes on: it was frozen for" in line for line in cluster.revive()))
    cluster.until(lambda status: not who_holds_up(status))
    cluster.finish().same_as(undisturbed)


def test_two_zones_that_start_ten_seconds_late(short: tuple[RunFile, Trained], tmp_path: Path) -> None:
    run, undisturbed = short
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_service("cloud")
        cluster.wait_for(["cloud"])
        for zone in ("ash", "birch"):
            cluster.start_service(f"edge-{zone}")
        time.sleep(10.0)
        for zone in ("cedar", "elm"):
            cluster.start_service(f"edge-{zone}")
        cluster.wait_for([f"edge-{zone}" for zone in run.zones.names])
        cluster.start_service("devices-0")
        cluster.finish().same_as(undisturbed)


def test_all_stopped_and_started_again(run: RunFile, undisturbed: Trained, tmp_path: Path) -> None:
    """SIGTERM to all, as Ctrl-C of `sgfusion up` does; the next start goes on."""
    with cluster_of(run, tmp_path) as cluster:
        cluster.until_round(10)
        cluster.stop()
        assert "stops: SIGTERM" in cluster.log("edge-ash")
        cluster.start()
        cluster.finish().same_as(undisturbed)


def test_services_that_are_stopped_in_order_come_back_where_they_were(cluster: Cluster, undisturbed: Trained) -> None:
    """SIGTERM, as an operator would: an address that was taken back is served again, and found."""
    cluster.until_round(5)
    for name in ("cloud", "edge-birch"):
        before = cluster.address(name)
        cluster.services[name].signal(signal.SIGTERM)
        end = time.monotonic() + 30
        while cluster.services[name].alive and time.monotonic() < end:
            time.sleep(0.02)
        assert cluster.revive() == [f"{name} has ended with exit code 0: started again"]
        cluster.wait_for([name])
        assert cluster.address(name) == before
    cluster.finish().same_as(undisturbed)


def test_a_cloud_that_lost_its_memory_is_told_everything_again(cluster: Cluster, undisturbed: Trained) -> None:
    """Its folder is gone: zones enrol, submit and report anew, and train on meanwhile."""
    cluster.until_round(20)
    cluster.kill("cloud")
    address = cluster.address("cloud")
    shutil.rmtree(cluster.folder / "cloud")
    cluster.start_service("cloud")
    cluster.wait_for(["cloud"])
    assert cluster.address("cloud") == address
    cluster.until(lambda s: s.finished and all(z.round == ROUNDS for z in s.zones))
    cluster.finish().same_as(undisturbed)
