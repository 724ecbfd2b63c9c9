"""Noise on devices cannot be seeded, so the simulator takes the cluster's tree; devices that roam find the way."""

from pathlib import Path

from sgfusion.privacy import Ledger
from tests.cluster.harness import cluster_of, run_of, simulated


def test_with_noise_the_simulator_takes_the_clusters_dendrogram(tmp_path: Path) -> None:
    run = run_of("histogram.epsilon=1.0")
    with cluster_of(run, tmp_path / "cluster") as cluster:
        trained = cluster.finish()
        text = cluster.records()[0]
    (tmp_path / "dendrogram.json").write_text(text)
    given = run_of("histogram.epsilon=1.0", f"hrg.from={tmp_path / 'dendrogram.json'}")
    trained.same_as(simulated(given))


def test_a_restarted_device_releases_what_it_released_before(tmp_path: Path) -> None:
    """Noising afresh would let an edge average the noise away."""
    run = run_of("histogram.epsilon=0.5", "rounds=60")
    with cluster_of(run, tmp_path) as cluster:
        cluster.until_round(2)
        ledgers = sorted((tmp_path / "devices" / "ledgers").rglob("*.json"))
        before = [path.read_bytes() for path in ledgers]
        cluster.restart("devices-0")
        cluster.finish()
        status = cluster.status()
    assert len(ledgers) == 12  # three devices, each in four zones
    assert [path.read_bytes() for path in ledgers] == before
    assert Ledger(ledgers[0], 0.5).spent == 0.5
    assert status.plan == 1  # the histograms came again and were the same: no drift


def test_a_device_learns_other_zones_edges_from_the_one_it_attends(tmp_path: Path) -> None:
    """It was told of one edge, and has data of four zones: it attends them all, each with that zone's data alone."""
    run = run_of()
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges(*run.zones.names)
        cluster.host("roaming", knows=["ash"])
        trained = cluster.finish()
    trained.same_as(simulated(run))
