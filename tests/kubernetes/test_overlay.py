"""Overlays and Secrets that deploy/kubernetes/manifests.py makes of a run file."""

import base64
import io
import json
import shlex
import subprocess
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.certs import host_folder, make_certificates
from sgfusion.errors import InputError
from sgfusion.runfile import load_run_file
from sgfusion.wire.channel import Keys
from sgfusion.wire.identity import Identity, folder_of
from simulator.resolve import devices_of
from tests.console.commands import sgfusion
from tests.kubernetes.rendering import (
    FOLDER,
    NEWEST,
    OVERLAYS,
    Object,
    check,
    containers,
    labels,
    manifests,
    name,
    objects,
    of_kind,
    pod,
    render,
)
from tests.metrics.prometheus import program

GENERATED = """
name = "odd"
seed = 1
rounds = 3
task.name = "linear"
zones.names = {names}
[data]
source = "generated_zones"
devices = 2
samples = 4
features = 2
kinds = 2
contrast = 0.5
difference = 0.1
noise = 1.0
"""
ODD = ("ABQ", "Łódź", "a.b_C", "x" * 50, "y" * 90, "north")


@pytest.fixture(scope="module")
def module() -> Any:
    return manifests()


def run_file(folder: Path, names: Sequence[str]) -> Path:
    path = folder / "odd.toml"
    path.write_text(GENERATED.format(names=json.dumps(list(names), ensure_ascii=False)), "utf-8")
    return path


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def mebibytes(quantity: str) -> int:
    assert quantity.endswith("Mi")
    return int(quantity.removesuffix("Mi"))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_committed_overlay_is_what_the_script_writes(overlay: str, module: Any, tmp_path: Path) -> None:
    folder = tmp_path / overlay
    module.write_overlay(OVERLAYS[overlay], folder)
    written = files(folder)
    base = (folder / "kustomization.yaml").read_text("utf-8").partition("  - ")[2].partition("/run\n")[0]
    committed = files(FOLDER / "overlays" / overlay)
    assert {path: text.replace(base, "../../base") for path, text in written.items()} == committed
    run = load_run_file(folder / "run.toml", ())
    assert run == load_run_file(OVERLAYS[overlay], ())
    for zone, devices in devices_of(run).items():
        assert f"DEVICES={len(devices)}" in committed[f"zones/{zone}/kustomization.yaml"]


def test_a_run_whose_file_names_no_zones_gets_one_that_does(module: Any, tmp_path: Path) -> None:
    source = tmp_path / "demo.toml"
    text = (FOLDER.parents[1] / "experiments" / "containers.toml").read_text("utf-8")
    source.write_text("\n".join(line for line in text.splitlines() if not line.startswith("names")), "utf-8")
    module.write_overlay(source, tmp_path / "all")
    assert len(load_run_file(tmp_path / "all" / "run.toml", ()).zones.names) == 16


def test_a_run_whose_file_has_no_places_gets_one_that_does(module: Any, tmp_path: Path) -> None:
    source = tmp_path / "bare.toml"
    text = (FOLDER.parents[1] / "experiments" / "containers.toml").read_text("utf-8")
    source.write_text(text[: text.index("[zones.places]")] + text[text.index("[histogram]") :], "utf-8")
    module.write_overlay(source, tmp_path / "placed")
    zones = load_run_file(tmp_path / "placed" / "run.toml", ()).zones
    assert zones.places == load_run_file(OVERLAYS["four-zones"], ()).zones.places is not None


def test_an_overlay_written_again_has_the_zones_of_now(module: Any, tmp_path: Path) -> None:
    for names in (["north", "coast"], ["north", "hills"]):
        module.write_overlay(run_file(tmp_path, names), tmp_path / "again")
    assert sorted(path.name for path in (tmp_path / "again" / "zones").iterdir()) == ["hills", "north"]


def test_a_run_with_files_of_its_own_is_refused(module: Any, tmp_path: Path) -> None:
    path = run_file(tmp_path, ["north"])
    tree = tmp_path / "tree.json"
    path.write_text(path.read_text("utf-8") + f"[hrg]\nfrom = {json.dumps(str(tree))}\n", "utf-8")
    with pytest.raises(InputError, match=r"hrg\.from names a file"):
        module.write_overlay(path, tmp_path / "files")


def test_any_zone_name_gives_names_that_kubernetes_takes(module: Any, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    module.write_overlay(run_file(tmp_path, ODD), folder)
    rendered = render(folder)
    for each in rendered:
        check(each, NEWEST)
    sets = of_kind(rendered, "StatefulSet")
    assert max(len(name(each)) for each in sets) <= 52
    said = {
        each["data"]["ZONE"]: each["data"]["EDGE"] for each in of_kind(rendered, "ConfigMap") if "ZONE" in each["data"]
    }
    assert set(said) == set(ODD)
    services = {f"{name(each)}:7070" for each in of_kind(rendered, "Service")}
    assert set(said.values()) == services - {"cloud:7070"}


def test_fifty_zones(module: Any, tmp_path: Path) -> None:
    names = [f"z{number:02}" for number in range(50)]
    module.write_overlay(run_file(tmp_path, names), tmp_path / "fifty")
    rendered = render(tmp_path / "fifty")
    assert len(of_kind(rendered, "StatefulSet")) == 2 + 2 * 50
    for each in rendered[::7]:
        check(each, NEWEST)


def test_every_secret_that_a_pod_mounts_is_made_and_holds_its_keys_alone(
    module: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run_file(tmp_path, ["north", "Łódź"])
    run = load_run_file(path, ())
    _, *command = shlex.split(module.certs_command(path, run))
    assert sgfusion(capsys, *command, "--out", str(tmp_path / "certs")).code == 0
    made = module.secrets(run, tmp_path / "certs", "sgfusion-odd")["items"]
    assert made == module.secrets(run, tmp_path / "certs", "sgfusion-odd")["items"]  # applied again, nothing changes
    found = {}
    for secret in made:
        check(secret, NEWEST)
        found[name(secret)] = _unpacked(secret, tmp_path / "pods" / name(secret))
    for identity, secret in (
        (Identity("cloud"), "cloud"),
        (Identity("operator"), "operator"),
        *((Identity("edge", zone), f"edge-{module.name_of(zone)}") for zone in run.zones.names),
    ):
        Keys.load(found[secret], identity)
        assert len(list(found[secret].iterdir())) == 3
    for zone, devices in devices_of(run).items():
        host = found[f"devices-{module.name_of(zone)}"]
        for device in devices:
            Keys.load(folder_of(host, Identity("device", device)), Identity("device", device))
        assert len(list(host.iterdir())) == len(devices)
        assert not list((tmp_path / "certs").glob("device-*"))
        assert (tmp_path / "certs" / host_folder([zone])).is_dir()

    module.write_overlay(path, tmp_path / "odd")
    mounted = {
        volume["secret"]["secretName"]
        for workload in of_kind(render(tmp_path / "odd"), "StatefulSet")
        for volume in pod(workload)["volumes"]
        if "secret" in volume
    }
    assert mounted == set(found)


def _unpacked(secret: Object, folder: Path) -> Path:
    """The folder that a pod sees: what the Secret holds, or what the init container makes of it."""
    folder.mkdir(parents=True)
    for file, content in secret["data"].items():
        data = base64.b64decode(content)
        if file.endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                assert {entry.mode for entry in archive} == {0o600}
                archive.extractall(folder, filter="data")
        else:
            (folder / file).write_bytes(data)
    return folder


def test_the_host_of_devices_unpacks_the_archive_that_the_secret_holds(module: Any) -> None:
    hosts = [
        each for each in of_kind(render(FOLDER / "overlays" / "four-zones"), "StatefulSet") if "devices" in name(each)
    ]
    for host in hosts:
        unpack, _ = containers(host)
        *_, archive, into = unpack["command"]
        mounts = {mount["mountPath"]: mount["name"] for mount in unpack["volumeMounts"]}
        assert archive == f"/archive/{module.ARCHIVE}"
        assert (mounts["/archive"], mounts[into]) == ("archive", "keys")


def test_the_keys_of_as_many_devices_as_a_secret_holds_find_room_in_memory(module: Any, tmp_path: Path) -> None:
    devices = [Identity("device", f"device-{number:04}") for number in range(40)]
    make_certificates(tmp_path, devices, days=1, renew=False, now=datetime.now(UTC))
    folders = [folder_of(tmp_path, device) for device in devices]
    each = (len(module._archive(folders)) - len(module._archive(folders[:20]))) / 20
    pages = 3 * module.MOST_BYTES / each  # a file takes one in memory, however small it is
    (host,) = of_kind(objects((FOLDER / "base" / "zone" / "devices.yaml").read_text("utf-8")), "StatefulSet")
    (room,) = (volume["emptyDir"]["sizeLimit"] for volume in pod(host)["volumes"] if volume["name"] == "keys")
    unpack, _ = containers(host)
    assert pages * 4096 < mebibytes(room) << 20
    assert mebibytes(room) + 32 <= mebibytes(unpack["resources"]["limits"]["memory"])  # it pays for what it writes


def test_keys_that_are_not_there_are_named(module: Any, tmp_path: Path) -> None:
    run = load_run_file(run_file(tmp_path, ["north"]), ())
    with pytest.raises(InputError, match=r"cloud.ca\.crt cannot be read"):
        module.secrets(run, tmp_path / "none", "sgfusion-odd")


def test_a_secret_beyond_kubernetes_limit_is_refused(
    module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    monkeypatch.setattr(module, "_read", lambda _path: b"x" * 10)
    run = load_run_file(run_file(tmp_path, ["north"]), ())
    with pytest.raises(InputError, match="Secret cloud would have 30 bytes, Kubernetes takes 10"):
        module.secrets(run, tmp_path, "sgfusion-odd")


def test_prometheus_reads_every_server_at_its_service_by_the_name_that_it_proves(module: Any, tmp_path: Path) -> None:
    path = run_file(tmp_path, ODD)
    run = load_run_file(path, ())
    module.write_overlay(path, tmp_path / "odd")
    rendered = render(tmp_path / "odd")
    *servers, devices = yaml.safe_load(module.scrape_configs(run, "sgfusion-odd"))["scrape_configs"]
    who = {"cloud": Identity("cloud")} | {f"edge-{module.name_of(zone)}": Identity("edge", zone) for zone in ODD}
    assert [name(each) for each in of_kind(rendered, "Service")] == sorted(who)
    for job, (service, identity) in zip(servers, who.items(), strict=True):
        assert job["job_name"] == f"sgfusion-odd/{service}"
        assert (job["scheme"], job["tls_config"]["server_name"]) == ("https", identity.server_name)
        (static,) = job["static_configs"]
        assert static["targets"] == [f"{service}.sgfusion-odd.svc:9464"]
        assert static["labels"].items() >= {"instance": service, "tier": identity.role, "run": "odd"}.items()
    (pods,) = devices["kubernetes_sd_configs"]
    ((key, value),) = (each["label"].split("=") for each in pods["selectors"])
    hosts = [each for each in of_kind(rendered, "StatefulSet") if labels(each).get(key) == value]
    assert {name(each) for each in hosts} == {f"devices-{module.name_of(zone)}" for zone in ODD}
    assert pods["namespaces"] == {"names": [host["metadata"]["namespace"] for host in hosts[:1]]}


def test_prometheus_takes_what_is_printed_for_it(module: Any, tmp_path: Path) -> None:
    """All but who is asked for device hosts: Debian's is built without Kubernetes."""
    config = yaml.safe_load(module.scrape_configs(load_run_file(run_file(tmp_path, ODD), ()), "sgfusion-odd"))
    del config["scrape_configs"][-1]["kubernetes_sd_configs"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config), "utf-8")
    asked = [program("promtool"), "check", "config", "--syntax-only", str(tmp_path / "prometheus.yml")]  # without keys
    checked = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("command", ["overlay", "certs", "secrets", "prometheus"])
def test_the_command_line(command: str, module: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_file(tmp_path, ["north"])
    rest = {
        "overlay": [str(tmp_path / "new")],
        "certs": [],
        "secrets": [str(tmp_path), "--namespace", "odd"],
        "prometheus": ["--namespace", "odd"],
    }[command]
    if command == "secrets":
        with pytest.raises(SystemExit, match=r"error: .*ca\.crt cannot be read"):
            module.main([command, str(path), *rest])
        return
    module.main([command, str(path), *rest])
    if command == "overlay":
        assert (tmp_path / "new" / "kustomization.yaml").exists()
    elif command == "prometheus":
        assert capsys.readouterr().out == module.scrape_configs(load_run_file(path, ()), "odd")
    else:
        assert capsys.readouterr().out == f"sgfusion certs {path} --host north\n"
