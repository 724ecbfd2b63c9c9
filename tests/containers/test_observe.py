"""The profile `observe`: Prometheus reads all containers over mutual TLS, and none of them reaches it.

The images of Prometheus and Grafana cannot be pulled where we test. Prometheus is this machine's own, in an image like
the real one in what matters here (its user, its data's owner, its command). In Grafana's place stands a container that
does nothing: that its files are there and that it reaches Prometheus where they say is seen from inside.
"""

import hashlib
import io
import shlex
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest
import yaml
from docker.models.containers import Container

from tests.containers.project import COMPOSE, Project, compose_command, project, tag_of
from tests.containers.runs import ZONES, run_text
from tests.containers.test_isolation import said
from tests.metrics.page import blocks
from tests.metrics.prometheus import FOLDER, Prometheus, alerts, program
from tests.pages import types

SERVICES = {"cloud", *(f"edge-{zone}" for zone in ZONES), "devices-ash", "devices-birch"}
PROMETHEUS = """
FROM {base}
USER 0:0
COPY prometheus /bin/prometheus
RUN mkdir -p /prometheus /etc/prometheus && chown 65534:65534 /prometheus
USER 65534:65534
WORKDIR /prometheus
ENTRYPOINT ["/bin/prometheus"]
"""
GRAFANA = """
FROM {base}
USER 0:0
RUN mkdir -p /var/lib/grafana && chown 472:0 /var/lib/grafana
USER 472:0
ENTRYPOINT ["sleep", "infinity"]
"""
READ = """
import json, ssl, sys, urllib.request
url, keys = sys.argv[1:3]
context = None
if url.startswith("https"):
    context = ssl.create_default_context(cafile=f"{keys}/ca.crt")
    context.check_hostname = False
    context.load_cert_chain(f"{keys}/tls.crt", f"{keys}/tls.key")
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
try:
    with opener.open(url, timeout=10) as answer:
        print(json.dumps([answer.status, answer.read().decode()[:200]]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
except OSError as error:
    print(json.dumps([0, type(getattr(error, "reason", error)).__name__]))
"""
LISTED = """
import hashlib, json, pathlib
print(json.dumps({str(path): hashlib.sha256(path.read_bytes()).hexdigest()
    for folder in ("/etc/grafana/provisioning", "/etc/sgfusion/dashboards")
    for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}))
"""


@contextmanager
def observers(engine: docker.DockerClient, base: str) -> Iterator[dict[str, str]]:
    """Images to observe with, as settings of Compose; gone afterwards."""
    tag = uuid.uuid4().hex[:10]
    made = {}
    try:
        for name, text, file in (
            ("prometheus", PROMETHEUS, Path(program("prometheus"))),
            ("grafana", GRAFANA, None),
        ):
            context = io.BytesIO()
            with tarfile.open(fileobj=context, mode="w") as archive:
                content = text.format(base=base).encode()
                described = tarfile.TarInfo("Dockerfile")
                described.size = len(content)
                archive.addfile(described, io.BytesIO(content))
                if file is not None:
                    archive.add(file.resolve(), "prometheus")
            context.seek(0)
            image = f"sgfusion-test/{name}:{tag}"
            engine.images.build(fileobj=context, custom_context=True, tag=image, rm=True)
            made[name] = image
        ports = {"SGFUSION_PROMETHEUS_PORT": "0", "SGFUSION_GRAFANA_PORT": "0"}  # any that is free
        yield {f"SGFUSION_{name.upper()}_IMAGE": image for name, image in made.items()} | ports
    finally:
        for image in made.values():
            engine.images.remove(image, force=True)


@types("docs/metrics.md#In containers")
@pytest.mark.parametrize("command", COMPOSE)
def test_all_are_read_over_mutual_tls_and_nobody_reaches_who_reads(
    command: str, engine: docker.DockerClient, images: dict[str, str], tmp_path: Path
) -> None:
    compose = compose_command(command)
    up, down = (shlex.split(line)[1:] for line in blocks("sh")[1].splitlines())
    with (
        observers(engine, images["edge"]) as settings,
        project(engine, tmp_path, run_text(100_000), tag_of(images), command=compose, hosts=2) as cluster,
    ):
        cluster.environment = settings
        cluster.compose("up", "--detach", "cloud")
        assert {each.labels["com.docker.compose.service"] for each in cluster.containers()} == {"certs", "cloud"}
        cluster.compose(*up)
        prometheus = reached(cluster, tmp_path)
        prometheus.until(lambda: prometheus.up() == SERVICES, "all targets up", 200)
        every_server_has_proved_who_it_is(prometheus)
        prometheus.until(lambda: prometheus.number("min(sgfusion_cloud_zone_round) > bool 2") == 1, "rounds", 200)
        groups = prometheus.get("rules", type="alert")["groups"]
        assert {rule["name"]: rule["health"] for group in groups for rule in group["rules"]} == dict.fromkeys(
            alerts(), "ok"
        )
        nobody_reaches_prometheus_from_where_it_reads(cluster)
        a_device_reads_no_metrics_of_servers(cluster)
        grafana_has_its_files_and_reaches_prometheus(cluster)
        cluster.compose(*down)
        assert not cluster.containers()


def reached(cluster: Project, folder: Path) -> Prometheus:
    """Prometheus by its port on this machine's loopback device."""
    container = cluster.container("prometheus")
    container.reload()
    ((host,),) = [container.ports["9090/tcp"]]
    assert host["HostIp"] == "127.0.0.1"
    prometheus = Prometheus(f"http://127.0.0.1:{host['HostPort']}", folder / "prometheus.log")
    prometheus.log.touch()

    def answers() -> bool:
        try:
            return bool(prometheus.get("status/buildinfo"))
        except OSError:
            return False

    prometheus.until(answers, cluster.logs(), 60)
    return prometheus


def every_server_has_proved_who_it_is(prometheus: Prometheus) -> None:
    urls = {each["labels"]["instance"]: each["scrapeUrl"] for each in prometheus.get("targets")["activeTargets"]}
    for name, url in urls.items():
        scheme = "http" if name.startswith("devices-") else "https"
        assert url == f"{scheme}://{name}:9464/metrics"
    tiers = {each.labels["instance"]: each.labels["tier"] for each in prometheus.query("up")}
    assert tiers == {name: name.partition("-")[0].replace("devices", "device") for name in SERVICES}


def nobody_reaches_prometheus_from_where_it_reads(cluster: Project) -> None:
    container = cluster.container("prometheus")
    container.reload()
    networks = container.attrs["NetworkSettings"]["Networks"]
    own = {name: networks[cluster.network(name)]["IPAddress"] for name in ("field", "backbone", "observe")}
    for service in ("devices-ash", "edge-ash", "cloud"):
        for host in ("prometheus", "prometheus.observe", *own.values()):
            assert not reaches(cluster.container(service), f"http://{host}:9090/api/v1/query?query=up"), (service, host)
    status, _ = said(cluster.container("devices-ash"), READ, "http://cloud:9464/metrics", "-")
    assert status == 0  # nor does a device reach the cloud by it


def reaches(container: Container, url: str) -> bool:
    """Again and again. The engine takes its rules off for a moment whenever it makes a network, and others make some
    now: who is let through then is not let through the next time.
    """
    return all(said(container, READ, url, "-")[0] != 0 for _ in range(5))


def a_device_reads_no_metrics_of_servers(cluster: Project) -> None:
    host = cluster.container("devices-ash")
    status, why = said(host, READ, "https://edge-ash:9464/metrics", "/keys/device-d0")
    assert (status, why) == (403, "device d0 may not read metrics: monitor or operator may\n")
    status, _ = said(host, READ, "http://edge-ash:9464/metrics", "-")  # plain text
    assert status == 0
    status, text = said(host, READ, "http://devices-birch:9464/metrics", "-")  # as docs/metrics.md says
    assert status == 200
    assert text.startswith("# HELP")


def grafana_has_its_files_and_reaches_prometheus(cluster: Project) -> None:
    container = cluster.container("grafana")
    source = yaml.safe_load((FOLDER / "grafana" / "provisioning" / "datasources" / "prometheus.yml").read_text("utf-8"))
    (where,) = (each["url"] for each in source["datasources"])
    status, text = said(container, READ, f"{where}/api/v1/query?query=up", "-")
    assert status == 200
    assert text.startswith('{"status":"success"')
    files = said(container, LISTED)
    for folder, inside in (("provisioning", "/etc/grafana/provisioning"), ("dashboards", "/etc/sgfusion/dashboards")):
        for path in (FOLDER / "grafana" / folder).rglob("*"):
            if path.is_file():
                name = f"{inside}/{path.relative_to(FOLDER / 'grafana' / folder)}"
                assert files[name] == hashlib.sha256(path.read_bytes()).hexdigest()
