"""The profile `observe` of a compose file: Prometheus, which reads the metrics of all, and Grafana, which shows them.

Prometheus is on the networks of those it reads, and of them it dials all and is dialled by none: it listens on the
network `observe` alone, where nobody is but Grafana, and its port is published on this machine's loopback device. It
has the keys of a monitor, who may read metrics and call nothing.

An engine publishes a port on one of a container's networks that lead out, the first by name. So `observe` is the only
one of Prometheus': where `backbone` leads out too, it meets the cloud on an internal network of their own, `monitor`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from console.targets import JOB
from console.yaml_text import listed, quoted
from sgfusion.wire.endpoint import PORT
from sgfusion.wire.identity import Identity

FOLDER = Path("deploy") / "observability"
"""In a working tree: rules and dashboards."""
PROMETHEUS_YML = "prometheus.yml"
USER = "65534:65534"
"""Whom Prometheus runs as: the user of its own image, whose the volume of its data is."""
SHOWN = ["--metrics", f"0.0.0.0:{PORT}"]
"""Of a service that has a certificate of a server."""
SHOWN_PLAIN = [*SHOWN, "--metrics-plain"]
"""Of devices, which have none: on the network `field` alone."""
_WEB = "prometheus.observe"


@dataclass(frozen=True)
class Observed:
    """What Prometheus reads: containers by their names."""

    run: str
    shown: str
    """The run file, for people."""
    edges: Sequence[tuple[str, str]]
    """Service and zone."""
    hosts: Sequence[str]


class Profile:
    """The parts of a compose file that make the profile. All are empty where there are no rules and dashboards, which
    are in a working tree, `root`, and no part of what is installed. `shown` turns a path into one from the file.
    """

    def __init__(
        self, root: Path, folder: Path, observed: Observed, shown: Callable[[Path], str], *, published: bool
    ) -> None:
        self.services = self.settings = self.network = self.chown = ""
        self.of_cloud: list[str] = []
        """Networks that the cloud is on for Prometheus alone."""
        self.states: list[str] = []
        self.keys: dict[str, str] = {}
        self.prometheus: tuple[Path, str] | None = None
        """Prometheus' own file, and where that goes: beside the compose file; the root's is with the rules."""
        if not (root / FOLDER / "rules.yml").exists():
            return
        path = folder / (FOLDER if folder.absolute() == root else "") / PROMETHEUS_YML
        self.prometheus = path, prometheus_yml(observed)
        self.services = _services(shown(root / FOLDER), shown(path), "monitor" if published else "backbone")
        self.settings = _SETTINGS
        self.network = _NETWORK + (_MEETING if published else "")
        self.of_cloud = ["monitor"] if published else []
        self.chown = f"\n        chown -R {USER} /keys/monitor"
        self.states = ["prometheus", "grafana"]
        self.keys = {"monitor": "monitor"}


def prometheus_yml(observed: Observed) -> str:
    """Prometheus' own file. A job for each server that proves who it is: each has a name of its own to prove."""
    servers = [("cloud", "cloud", Identity("cloud"))]
    servers += [(service, "edge", Identity("edge", zone)) for service, zone in observed.edges]
    jobs = "".join(_secure_job(service, tier, who, observed.run) for service, tier, who in servers)
    targets = "".join(f"          - {quoted(f'{host}:{PORT}')}\n" for host in observed.hosts)
    return f"""\
# What Prometheus reads in the cluster of {observed.shown}, by `sgfusion compose`, which makes it with the compose file.
# Keys are those of the monitor. Devices have no certificate of a server: theirs is plain text, on the network `field`.
global: {{scrape_interval: 15s, evaluation_interval: 15s}}
rule_files: [/etc/prometheus/rules.yml]

scrape_configs:
{jobs}\
  - job_name: devices
    relabel_configs: [{_NAME}]
    static_configs:
      - labels: {_labels("device", observed.run)}
        targets:
{targets}"""


_NAME = r'{source_labels: [__address__], regex: "(.+):\\d+", target_label: instance}'


def _secure_job(service: str, tier: str, who: Identity, run: str) -> str:
    keys = f"ca_file: /keys/ca.crt, cert_file: /keys/tls.crt, key_file: /keys/tls.key, server_name: {who.server_name}"
    return f"""\
  - job_name: {service}
    scheme: https
    tls_config: {{{keys}}}
    relabel_configs: [{_NAME}]
    static_configs: [{{targets: [{quoted(f"{service}:{PORT}")}], labels: {_labels(tier, run)}}}]

"""


def _labels(tier: str, run: str) -> str:
    return f"{{job: {JOB}, tier: {tier}, run: {quoted(run)}}}"


def _services(folder: str, prometheus: str, meeting: str) -> str:
    """Their blocks; `folder` has rules and dashboards, `prometheus` is Prometheus' own file, and on the network
    `meeting` it meets the cloud.
    """
    reads = [f"{prometheus}:/etc/prometheus/{PROMETHEUS_YML}:ro", f"{folder}/rules.yml:/etc/prometheus/rules.yml:ro"]
    reads += ["keys-monitor:/keys:ro", "prometheus:/prometheus"]
    shows = [f"{folder}/grafana/provisioning:/etc/grafana/provisioning:ro"]
    shows += [f"{folder}/grafana/dashboards:/etc/sgfusion/dashboards:ro", "grafana:/var/lib/grafana"]
    return f"""\
  # Metrics, alerts and a dashboard, for who asks: `docker-compose --profile observe up`. For this machine alone, at
  # http://127.0.0.1:9090 and http://127.0.0.1:3000. Prometheus reads all services and listens to none of them.
  prometheus:
    <<: *service
    profiles: [observe]
    image: ${{SGFUSION_PROMETHEUS_IMAGE:-prom/prometheus:v3.5.0}}
    user: "{USER}"
    command:
      - --config.file=/etc/prometheus/prometheus.yml
      - --storage.tsdb.path=/prometheus
      - --storage.tsdb.retention.time=15d
      - --web.listen-address={_WEB}:9090 # on the network observe, and on no other
    volumes:
{listed(reads)}
    networks:
      {meeting}: {{}}
      field: {{}}
      observe: {{aliases: [{_WEB}]}}
    ports: ["127.0.0.1:${{SGFUSION_PROMETHEUS_PORT:-9090}}:9090"]
    mem_limit: 1g
    cpus: 1.0
    depends_on:
      certs: {{condition: service_completed_successfully}}

  # Whoever reaches it may look and nobody may change anything: there is no login. It fetches nothing from elsewhere.
  grafana:
    <<: *service
    profiles: [observe]
    image: ${{SGFUSION_GRAFANA_IMAGE:-grafana/grafana:12.1.0}}
    user: "472:0" # that of its image
    environment:
      GF_AUTH_ANONYMOUS_ENABLED: "true"
      GF_AUTH_ANONYMOUS_ORG_ROLE: Viewer
      GF_AUTH_DISABLE_LOGIN_FORM: "true"
      GF_AUTH_BASIC_ENABLED: "false"
      GF_ANALYTICS_ENABLED: "false"
      GF_ANALYTICS_REPORTING_ENABLED: "false"
      GF_ANALYTICS_CHECK_FOR_UPDATES: "false"
      GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES: "false"
      GF_NEWS_NEWS_FEED_ENABLED: "false"
      GF_PLUGINS_PREINSTALL_DISABLED: "true"
      GF_SECURITY_DISABLE_GRAVATAR: "true"
      GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH: /etc/sgfusion/dashboards/sgfusion.json
    volumes:
{listed(shows)}
    networks: [observe]
    ports: ["127.0.0.1:${{SGFUSION_GRAFANA_PORT:-3000}}:3000"]
    mem_limit: 512m
    cpus: 1.0
    depends_on:
      prometheus: {{condition: service_started}}

"""


_NETWORK = """\
  observe: # Prometheus and Grafana alone, likewise
    driver_opts: {com.docker.network.bridge.enable_ip_masquerade: "false"}
"""
_MEETING = """\
  monitor: {internal: true} # Prometheus and the cloud
"""
_SETTINGS = """\
#   SGFUSION_PROMETHEUS_IMAGE, _PORT, SGFUSION_GRAFANA_IMAGE, _PORT    of `docker-compose --profile observe up`
"""
