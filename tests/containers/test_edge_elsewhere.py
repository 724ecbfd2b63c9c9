"""A zone's edge on a host of its own, as docs/edge.md walks through it: its commands run as they stand, each host's in
a compose project and a network of its own. Only the data is small, and addresses are those that containers here reach.
"""

import http.client
import ipaddress
import json
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml

from console.observability import Observed, prometheus_yml
from sgfusion.runfile import load_run_file
from sgfusion.wire.identity import Identity
from tests.containers.edge_page import PAGE, REPOSITORY, explained, typed
from tests.containers.project import COMPOSE, OPERATOR, PATIENCE, Project, compose_command, tag_of, torn_down
from tests.containers.test_isolation import CALL, KEYS, refused_to_devices, said, stranger_says
from tests.pages import types
from tests.ssh import example_hosts

ZONE, NUMBER, OTHERS = "wielkopolskie", 3, ["lubelskie", "podlaskie", "swietokrzyskie"]
RUN = f"""
name = "containers"
seed = 1
rounds = 30
[task]
name = "linear"
[data]
source = "generated_zones"
devices = 8
samples = 8
features = 8
kinds = 1
contrast = 0.5
difference = 0.2
noise = 1.0
[zones]
names = {OTHERS}
[histogram]
epsilon = "off"
[optimiser]
rate = 0.002
[evaluation]
every = 20
"""
SETTINGS = ("SGFUSION_ZONE", "SGFUSION_CLOUD", "SGFUSION_ADVERTISE", "SGFUSION_DEVICES")


@pytest.fixture
def address(engine: docker.DockerClient) -> str:
    """This host, as containers of any network reach it: where it is in the engine's default network."""
    (config,) = engine.networks.get("bridge").attrs["IPAM"]["Config"]
    return config.get("Gateway") or str(next(ipaddress.ip_network(config["Subnet"]).hosts()))


@pytest.fixture(params=COMPOSE)
def hosts(
    request: pytest.FixtureRequest, engine: docker.DockerClient, images: dict[str, str], tmp_path: Path
) -> Iterator[tuple[Project, Project]]:
    """The cloud's host, and that of the edge; nothing runs yet."""
    tag, command = tag_of(images), compose_command(request.param)
    for folder in ("experiments", "cluster"):
        (tmp_path / folder).mkdir()
    (tmp_path / "experiments" / "containers.toml").write_text(RUN, "utf-8")
    for edge in (tmp_path / "deploy" / "edge", tmp_path / "edge"):
        shutil.copytree(REPOSITORY / "deploy" / "edge", edge, ignore=shutil.ignore_patterns(".env", "*.tar"))
    here = Project(engine, tmp_path / "cluster", tag, command)
    there = Project(engine, tmp_path / "edge", tag, command)
    with torn_down(here), torn_down(there):
        yield here, there


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody has."""
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311 (below those that the system gives out)
        with suppress(OSError):
            for further in range(port, port + count):
                socket.create_server(("0.0.0.0", further)).close()  # noqa: S104 (as Docker will)
            return port


def type_in(
    host: Project, folder: Path, commands: str, changes: Sequence[tuple[str, str]] = (), editor: str = ""
) -> str:
    """What a shell on that host prints."""
    for ours, other in (*changes, ("docker-compose ", f"{' '.join(host.command)} ")):
        commands = commands.replace(ours, other)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],  # noqa: S607
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COMPOSE_PROJECT_NAME": host.name,
            "SGFUSION_TAG": host.tag,
            "SGFUSION_USER": OPERATOR,
            "SGFUSION_PAGE_PORT": "0",
            "EDITOR": editor,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}\n{host.logs()}"
    return done.stdout


def zone_of(status: dict[str, Any], name: str) -> dict[str, Any]:
    return next((zone for zone in status["zones"] if zone["zone"] == name), {"drawn": [], "round": 0, "state": ""})


@types("docs/edge.md", but=["make images"])
@pytest.mark.timeout(900)
def test_a_zone_joins_from_a_host_of_its_own_while_the_others_train(
    hosts: tuple[Project, Project], address: str, tmp_path: Path
) -> None:
    here, there = hosts
    port = free_ports(len(OTHERS) + 1)

    # The cloud's host: three zones train, and the fourth gets its keys.
    (start,) = typed("1. A cluster to join")
    assert start.startswith("make images\n")  # images are there, under a tag of this run
    type_in(here, tmp_path, start, [("make images\n", ""), ("cloud.example:7070", f"{address}:{port}")])
    here.watch()
    before = here.until_round(1)
    assert [zone["zone"] for zone in before["zones"]] == OTHERS
    (enrol,) = typed("2. The zone's bundle")
    type_in(here, here.folder, enrol)
    assert (here.folder / f"{ZONE}.tar").stat().st_mode & 0o777 == 0o600
    all_that_it_needs_comes_by_ssh(here, there, tmp_path)

    # Its own host.
    own = free_ports(2)
    edits = {
        "cloud.example:7070": f"{address}:{port}",
        f"{ZONE}.example:7070": f"{address}:{own}",
        "PORT=7070": f"PORT={own}",
        "METRICS=127.0.0.1:9464": f"METRICS=127.0.0.1:{own + 1}",
    }
    editor = "sed -i " + " ".join(f"-e s/{ours}/{other}/" for ours, other in edits.items())
    configure, up, examine = typed("3. The new host")
    type_in(there, there.folder, configure, editor=editor)
    assert "serves at" in type_in(there, there.folder, up)

    # It takes part: a new plan, the others draw it, it draws others.
    joined = here.until(lambda status: zone_of(status, ZONE)["round"] > 0)
    assert (joined["plan"], zone_of(joined, ZONE)["number"]) == (before["plan"] + 1, NUMBER)
    assert zone_of(joined, ZONE)["address"] == f"{address}:{own}"
    for other in OTHERS:
        here.until(lambda status, other=other: NUMBER in zone_of(status, other)["drawn"])  # type: ignore[misc]
    taking_part = here.until(lambda status: bool(zone_of(status, ZONE)["drawn"]))
    assert set(zone_of(taking_part, ZONE)["drawn"]) <= {0, 1, 2}
    assert all(not zone["left_out"] for status in here.statuses() for zone in status["zones"])
    assert not taking_part["finished"]
    the_operator_sees_it(here)
    it_reaches_everybody_by_its_own_keys(there, examine, f"{address}:{port}")
    devices_are_refused_wherever_they_can_dial(there, address, port, own)
    its_metrics_are_for_the_monitor_on_its_own_host(here, there, own + 1, tmp_path)

    # It goes on after a pause without its bundle, and leaves.
    type_in(there, there.folder, "rm bundle/*.tar")
    pause, leave = typed("5. Stop, go on, leave")
    type_in(there, there.folder, pause)
    reached = zone_of(here.statuses(last=1)[-1], ZONE)["round"]
    assert reached > 0
    here.until(lambda status: zone_of(status, ZONE)["round"] > reached)
    (went_on,) = (event for event in logged(there) if "goes on after round" in event["message"])
    assert (went_on["tier"], went_on["zone"]) == ("edge", ZONE)
    type_in(there, there.folder, "docker-compose restart edge")
    reached = zone_of(here.statuses(last=1)[-1], ZONE)["round"]
    here.until(lambda status: zone_of(status, ZONE)["round"] > reached)
    assert there.container("edge").logs().decode().count("goes on after round") == 2
    assert f"zone {ZONE} has left the run" in type_in(there, there.folder, leave)
    it_has_left_and_its_progress_can_go(here, there, joined["plan"])


def all_that_it_needs_comes_by_ssh(here: Project, there: Project, place: Path) -> None:
    """The folder, the bundle and the images; here both hosts have one engine."""
    shutil.rmtree(there.folder)
    (bring,) = typed("3. The new host", "text")
    with example_hosts(place / "ssh", home=there.folder.parent) as programs:
        loaded = type_in(here, place, f"PATH={programs}:$PATH\n{bring}", [("latest", here.tag)])
    # In an order of the engine's own.
    assert {*loaded.splitlines()} == {f"Loaded image: sgfusion/{target}:{here.tag}" for target in ("edge", "device")}
    assert (there.folder / "bundle" / f"{ZONE}.tar").stat().st_mode & 0o777 == 0o600


def the_operator_sees_it(here: Project) -> None:
    (see,) = typed("4. See it take part")
    printed = type_in(here, here.folder, see)
    assert re.search(rf"{ZONE} .* training .* 8/8 ", printed)
    assert (here.folder / "results" / "containers" / ZONE / f"{ZONE}.safetensors").exists()


def it_reaches_everybody_by_its_own_keys(there: Project, examine: str, cloud: str) -> None:
    """It has no others, those of an operator least of all."""
    everybody_has_only_its_own_keys(there)
    found = " ".join(type_in(there, there.folder, examine, [("cloud.example:7070", cloud)]).split())
    assert f"proves who it is and takes us for edge {ZONE}" in found, found
    assert "✓ peers 3 of 3 answer, prove who they are and take us" in found, found


def it_has_left_and_its_progress_can_go(here: Project, there: Project, before: int) -> None:
    """To begin another run, the edge's volume is removed, and the ledgers stay."""
    here.until(lambda status: status["plan"] > before and zone_of(status, ZONE)["state"] == "left")
    looks = "docker-compose ps\ndocker-compose logs unpack\n"  # as the page's tables say
    routine = "{ docker-compose logs edge | grep -v INFO; docker-compose logs edge devices | grep -v INFO; } || true\n"
    type_in(there, there.folder, looks + routine)
    type_in(there, there.folder, f"docker-compose down\ndocker volume rm {there.name}_edge\n")
    assert there.engine.volumes.list(filters={"name": f"{there.name}_devices"})


def logged(there: Project) -> list[dict[str, Any]]:
    """The edge's lines as they are, without a name before each: docs/logs.md."""
    lines = type_in(there, there.folder, f"docker logs {there.container('edge').name} 2>&1").splitlines()
    return [json.loads(line) for line in lines]


def everybody_has_only_its_own_keys(there: Project) -> None:
    devices = [Identity("device", f"d{number}").uri for number in range(8)]
    assert said(there.container("devices"), KEYS) == [devices, []]
    assert said(there.container("edge"), KEYS) == [[Identity("edge", ZONE).uri], []]


def devices_are_refused_wherever_they_can_dial(there: Project, address: str, port: int, own: int) -> None:
    """Their network leads to the edge, and to the host itself. What the host publishes of containers, as here of cloud
    and other edges, engines keep from them; it would be their role that is refused. That is seen from another network.
    """
    cloud, edge = (refused_to_devices(service) for service in ("CloudService", "PeerService"))
    edge += refused_to_devices("EdgeService")
    device = [there.container("devices"), CALL, "/keys/device-d0"]
    assert said(*device, "edge", ZONE, "edge:7070", *edge) == dict.fromkeys(edge, "PERMISSION_DENIED")

    field = subnet_of(there, "field")
    host = field.get("Gateway") or str(next(ipaddress.ip_network(field["Subnet"]).hosts()))
    for place in (address, host):
        (heard,) = said(*device, "cloud", "-", f"{place}:{port}", cloud[0]).values()
        assert heard in ("UNAVAILABLE", "PERMISSION_DENIED"), place

    published = {("cloud", "-"): port, ("edge", OTHERS[0]): port + 1, ("edge", ZONE): own}
    for (role, zone), number in published.items():
        paths = cloud if role == "cloud" else edge
        where = [role, zone, f"{address}:{number}"]
        found = stranger_says(there, "uplink", "keys-devices", CALL, "/keys/device-d0", *where, *paths)
        assert found == dict.fromkeys(paths, "PERMISSION_DENIED"), where


def its_metrics_are_for_the_monitor_on_its_own_host(here: Project, there: Project, port: int, folder: Path) -> None:
    (fetch,) = typed("Its metrics")
    type_in(here, here.folder, fetch)
    bundle = there.folder / "bundle" / f"{ZONE}.tar"
    for archive in (here.folder / "monitor.tar", bundle):
        with tarfile.open(archive) as packed:
            packed.extractall(folder / "unpacked", filter="data")
    monitor, device = folder / "unpacked" / "monitor", folder / "unpacked" / "devices" / "device-d0"
    status, text = read_metrics(port, monitor / "ca.crt", monitor)
    assert status == 200
    assert f'sgfusion_edge_devices{{state="attending",zone="{ZONE}"}} 8.0' in text
    status, text = read_metrics(port, monitor / "ca.crt", device)
    assert (status, text) == (403, "device d0 may not read metrics: monitor or operator may\n")
    with pytest.raises(OSError, match=r"certificate required|reset by peer|without response"):
        read_metrics(port, monitor / "ca.crt", None)
    edge = there.container("edge")
    edge.reload()
    assert edge.ports["9464/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": f"{port}"}]


def read_metrics(port: int, ca: Path, keys: Path | None) -> tuple[int, str]:
    """As Prometheus reads them by the page's job: the server proves the name that is said there."""
    context = ssl.create_default_context(cafile=ca)
    if keys is not None:
        context.load_cert_chain(keys / "tls.crt", keys / "tls.key")
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
        connection.sock = context.wrap_socket(plain, server_hostname=scrape_job()["tls_config"]["server_name"])
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        status, text = answer.status, answer.read().decode()
        connection.close()
    return status, text


def scrape_job() -> dict[str, Any]:
    (text,) = typed("Its metrics", "yaml")
    (job,) = yaml.safe_load(text)["scrape_configs"]
    return dict(job)


def subnet_of(host: Project, network: str) -> dict[str, str]:
    """Its subnet and gateway."""
    (found,) = host.engine.networks.get(host.network(network)).attrs["IPAM"]["Config"]
    return dict(found)


def settings(**changed: str) -> str:
    values = {
        "ZONE": ZONE,
        "CLOUD": "127.0.0.1:1",
        "ADVERTISE": "127.0.0.1:2",
        "DEVICES": "1",
        "METRICS": "127.0.0.1:0",
    }
    return "".join(f"SGFUSION_{name}={value}\n" for name, value in {**values, **changed}.items() if value)


@pytest.mark.parametrize("missing", SETTINGS)
def test_a_missing_setting_is_named(hosts: tuple[Project, Project], missing: str) -> None:
    _, there = hosts
    (there.folder / ".env").write_text(settings(**{missing.removeprefix("SGFUSION_"): ""}), "utf-8")
    refused = there.compose("config", "--quiet", check=False)
    assert refused.returncode != 0
    assert missing in refused.stderr
    told = refused.stderr.rstrip().rpartition(": ")[2]
    assert told.startswith("say in .env ")
    assert missing != "SGFUSION_ZONE" or explained("say in .env which", refused.stderr)
    assert f"${{{missing}:?{told}}}" in (there.folder / "docker-compose.yml").read_text("utf-8")


@pytest.mark.parametrize(
    ("bundles", "told", "begins"),
    [
        ({}, "bundle/ holds no bundle: make one where the cloud's CA is", "bundle/ holds no bundle"),
        ({"a.tar": b"", "b.tar": b""}, "bundle/ holds 2 bundles", "bundle/ holds 2 bundles"),
        ({"a.tar": b"half of one"}, "bundle/a.tar is no bundle: make it by sgfusion certs --zone", "is no bundle"),
    ],
    ids=["none", "two", "broken"],
)
def test_without_its_keys_a_host_says_what_to_bring(
    hosts: tuple[Project, Project], bundles: dict[str, bytes], told: str, begins: str
) -> None:
    _, there = hosts
    (there.folder / ".env").write_text(settings(), "utf-8")
    for name, content in bundles.items():
        (there.folder / "bundle" / name).write_bytes(content)
    refused = not_up(there)
    first = there.command == ["docker-compose"]
    assert explained("exited with code 1" if first else 'service "unpack" didn', refused), refused
    log = there.container("unpack").logs().decode()
    assert told in log
    assert explained(begins, log)


def not_up(there: Project) -> str:
    """What an `up` says that fails."""
    refused = there.compose("up", "--detach", check=False)
    assert refused.returncode != 0
    return refused.stdout + refused.stderr


def until_logged(there: Project, words: str) -> None:
    end = time.monotonic() + PATIENCE
    while words not in there.container("edge").logs().decode():
        assert time.monotonic() < end, there.logs()
        time.sleep(0.1)  # between two looks


def test_with_its_keys_a_host_says_what_is_wrong(hosts: tuple[Project, Project]) -> None:
    """A port that a process has, one that a container has, a cloud's address that nobody has, another zone's name."""
    here, there = hosts
    make = f"sgfusion certs run.toml --zone {OTHERS[0]}; sgfusion certs run.toml --zone {ZONE} --bundle ours.tar"
    (here.folder / "run.toml").write_text(RUN, "utf-8")
    type_in(here, here.folder, make)
    shutil.move(here.folder / "ours.tar", there.folder / "bundle")
    port = free_ports(1)
    (there.folder / ".env").write_text(settings(PORT=f"{port}"), "utf-8")
    with socket.create_server(("0.0.0.0", port)):  # noqa: S104 (as Docker would)
        refused = not_up(there)
    assert explained("address already in use", refused), refused
    there.engine.containers.run(
        there.image("edge"),
        ["60"],
        entrypoint="sleep",
        ports={"7070/tcp": port},
        labels={"sgfusion.test": there.name},
        detach=True,
    )
    refused = not_up(there)
    assert explained("port is already allocated", refused), refused
    own = free_ports(1)
    nobody = list(ipaddress.ip_network(subnet_of(there, "uplink")["Subnet"]).hosts())[-1]
    (there.folder / ".env").write_text(settings(PORT=f"{own}", CLOUD=f"{nobody}:7070"), "utf-8")
    type_in(there, there.folder, "docker-compose up -d edge")
    until_logged(there, "goes on without it")
    assert explained("no connection to … (… No route", there.container("edge").logs().decode())
    (there.folder / ".env").write_text(settings(PORT=f"{own}", ZONE="lublin"), "utf-8")
    refused = not_up(there)
    assert explained("is unhealthy", refused), refused
    assert explained("tls.crt is the certificate of", there.container("edge").logs().decode())


def test_the_job_on_the_page_reads_the_port_that_is_published_by_the_name_that_the_edge_proves() -> None:
    job = scrape_job()
    edge = yaml.safe_load((REPOSITORY / "deploy/edge/docker-compose.yml").read_text("utf-8"))["services"]["edge"]
    ((target,),) = [each["targets"] for each in job["static_configs"]]
    assert f"${{SGFUSION_METRICS:-{target}}}:9464" in edge["ports"]
    assert edge["command"][-2:] == ["--metrics", "0.0.0.0:9464"]
    who = Identity("edge", ZONE)
    assert job["tls_config"]["server_name"] == who.server_name
    compose = load_run_file(REPOSITORY / "experiments" / "containers.toml")
    observed = yaml.safe_load(prometheus_yml(Observed(compose.name, "", [(f"edge-{ZONE}", ZONE)], [])))
    (same,) = (each for each in observed["scrape_configs"] if each["job_name"] == job["job_name"])
    (labels,), (theirs,) = ([each["labels"] for each in one["static_configs"]] for one in (job, same))
    assert labels == {**theirs, "instance": f"edge-{ZONE}"}


def test_the_page_and_the_example_know_every_setting() -> None:
    used = set(re.findall(r"\$\{(SGFUSION_\w+)", (REPOSITORY / "deploy/edge/docker-compose.yml").read_text("utf-8")))
    example = (REPOSITORY / "deploy/edge/.env.example").read_text("utf-8")
    assert set(re.findall(r"^(SGFUSION_\w+)=.+$", example, re.MULTILINE)) == used
    assert set(re.findall(r"^\| `(SGFUSION_\w+)` \|", PAGE, re.MULTILINE)) == used
    assert {name for name in used if f"${{{name}:?" in (REPOSITORY / "deploy/edge/docker-compose.yml").read_text()} == {
        *SETTINGS
    }
