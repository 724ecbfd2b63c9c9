"""The page on Kubernetes: what it shows and tells people to type is there."""

import re
import shlex
import textwrap
from typing import Any

import pytest
import typer.main
import yaml

from cloud.coordinator import MOST_ZONES
from console.main import app
from edge.cloud_link import WITHIN
from edge.devices import BUDGET
from sgfusion.runfile import load_run_file
from sgfusion.wire.channel import MESSAGE_BYTES
from tests.kubernetes.rendering import (
    FOLDER,
    NEWEST,
    ROOT,
    check,
    containers,
    manifests,
    matches,
    name,
    objects,
    of_kind,
    render,
)

PAGE = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for _, text in found]


def lines() -> list[list[str]]:
    return [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]


def test_the_zone_that_it_shows_is_the_committed_one() -> None:
    shown, _, _ = blocks("yaml")
    assert shown == (FOLDER / "overlays/four-zones/zones/lubelskie/kustomization.yaml").read_text("utf-8")


def test_the_policy_for_devices_that_roam_lets_them_reach_every_edge_and_is_valid() -> None:
    _, text, _ = blocks("yaml")
    leaving, coming = objects(text)
    for policy in (leaving, coming):
        check(policy, NEWEST)
    device, edge = ({"app.kubernetes.io/component": part, "sgfusion/zone": part} for part in ("device", "edge"))
    (edges,) = of_kind(objects((FOLDER / "base" / "zone" / "edge.yaml").read_text("utf-8")), "StatefulSet")
    (called,) = (port["containerPort"] for port in containers(edges)[0]["ports"] if port["name"] == "grpc")
    ports = [{"protocol": "TCP", "port": called}]
    assert leaving["spec"]["egress"][0]["ports"] == coming["spec"]["ingress"][0]["ports"] == ports
    assert matches(leaving["spec"]["podSelector"], device)
    assert matches(leaving["spec"]["egress"][0]["to"][0]["podSelector"], edge)
    assert matches(coming["spec"]["podSelector"], edge)
    assert matches(coming["spec"]["ingress"][0]["from"][0]["podSelector"], device)


def test_the_job_that_it_shows_is_the_clouds_of_those_that_the_script_prints() -> None:
    _, _, text = blocks("yaml")
    overlay = FOLDER / "overlays" / "four-zones"
    printed = manifests().scrape_configs(load_run_file(overlay / "run.toml", ()), "sgfusion-four-zones")
    shown, made = (yaml.safe_load(each)["scrape_configs"] for each in (text, printed))
    assert shown == made[:1]
    (policy,) = (each for each in of_kind(render(overlay), "NetworkPolicy") if name(each) == "metrics")
    ((peer,),) = (rule["from"] for rule in policy["spec"]["ingress"])
    ((label, value),) = peer["podSelector"]["matchLabels"].items()
    assert f'`{label}: "{value}"`' in PAGE


def test_every_file_that_it_lists_is_there() -> None:
    listed = re.findall(
        r"^\| `([\w./-]+)` \|", PAGE.partition("## What is there")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert listed
    assert [path for path in listed if not (FOLDER / path).exists()] == []
    assert sorted(path.name for path in FOLDER.glob("*.py")) == sorted(path for path in listed if path.endswith(".py"))


def test_what_it_types_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    module: Any = manifests()
    with pytest.raises(SystemExit):
        module.main(["--help"])
    known = capsys.readouterr().out
    commands = typer.main.get_group(app).commands
    for words in lines():
        if "deploy/kubernetes/manifests.py" in words:
            assert words[words.index("deploy/kubernetes/manifests.py") + 1] in known
        if "sgfusion" in words:
            _, command, *rest = words[words.index("sgfusion") :]
            options = {said for each in commands[command].params for said in (*each.opts, *each.secondary_opts)}
            assert {word for word in rest if word.startswith("--")} <= options
        namespaces = [word for word in words if word.startswith("sgfusion-")]
        assert set(namespaces) <= {"sgfusion-four-zones"}


def test_what_a_zone_is_on_kubernetes() -> None:
    said = re.search(r"On Kubernetes a zone is (\d+) objects", PAGE)
    assert said is not None
    rendered = render(FOLDER / "overlays" / "four-zones")
    of_zone = [each for each in rendered if each["metadata"].get("labels", {}).get("sgfusion/zone") == "lubelskie"]
    assert len(of_zone) + len(of_kind(of_zone, "StatefulSet")) == int(said[1])  # a Secret for each of these


def test_memory_is_that_of_the_manifests() -> None:
    rows = re.findall(r"^\| ([\w ]+) \| (\d+) MiB / (\d+) (MiB|GiB) \|", PAGE, re.MULTILINE)
    sets = {name(each): each for each in of_kind(render(FOLDER / "overlays" / "four-zones"), "StatefulSet")}
    for row, of in zip(rows, ("cloud", "edge-lubelskie", "devices-lubelskie"), strict=True):
        _, asked, most, unit = row
        resources = containers(sets[of])[-1]["resources"]
        assert (resources["requests"]["memory"], resources["limits"]["memory"]) == (f"{asked}Mi", f"{most}{unit[:2]}")


def test_limits_that_it_names_are_those_of_the_code() -> None:
    assert MOST_ZONES == 10_000
    assert "| 10,000 zones | no more are taken | `MOST_ZONES` |" in PAGE
    assert f"An edge waits {WITHIN:.0f} s" in PAGE
    assert f"{BUDGET >> 20} MiB of answers" in PAGE
    assert f"more than {MESSAGE_BYTES >> 20} MiB after it has been cut" in PAGE
