"""Alerts that really fire, and end: a frozen edge, a killed device host, a cloud that is away. By a real Prometheus.

The rules are those of deploy/observability with minutes as seconds. Who is left tries those that are away again, and
counts it.
"""

import json
from pathlib import Path

import pytest

from tests.cluster.harness import run_of
from tests.metrics.clusters import measured_cluster, targets_of
from tests.metrics.prometheus import RULES, Prometheus, hurried, scraping
from tests.slow_task import write_slow_task

ZONES = ("ash", "birch")
LEASE = 3.0


def test_alerts_fire_when_something_is_wrong_and_end_when_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cluster for all: to start it is what takes time. It trains until it is stopped, and not as fast as it can."""
    monkeypatch.chdir(tmp_path)  # where devices find the task
    monkeypatch.syspath_prepend(tmp_path)
    run = run_of(
        f"task.name={write_slow_task(tmp_path, seconds=0.1)}",
        f"zones.names={json.dumps(ZONES)}",
        "rounds=1000000",
        "evaluation.every=1000",
        "deadlines.device=2",
        "deadlines.peer=2",
    )
    folder = tmp_path / "cluster"
    with (
        measured_cluster(run, folder, hosts=2, lease=LEASE) as cluster,
        scraping(tmp_path / "prometheus", targets_of(folder), hurried(RULES.read_text("utf-8"))) as prometheus,
    ):
        cluster.until_round(5)

        def quiet() -> bool:
            return not {alert for alert in prometheus.firing() if alert[0] != "SGFusionDiskFilling"}

        prometheus.until(lambda: len(prometheus.up()) == 5 and quiet(), "all up, nothing fires")

        with cluster.frozen("edge-ash"):
            expected = {("SGFusionZoneLost", "ash"), ("SGFusionTargetDown", "edge-ash")}
            prometheus.until(lambda: expected <= prometheus.firing(), "a frozen edge is a lost zone")
        prometheus.until(quiet, "the zone is back")

        cluster.kill("devices-1")
        expected = {("SGFusionTargetDown", "devices-1"), ("SGFusionDevicesBelowQuorum", "birch")}
        expected |= {("SGFusionDevicesGone", "birch"), ("SGFusionRoundStalled", "birch")}
        expected |= {("SGFusionPeersLeftOut", "ash")}  # whom it draws, for there is no other
        prometheus.until(lambda: expected <= prometheus.firing(), "a zone without devices")
        assert ("SGFusionDevicesBelowQuorum", "ash") not in prometheus.firing()
        cluster.start_service("devices-1")
        prometheus.until(quiet, "the devices are back")

        whom = ("edge-birch", "peer"), ("devices-0", "edge")
        before = retries(prometheus, *whom)
        cluster.kill("edge-ash")
        tried_again(prometheus, before)
        prometheus.until(lambda: "edge-ash" not in prometheus.up(), "the killed edge is missed")
        cluster.start_service("edge-ash")
        prometheus.until(lambda: len(prometheus.up()) == 5 and quiet(), "the killed edge is back")

        before = retries(prometheus, *((f"edge-{zone}", "cloud") for zone in ZONES))
        cluster.kill("cloud")
        expected = {("SGFusionTargetDown", "cloud"), *(("SGFusionCloudAway", zone) for zone in ZONES)}
        prometheus.until(lambda: expected <= prometheus.firing(), "the cloud is away")
        tried_again(prometheus, before)
        cluster.start_service("cloud")
        prometheus.until(quiet, "the cloud is back")


def counted(prometheus: Prometheus) -> dict[tuple[str, str], float]:
    """Retries, by who tried, and whom."""
    found = prometheus.query("sum by (instance, hop) (sgfusion_retries_total)")
    return {(each.labels["instance"], each.labels["hop"]): each.value for each in found}


def retries(prometheus: Prometheus, *whom: tuple[str, str]) -> dict[tuple[str, str], float]:
    """Those of all who are named: one may just have been read too late."""
    found: dict[tuple[str, str], float] = {}

    def all_there() -> bool:
        found.update(counted(prometheus))
        return {*whom} <= found.keys()

    prometheus.until(all_there, f"retries of {whom}")
    return {each: found[each] for each in whom}


def tried_again(prometheus: Prometheus, before: dict[tuple[str, str], float]) -> None:
    prometheus.until(
        lambda: all(counted(prometheus).get(each, 0) > count for each, count in before.items()), f"more than {before}"
    )
