"""A real cluster, read by a real Prometheus while it trains: every metric, every query, and numbers that agree."""

import asyncio
import math
from pathlib import Path

import pytest

from sgfusion.errors import IdentityError
from sgfusion.wire.channel import open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity
from sgfusion.wire.metrics import Described
from tests.cluster.harness import OPERATOR, Cluster, run_of, simulated
from tests.metrics.clusters import measured_cluster, targets_of
from tests.metrics.dashboard import queries
from tests.metrics.page import SECTIONS, documented
from tests.metrics.prometheus import RULES, Prometheus, alerts, scraping

ROUNDS, ZONES, HOSTS, REFUSED = 300, ("ash", "birch", "cedar", "elm"), 2, 13
DEVICES, ALL = 3 * len(ZONES), ROUNDS * len(ZONES)
EVERYBODY = {"cloud", *(f"edge-{zone}" for zone in ZONES), *(f"devices-{number}" for number in range(HOSTS))}
QUIET = {"Devices missing, by zone", "Devices cut off", "annotation Plans"}
"""What shows nothing while all is well, and if the only plan was made before anybody looked."""

NUMBERS = {
    "sum(sgfusion_edge_rounds_total)": ALL,
    "sum(sgfusion_cloud_rounds_reported_total)": ALL,
    "min(sgfusion_edge_round)": ROUNDS,
    "min(sgfusion_cloud_zone_round)": ROUNDS,
    "sgfusion_cloud_rounds": ROUNDS,
    "sgfusion_cloud_finished": 1,
    "sgfusion_cloud_plan_version": 1,
    "min(sgfusion_edge_plan_version)": 1,
    "sum(sgfusion_edge_round_duration_seconds_count)": ALL,
    "sum(sgfusion_edge_phase_duration_seconds_count{phase='own'})": ALL,
    "sum(sgfusion_edge_phase_duration_seconds_count{phase='fuse'})": ALL,
    "sum(sgfusion_edge_phase_duration_seconds_count{phase='evaluation'})": (ROUNDS // 2 + 1) * len(ZONES),
    "count(sgfusion_edge_phase_duration_seconds_count{phase='checkpoint'} > 0)": len(ZONES),  # not one a round
    "sum(sgfusion_edge_phase_duration_seconds_count{phase='peer'}) - sum(sgfusion_edge_peers_drawn_total)": 0,
    "sum(sgfusion_edge_devices{state='attending'})": DEVICES,
    "sum(sgfusion_edge_devices{state!='attending'})": 0,
    "sum(sgfusion_edge_devices_needed)": DEVICES,
    "sum(sgfusion_cloud_zone_devices{state='attending'})": DEVICES,
    "sum(sgfusion_cloud_zone_devices_expected)": DEVICES,
    "sum(sgfusion_device_hosted)": DEVICES,
    "sum(sgfusion_device_attending)": DEVICES,
    "sum(sgfusion_device_computations)": 0,
    "sum(sgfusion_edge_questions)": 0,
    "sum(sgfusion_edge_records_untold)": 0,
    "sum(sgfusion_edge_rounds_unsaved)": 0,
    "sum(sgfusion_device_answers_total{outcome='failed'})": 0,
    "sum(sgfusion_refusals_total{instance='cloud', reason='IdentityError'})": REFUSED,
    "sum(sgfusion_cloud_phase_duration_seconds_count{phase='fit'})": 1,
    "count(sgfusion_cloud_zone_score{split='validation'})": len(ZONES),
    "sum(sgfusion_cloud_zone_epsilon)": 0,
    "count(process_resident_memory_bytes)": len(EVERYBODY),
}


def test_a_cluster_that_prometheus_reads(tmp_path: Path) -> None:
    """One cluster for all: to start it is what takes time."""
    run, folder = run_of(f"rounds={ROUNDS}"), tmp_path / "cluster"
    folder.mkdir()
    with (  # Prometheus first, or a fast machine has trained before it has looked twice
        scraping(tmp_path / "prometheus", targets_of(folder), RULES.read_text("utf-8")) as prometheus,
        measured_cluster(run, folder, hosts=HOSTS) as cluster,
    ):
        prometheus.until(lambda: prometheus.up() == EVERYBODY, "all targets up")
        refuse(cluster)
        cluster.finish().same_as(simulated(run))  # measuring changes no number
        numbers_are_those_of_the_run(prometheus)
        what_is_sent_is_received(prometheus)
        for heading in SECTIONS:
            for metric in documented(heading):
                it_is_there_with_its_labels(prometheus, heading, metric)
        values_of_the_cloud_are_those_of_status(prometheus, cluster)
        times_are_of_now(prometheus)
        every_query_of_the_dashboard_gives_something(prometheus)
        every_rule_is_evaluated_and_nothing_fires_that_should_not(prometheus)
    assert targets_of(folder).read_text("utf-8") == "[]\n"


def refuse(cluster: Cluster) -> None:
    """Call what an operator may not, so often that an alert is due."""

    async def call() -> None:
        address = cluster.address("cloud")
        assert address is not None
        async with open_channel(address, server=Identity("cloud"), me=OPERATOR, keys=cluster.operator()) as channel:
            for _ in range(REFUSED):
                with pytest.raises(IdentityError):
                    await CloudClient(channel).leave("ash", timeout=20)

    asyncio.run(call())


def numbers_are_those_of_the_run(prometheus: Prometheus) -> None:
    for expression, value in NUMBERS.items():
        prometheus.until_is(expression, value)  # with the next scrape, at the latest


def what_is_sent_is_received(prometheus: Prometheus) -> None:
    """Both ways, all processes together: in a quiet cluster the last byte has come."""
    for rpc in ("Attend", "Direction", "SubmitHistogram", "Enrol", "WatchPlan"):
        for sender, receiver in (("client", "server"), ("server", "client")):
            sent = f"sum(sgfusion_rpc_sent_bytes_total{{rpc='{rpc}', side='{sender}'}})"
            received = f"sum(sgfusion_rpc_received_bytes_total{{rpc='{rpc}', side='{receiver}'}})"
            prometheus.until_is(f"{sent} - {received}", 0)
            assert prometheus.number(sent) > 0 or rpc == "SubmitHistogram"  # "no drift" is no byte


def it_is_there_with_its_labels(prometheus: Prometheus, heading: str, metric: Described) -> None:
    name = f"{metric.name}_bucket" if metric.kind == "histogram" else metric.name
    found = prometheus.query(name)
    assert found, name
    own = {*metric.labels, *(["le"] if metric.kind == "histogram" else [])}
    own -= {"unit"} if metric.name == "sgfusion_cloud_run_info" else set()  # the task has none: an empty label is none
    for series in found:
        assert set(series.labels) == {"__name__", "job", "instance", "tier", "run"} | own, series
        assert math.isfinite(series.value), series
        assert series.labels["run"] == "cluster"
    tiers = {"The cloud": {"cloud"}, "Edges": {"edge"}, "Device hosts": {"device"}}.get(heading)
    if tiers is None:
        tiers = {"cloud", "edge", "device"}
        tiers -= {"sgfusion_refusals_total": {"device"}, "sgfusion_retries_total": {"cloud"}}.get(name, set())
    assert {series.labels["tier"] for series in found} == tiers, name
    (said,) = prometheus.get("metadata", metric=metric.name)[metric.name]
    assert (said["type"], said["help"]) == (metric.kind, metric.help)


def values_of_the_cloud_are_those_of_status(prometheus: Prometheus, cluster: Cluster) -> None:
    status = cluster.status()
    assert status.metric is not None
    for zone in status.zones:
        assert zone.last is not None
        assert zone.best is not None
        assert prometheus.number(f"sgfusion_cloud_zone_loss{{zone='{zone.zone}'}}") == pytest.approx(zone.loss)
        for name, point in (("score", zone.last), ("best_score", zone.best)):
            for split, score in (("validation", point.validation), ("test", point.test)):
                found = prometheus.number(f"sgfusion_cloud_zone_{name}{{zone='{zone.zone}', split='{split}'}}")
                assert found == pytest.approx(status.metric.value(score.total, score.count))


def times_are_of_now(prometheus: Prometheus) -> None:
    assert prometheus.number("max(time() - sgfusion_edge_reported_timestamp_seconds)") < 120
    assert prometheus.number("max(time() - sgfusion_edge_checkpoint_timestamp_seconds)") < 600
    assert prometheus.number("time() - sgfusion_cloud_store_timestamp_seconds") < 600
    assert 363 < prometheus.number("min(sgfusion_certificate_expiry_timestamp_seconds - time()) / 86400") < 366
    assert 0 < prometheus.number("min(sgfusion_state_free_bytes / sgfusion_state_size_bytes)") < 1


def every_query_of_the_dashboard_gives_something(prometheus: Prometheus) -> None:
    """At some time of the run: what shows nothing now may have shown something while it trained."""
    for title, expression in queries():
        found = prometheus.get("query", query=f"count_over_time(({expression})[5m:1s])")["result"]
        assert found or title in QUIET, (title, expression)


def every_rule_is_evaluated_and_nothing_fires_that_should_not(prometheus: Prometheus) -> None:
    groups = prometheus.get("rules", type="alert")["groups"]
    found = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(found) == set(alerts())
    assert {rule["health"] for rule in found.values()} == {"ok"}
    firing = {name for name, _ in prometheus.firing()}
    assert firing - {"SGFusionDiskFilling"} == {"SGFusionRefusalsRising"}  # a tester's disk may be full
