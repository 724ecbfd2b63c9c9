"""The profile `observe` of a compose file: what it says. That it works is shown in tests/containers."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.compose import Asked, compose
from console.observability import FOLDER
from sgfusion.runfile import load_run_file
from sgfusion.wire.identity import Identity
from tests.console.commands import sgfusion
from tests.console.test_compose import ROOT, Capture, composed, write_run

OBSERVERS = {"prometheus", "grafana"}


def prometheus_of(folder: Path) -> Any:
    return yaml.safe_load((folder / "prometheus.yml").read_text("utf-8"))


def test_the_file_of_the_root_is_what_the_command_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path = Path("experiments/containers.toml")
    made = compose(load_run_file(path), path, Asked(Path()))
    assert made.prometheus is not None
    where, text = made.prometheus
    assert where == FOLDER / "prometheus.yml"
    assert text == where.read_text("utf-8")


def test_who_does_not_ask_for_it_gets_none_of_it(tmp_path: Path, capsys: Capture) -> None:
    services = composed(capsys, write_run(tmp_path, "north", "south"), tmp_path / "out")["services"]
    assert {name for name, service in services.items() if "profiles" in service} == OBSERVERS
    for name, service in services.items():
        if name in OBSERVERS:
            assert service["profiles"] == ["observe"]
        else:
            assert not OBSERVERS & set(service.get("depends_on", ())), name


def test_observers_are_confined_and_for_this_machine_alone(tmp_path: Path, capsys: Capture) -> None:
    found = composed(capsys, write_run(tmp_path, "north", "south"), tmp_path / "out")
    services = found["services"]
    for name in OBSERVERS:
        service = services[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not service["user"].startswith("0:")
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert "privileged" not in service
        assert not any("docker.sock" in volume for volume in service["volumes"])
    # Of those that Prometheus reads nobody is on the network where it listens, so nobody reaches it.
    assert {name for name, service in services.items() if "observe" in service.get("networks", ())} == OBSERVERS
    assert services["prometheus"]["networks"]["observe"]["aliases"] == ["prometheus.observe"]
    assert "--web.listen-address=prometheus.observe:9090" in services["prometheus"]["command"]
    assert set(services["grafana"]["networks"]) == {"observe"}
    # Its keys are the monitor's, which nobody else has.
    holders = [n for n, s in services.items() if any(v.startswith("keys-monitor:") for v in s["volumes"])]
    assert holders == ["certs", "prometheus"]
    assert "chown -R 65534:65534 /keys/monitor" in services["certs"]["command"][0]
    assert services["prometheus"]["user"] == "65534:65534"


def test_all_services_are_read_each_by_the_name_that_it_proves(tmp_path: Path, capsys: Capture) -> None:
    zones = ("Łódź", "no", "south")
    services = composed(capsys, write_run(tmp_path, *zones), tmp_path / "out", "--hosts", "2")["services"]
    jobs = {job["job_name"]: job for job in prometheus_of(tmp_path / "out")["scrape_configs"]}
    named = {"cloud": Identity("cloud"), "edge-zone-0": Identity("edge", "Łódź")}
    named |= {f"edge-{zone}": Identity("edge", zone) for zone in ("no", "south")}
    assert set(jobs) == {*named, "devices"}
    for name, who in named.items():
        assert jobs[name]["scheme"] == "https"
        assert jobs[name]["tls_config"]["server_name"] == who.server_name
        assert jobs[name]["tls_config"]["ca_file"] == "/keys/ca.crt"
        assert jobs[name]["static_configs"][0]["targets"] == [f"{name}:9464"]
        assert services[name]["command"][-2:] == ["--metrics", "0.0.0.0:9464"] or name == "cloud"
        assert "--metrics" in services[name]["command"]
        assert "--metrics-plain" not in services[name]["command"]
    (devices,) = jobs["devices"]["static_configs"]
    hosts = [name for name in services if name.startswith("devices-")]
    assert devices["targets"] == [f"{host}:9464" for host in hosts]
    for host in hosts:
        assert services[host]["command"][-3:] == ["--metrics", "0.0.0.0:9464", "--metrics-plain"]
    for job in jobs.values():
        assert all(
            each["labels"] | {"tier": ""} == {"job": "sgfusion", "run": "small", "tier": ""}
            for each in job["static_configs"]
        )


@pytest.mark.parametrize("publish", [(), ("--publish", "hub.example:9000")], ids=["here", "published"])
def test_prometheus_reaches_all_and_its_port_leads_to_where_it_listens(
    tmp_path: Path, capsys: Capture, publish: tuple[str, ...]
) -> None:
    """An engine publishes a port on the first, by name, of a container's networks that lead out."""
    found = composed(capsys, write_run(tmp_path, "north", "south"), tmp_path / "out", *publish)
    services, networks = found["services"], found["networks"]
    own = set(services["prometheus"]["networks"])
    assert [name for name in sorted(own) if not networks[name].get("internal")] == ["observe"]
    for job in prometheus_of(tmp_path / "out")["scrape_configs"]:
        for target in job["static_configs"][0]["targets"]:
            assert own & set(services[target.partition(":")[0]]["networks"]), target
    used = {network for service in services.values() for network in service.get("networks", ())}
    assert used == set(networks)
    ports = [port.rpartition(":")[0] for service in services.values() for port in service.get("ports", ())]
    assert len(set(ports)) == len(ports) == (5 if publish else 2) + 1
    if shutil.which("docker-compose"):
        asked = ["docker-compose", "--profile", "observe", "config", "--quiet"]
        read = subprocess.run(asked, cwd=tmp_path / "out", capture_output=True, text=True, check=False)
        assert read.returncode == 0, read.stderr


def test_where_there_are_no_rules_there_is_no_profile(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed, SGFusion has no deploy/observability."""
    monkeypatch.setattr("console.compose.ROOT", tmp_path)
    done = sgfusion(capsys, "compose", write_run(tmp_path, "a", "b"), "--out", tmp_path / "out")
    assert done.code == 0, done.error
    text = (tmp_path / "out" / "docker-compose.yml").read_text("utf-8")
    assert "observe" not in text
    assert "monitor" not in text
    assert not (tmp_path / "out" / "prometheus.yml").exists()
