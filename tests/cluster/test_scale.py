"""Sizes that people have: a model of 300 MB, 500 devices on one edge, 50 zones on one machine."""

import os
import resource
from pathlib import Path

import pytest

from tests.cluster.harness import cluster_of, run_of, simulated

LARGE = 75_000_000
"""Weights: 300 MB."""
PATIENCE = 400.0


def peak(pid: int) -> int:
    """The most memory that a process has had, in bytes."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.mark.timeout(900)
def test_a_model_of_300_mb_passes_through_device_edge_and_peer(tmp_path: Path) -> None:
    """Far beyond gRPC's 4 MiB. Each process holds a small multiple of it: an edge trains and serves a peer at once."""
    run = run_of(
        f"task={{name='tests.cluster.large:make_task', weights={LARGE}}}",
        "zones.names=['ash', 'birch']",
        "data.devices=1",
        "rounds=1",
        "sampler.kind=all",
        "deadlines={device=300.0, peer=300.0, zones=300.0}",
    )
    with cluster_of(run, tmp_path, hosts=2) as cluster:
        trained = cluster.finish(PATIENCE)
        edges = [peak(cluster.pid(f"edge-{zone}")) for zone in run.zones.names]
        hosts = [peak(cluster.pid(f"devices-{number}")) for number in range(2)]
        cloud = peak(cluster.pid("cloud"))
    trained.same_as(simulated(run))
    assert [line["drawn"] for line in trained.rounds["ash"]] == [[1]]
    size = 4 * LARGE
    assert max(edges) < 100e6 + 11 * size
    assert max(hosts) < 350e6 + 7 * size
    assert cloud < 350e6  # no weights pass through it


@pytest.mark.timeout(900)
def test_500_devices_on_one_edge(tmp_path: Path) -> None:
    run = run_of("zones.names=['ash']", "data.devices=500", "data.samples=2", "rounds=3", "sampler.kind=none")
    with cluster_of(run, tmp_path) as cluster:
        status = cluster.until(lambda s: s.finished, PATIENCE)
        trained = cluster.finish()
        edge = peak(cluster.pid("edge-ash"))
    assert len(status.zones[0].attendance.attending) == 500
    trained.same_as(simulated(run))
    assert edge < 500e6


@pytest.mark.timeout(900)
def test_50_zones_on_one_machine(tmp_path: Path) -> None:
    names = [f"z{number:02}" for number in range(50)]
    run = run_of(f"zones.names={names}", "data.devices=1", "rounds=3", "hrg.sharpness=30.0")
    with cluster_of(run, tmp_path, hosts=os.cpu_count() or 1) as cluster:
        trained = cluster.finish(PATIENCE)
    trained.same_as(simulated(run))
    assert any(line["drawn"] for rounds in trained.rounds.values() for line in rounds)


def test_every_service_takes_as_many_files_as_it_may(tmp_path: Path) -> None:
    """An edge of a thousand devices has a thousand connections, and many systems give a process 1024 files at first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with cluster_of(run_of(), tmp_path) as cluster:
            cluster.until_round(1)
            limits = {name: resource.prlimit(cluster.pid(name), resource.RLIMIT_NOFILE) for name in cluster.services}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert set(limits.values()) == {(min(hard, 65_536) if hard != resource.RLIM_INFINITY else 65_536, hard)}
