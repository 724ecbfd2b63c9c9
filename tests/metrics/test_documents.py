"""The page, the rules and the dashboard say what the tiers have: nothing undocumented, nothing stale."""

import importlib.metadata
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import cloud.metrics
import device.metrics
import edge.metrics
from console.targets import FILE, file_of
from sgfusion.wire.metrics import COMMON, Described
from tests.metrics.dashboard import dashboard, panels, queries
from tests.metrics.page import PAGE, SECTIONS, blocks, documented, section
from tests.metrics.prometheus import FOLDER, ROOT, RULES, alerts, program

TIERS = (COMMON, cloud.metrics.DESCRIBED, edge.metrics.DESCRIBED, device.metrics.DESCRIBED)
ALL = [each for tier in TIERS for each in tier]
NAME = re.compile(r"\bsgfusion_\w+")
SEVERITY = {("severity", "critical"), ("severity", "warning")}


@pytest.mark.parametrize(("heading", "described"), list(zip(SECTIONS, TIERS, strict=True)), ids=SECTIONS)
def test_the_page_lists_what_a_tier_shows(heading: str, described: tuple[Described, ...]) -> None:
    assert documented(heading) == list(described)


def test_prometheus_is_told_of_zones_that_join_too() -> None:
    (config,) = (yaml.safe_load(block) for block in blocks("yaml"))
    ((pattern,),) = (each["files"] for job in config["scrape_configs"] for each in job["file_sd_configs"])
    for file in (FILE, file_of("mazowieckie")):
        assert Path("results", "demo", "cluster", file).match(pattern)


def test_names_are_by_convention() -> None:
    assert len({each.name for each in ALL}) == len(ALL)
    for each in ALL:
        assert re.fullmatch(r"sgfusion(_[a-z]+)+", each.name)
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert each.name.endswith("_duration_seconds") == (each.kind == "histogram")
        is_a_time = each.help.startswith("When ")
        assert each.name.endswith("_timestamp_seconds") == is_a_time
        assert each.name.endswith("_seconds") == (is_a_time or each.kind == "histogram")
        assert each.help.endswith(".")
        assert not {"device", "le", "instance", "job", "tier", "run"} & set(each.labels)  # ours, or those of targets


def test_every_query_is_of_metrics_that_there_are() -> None:
    known = {each.name for each in ALL}
    asked = {name: rule["expr"] for name, rule in alerts().items()} | dict(queries())
    for where, expression in asked.items():
        found = {re.sub(r"_(bucket|sum|count)$", "", name) for name in NAME.findall(expression)}
        assert found <= known, where


def test_every_query_keeps_runs_apart() -> None:
    """Two runs have services, and may have zones, of the same names."""
    joins = {"on": 0, "by": 0}
    for where, expression in [*((name, rule["expr"]) for name, rule in alerts().items()), *queries()]:
        for word, listed in re.findall(r"\b(on|by) ?\(([^)]*)\)", expression):
            labels = listed.split(", ")
            assert "run" in labels or not {"instance", "zone"} & set(labels), where
            joins[word] += "run" in labels
    assert min(joins.values()) > 2, joins


def test_no_number_stands_beside_alerts_that_fire() -> None:
    (expression,) = [expression for title, expression in queries() if title == "Alerts"]
    assert expression.endswith(" or on () vector(0)")  # nothing but where there is nothing
    assert 'run=~".*"' in expression


def test_every_alert_says_what_to_do() -> None:
    page = section("Alerts")
    listed = re.findall(r"^\| \[(\w+)\]\(operate\.md#(\w+)\) \| (\w+) \| (.+) \|$", page, re.MULTILINE)
    assert [(name, anchor, severity) for name, anchor, severity, _ in listed] == [
        (name, name.lower(), rule["labels"]["severity"]) for name, rule in alerts().items()
    ]
    for name, rule in alerts().items():
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}
        assert rule["annotations"]["runbook"] == f"docs/operate.md#{name.lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_every_runbook_is_there() -> None:
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs" / "operate.md").read_text("utf-8"), re.MULTILINE)
    assert set(alerts()) <= set(headings)


def test_the_rules_are_valid_and_fire_when_they_should() -> None:
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(Path(__file__).parent / "rules_test.yml")]):
        done = subprocess.run([program("promtool"), *command], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


SERIES = re.compile(r"(\w+)\{(.*)\}")
LABEL = re.compile(r'(\w+)="([^"]*)"')


@pytest.mark.parametrize("alert", alerts())
def test_every_rule_is_tested_to_fire_and_not_to(alert: str) -> None:
    """At some time for some and not for others, of which there are such numbers too; and at some time for nobody."""
    tests = yaml.safe_load((Path(__file__).parent / "rules_test.yml").read_text("utf-8"))["tests"]
    expression = alerts()[alert]["expr"]
    (metric,) = re.findall(r"sgfusion_\w+|\bup\b", expression)[:1]
    beside, silent = False, False
    for test in tests:
        series = [SERIES.fullmatch(each["series"]) for each in test["input_series"]]
        given = [dict(LABEL.findall(each[2])) for each in series if each is not None and each[1] == metric]
        for case in (case for case in test["alert_rule_test"] if case["alertname"] == alert):
            firing = [each["exp_labels"] for each in case["exp_alerts"]]
            assert given, f"{test['name']}: nothing to judge by, for it has no {metric}"
            silent |= not firing
            quiet = (labels for labels in given if all(of.items() - SEVERITY - labels.items() for of in firing))
            beside |= bool(firing) and any(quiet)
    assert beside, "no case in which it fires for some, and not for others"
    assert silent, "no case in which it does not fire"


def test_the_file_of_the_containers_is_valid() -> None:
    command = [program("promtool"), "check", "config", "--syntax-only", str(FOLDER / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_is_one() -> None:
    """What can be known of it without Grafana, which cannot be had here: its structure, and each query elsewhere."""
    board = dashboard()
    assert board["uid"] == "sgfusion"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    variables = {each["name"] for each in board["templating"]["list"]}
    assert variables == {"datasource", "run", "zone"}
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, f"{panel['title']} lies on another"
        taken |= cells
    for panel in panels():
        assert panel["type"] in ("timeseries", "stat")
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references) > 0
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    provisioned = yaml.safe_load((FOLDER / "grafana" / "provisioning" / "datasources" / "prometheus.yml").read_text())
    assert [source["uid"] for source in provisioned["datasources"]] == ["prometheus"]


def test_the_page_says_what_stands_in_for_what_we_cannot_run() -> None:
    """The profile's images, and the Grafana whose model of a dashboard tests have."""
    said = section("In containers")
    compose = (ROOT / "docker-compose.yml").read_text("utf-8")
    images = re.findall(r"(prom/prometheus:v[\d.]+|grafana/grafana:[\d.]+)\}", compose)
    assert len(images) == 2
    assert all(f"`{image}`" in said for image in images)
    _, epoch, grafana = importlib.metadata.version("grafana_foundation_sdk").partition("!")
    assert epoch, "a release of no version of Grafana"
    assert f"Grafana {grafana}," in said


def test_the_page_names_files_that_there_are() -> None:
    for name in re.findall(r"`(deploy/[\w./-]+)`", PAGE):
        assert (ROOT / name).exists(), name
