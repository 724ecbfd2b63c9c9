"""The rendered objects fit each other, the protocol and the command line: what no schema can say."""

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer.main

from console.main import app
from sgfusion.runfile import parse_run_file
from tests.kubernetes.rendering import (
    FOLDER,
    OVERLAYS,
    ROOT,
    Object,
    containers,
    labels,
    matches,
    name,
    of_kind,
    pod,
    render,
)

COMPONENT = "app.kubernetes.io/component"
ZONE = "sgfusion/zone"
USER = 10001
PORT = 7070
METRICS = 9464
MONITOR = {"sgfusion/monitor": "true"}
SERVE = ("cloud", "edge")


@pytest.fixture(params=OVERLAYS)
def rendered(request: pytest.FixtureRequest) -> tuple[Object, ...]:
    return render(FOLDER / "overlays" / request.param)


@pytest.fixture
def workloads(rendered: tuple[Object, ...]) -> list[Object]:
    assert not [each for each in rendered if each["kind"] in ("Deployment", "DaemonSet", "Pod", "Job", "CronJob")]
    return of_kind(rendered, "StatefulSet")


def component(workload: Object) -> str:
    return labels(workload)[COMPONENT]


def listens(workload: Object, option: str = "--listen") -> int | None:
    """The port that its command is told to serve at, if it serves."""
    (main,) = pod(workload)["containers"]
    told = dict(zip(main.get("args", ()), main.get("args", ())[1:], strict=False)).get(option)
    return None if told is None else int(told.rpartition(":")[2])


def config(rendered: tuple[Object, ...], of: str) -> dict[str, str]:
    (found,) = (each for each in of_kind(rendered, "ConfigMap") if name(each) == of)
    return dict(found["data"])


def test_there_is_one_cloud_and_an_edge_and_a_device_host_for_each_zone_of_the_run(
    rendered: tuple[Object, ...], workloads: list[Object]
) -> None:
    zones = parse_run_file(config(rendered, "run")["run.toml"]).zones.names
    counts = {part: sum(component(each) == part for each in workloads) for part in map(component, workloads)}
    assert counts == {"cloud": 1, "operator": 1, "edge": len(zones), "device": len(zones)}
    assert sorted(
        config(rendered, f"zone-{labels(each)[ZONE]}")["ZONE"] for each in workloads if ZONE in labels(each)
    ) == (sorted(2 * zones))


def test_a_selector_selects_the_pods_of_exactly_one_workload(
    rendered: tuple[Object, ...], workloads: list[Object]
) -> None:
    services = of_kind(rendered, "Service")
    for selector in [
        *({"matchLabels": service["spec"]["selector"]} for service in services),
        *(workload["spec"]["selector"] for workload in workloads),
    ]:
        assert len([each for each in workloads if matches(selector, labels(each))]) == 1, selector
    serving = {name(each) for each in workloads if component(each) in SERVE}
    assert {name(service) for service in services} == serving
    for workload in workloads:
        assert workload["spec"]["replicas"] == 1
        assert workload["spec"]["serviceName"] == name(workload) or component(workload) not in SERVE


def test_ports_are_named_where_they_are_used(rendered: tuple[Object, ...], workloads: list[Object]) -> None:
    for workload in workloads:
        (main,) = pod(workload)["containers"]
        named = {port["name"]: port["containerPort"] for port in main.get("ports", ())}
        metrics = {} if component(workload) == "operator" else {"metrics": METRICS}
        assert named == ({"grpc": PORT} if component(workload) in SERVE else {}) | metrics
        assert list(named.values()) == [port for port in (listens(workload), listens(workload, "--metrics")) if port]
        probes = [main[probe] for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in main]
        assert len(probes) == (3 if component(workload) in SERVE else 0)
        assert all(probe["tcpSocket"]["port"] == "grpc" for probe in probes)
    for service in of_kind(rendered, "Service"):
        ports = [(port["name"], port["port"], port["targetPort"]) for port in service["spec"]["ports"]]
        assert ports == [("grpc", PORT, "grpc"), ("metrics", METRICS, "metrics")]


def test_a_pod_has_its_own_secret_and_no_other(workloads: list[Object]) -> None:
    for workload in workloads:
        secrets = [volume["secret"] for volume in pod(workload)["volumes"] if "secret" in volume]
        assert secrets == [{"secretName": name(workload), "defaultMode": 0o440}]  # root's, and read through fsGroup
        assert not [volume for volume in pod(workload)["volumes"] if "projected" in volume or "hostPath" in volume]
        for container in containers(workload):
            referred = [each for each in container.get("env", ()) if "valueFrom" in each]
            assert not referred
            assert not [each for each in container.get("envFrom", ()) if "secretRef" in each]


def test_state_is_on_a_volume_of_its_own_that_outlives_the_pod(workloads: list[Object]) -> None:
    for workload in workloads:
        (claim,) = workload["spec"]["volumeClaimTemplates"]
        (main,) = pod(workload)["containers"]
        mounted = {mount["name"]: mount["mountPath"] for mount in main["volumeMounts"]}
        assert mounted[claim["metadata"]["name"]] == "/state"
        assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
        kept = workload["spec"].get("persistentVolumeClaimRetentionPolicy", {})
        assert set(kept.values()) <= {"Retain"}
        volumes = {volume["name"] for volume in pod(workload)["volumes"]} | {claim["metadata"]["name"]}
        assert {mount["name"] for each in containers(workload) for mount in each["volumeMounts"]} == volumes


def test_a_container_that_runs_on_can_write_where_it_has_to_and_nowhere_else(workloads: list[Object]) -> None:
    for workload in workloads:
        (main,) = pod(workload)["containers"]
        writable = {mount["name"]: mount["mountPath"] for mount in main["volumeMounts"] if not mount.get("readOnly")}
        assert writable == {"state": "/state", "tmp": "/tmp"}  # noqa: S108 (the pod's own)


def test_the_cloud_keeps_its_machine_code_in_its_volume(workloads: list[Object]) -> None:
    """A volume of Kubernetes starts empty and hides what the image has there: it is compiled once, and then kept."""
    said = re.search(r"NUMBA_CACHE_DIR=(\S+)", (ROOT / "deploy" / "Dockerfile").read_text("utf-8"))
    assert said is not None
    assert Path("/state") in Path(said[1]).parents
    (cloud,) = (each for each in workloads if component(each) == "cloud")
    (main,) = pod(cloud)["containers"]
    assert "env" not in main  # that of the image holds
    probe = main["startupProbe"]  # compiling took 7 s of CPU, of which it has a quarter on a full node
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120


def test_images_are_of_a_version_and_pulled_as_kubernetes_thinks_right(workloads: list[Object]) -> None:
    """By its default a node pulls a version once, and `latest` at every start. Any other is wrong for one of them."""
    for workload in workloads:
        for container in containers(workload):
            assert container["image"].rpartition(":")[2] == version("sgfusion")
            assert "imagePullPolicy" not in container


def test_a_pod_that_cannot_start_is_replaced_once_its_image_or_settings_are_mended(workloads: list[Object]) -> None:
    """By default a StatefulSet waits for it to get ready first, for ever (Kubernetes' "forced rollback")."""
    assert {workload["spec"].get("podManagementPolicy") for workload in workloads} == {"Parallel"}


def test_containers_may_do_nothing_that_they_need_not(rendered: tuple[Object, ...], workloads: list[Object]) -> None:
    (namespace,) = of_kind(rendered, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for workload in workloads:
        spec = pod(workload)
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True
        assert {context[key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {USER}
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(workload):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            assert "memory" in container["resources"]["limits"]


def test_budgets_are_of_edges_and_of_device_hosts_and_never_hold_up_a_node(
    rendered: tuple[Object, ...], workloads: list[Object]
) -> None:
    budgets = of_kind(rendered, "PodDisruptionBudget")
    for budget in budgets:
        assert [each for each in workloads if matches(budget["spec"]["selector"], labels(each))]
        assert budget["spec"]["maxUnavailable"] == "10%"  # rounded up: one at least
        # One pod that cannot start is that one, and would then hold up every node.
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    for workload in workloads:
        of = [name(each) for each in budgets if matches(each["spec"]["selector"], labels(workload))]
        assert of == {"edge": ["edges"], "device": ["devices"]}.get(component(workload), [])


def allows(policies: list[Object], way: str, of: Object, other: Object) -> bool:
    """Whether pods may call (way "Egress") or be called by (way "Ingress") those of another workload."""
    selecting = [
        each["spec"]
        for each in policies
        if matches(each["spec"]["podSelector"], labels(of)) and way in each["spec"]["policyTypes"]
    ]
    assert selecting, "no policy is none that denies"
    key, side = way.lower(), "to" if way == "Egress" else "from"
    for spec in selecting:
        for rule in spec.get(key, ()):
            assert rule[side]
            assert rule["ports"]
            for peer in rule[side]:
                if "namespaceSelector" not in peer and matches(peer["podSelector"], labels(other)):
                    called = other if way == "Egress" else of
                    assert rule["ports"] == [{"protocol": "TCP", "port": listens(called)}]  # no name: see policies.yaml
                    return True
    return False


def test_who_reaches_whom_is_what_the_protocol_draws(rendered: tuple[Object, ...], workloads: list[Object]) -> None:
    policies = of_kind(rendered, "NetworkPolicy")
    drawn = {("edge", "cloud"), ("edge", "edge"), ("operator", "cloud"), ("operator", "edge"), ("device", "edge")}
    for caller in workloads:
        for called in workloads:
            reaches = allows(policies, "Egress", caller, called) and allows(policies, "Ingress", called, caller)
            pair = (component(caller), component(called))
            own = pair != ("device", "edge") or labels(caller)[ZONE] == labels(called)[ZONE]
            assert reaches == (pair in drawn and own), f"{name(caller)} to {name(called)}"


def test_metrics_are_for_pods_with_the_monitors_label_and_these_get_no_further(
    rendered: tuple[Object, ...], workloads: list[Object]
) -> None:
    policies = of_kind(rendered, "NetworkPolicy")
    for workload in workloads:
        opened = [
            (peer, port["port"])
            for policy in policies
            if matches(policy["spec"]["podSelector"], labels(workload))
            for rule in policy["spec"].get("ingress", ())
            for peer in rule["from"]
            for port in rule["ports"]
            if port["port"] == METRICS or "namespaceSelector" in peer or matches(peer["podSelector"], MONITOR)
        ]
        shown = listens(workload, "--metrics")
        monitor = {"namespaceSelector": {}, "podSelector": {"matchLabels": MONITOR}}
        assert opened == ([] if shown is None else [(monitor, shown)]), name(workload)


def test_nobody_may_dial_out_but_to_ask_for_names(rendered: tuple[Object, ...]) -> None:
    outside = [
        (name(policy), peer["namespaceSelector"], peer["podSelector"], [port["port"] for port in rule["ports"]])
        for policy in of_kind(rendered, "NetworkPolicy")
        for rule in policy["spec"].get("egress", ())
        for peer in rule["to"]
        if "podSelector" not in peer or "namespaceSelector" in peer
    ]
    system = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
    assert outside == [("names", system, {"matchLabels": {"k8s-app": "kube-dns"}}, [53, 53])]
    (denied,) = (each for each in of_kind(rendered, "NetworkPolicy") if each["spec"]["podSelector"] == {})
    assert denied["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def arguments(container: Object, rendered: tuple[Object, ...]) -> list[str]:
    """As the kubelet passes them: $(NAME) replaced by what the ConfigMaps say."""
    known: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        known |= config(rendered, source["configMapRef"]["name"])
    return [re.sub(r"\$\((\w+)\)", lambda found: known[found[1]], argument) for argument in container.get("args", ())]


def parsed(command: str, rest: list[str]) -> dict[str, Any]:
    """The command line by the real command's own parser, without running it."""
    return dict(typer.main.get_group(app).commands[command].make_context(command, rest).params)


def commands(rendered: tuple[Object, ...], part: str) -> Iterator[tuple[Object, dict[str, Any]]]:
    for workload in of_kind(rendered, "StatefulSet"):
        if component(workload) == part:
            (main,) = pod(workload)["containers"]
            command, *rest = arguments(main, rendered)
            assert command == part
            assert "command" not in main  # the image's entry point is `sgfusion`
            assert main["image"].startswith(f"sgfusion/{part}:")
            yield workload, parsed(command, rest)


def test_commands_are_those_of_the_real_command_line(rendered: tuple[Object, ...]) -> None:
    run = parse_run_file(config(rendered, "run")["run.toml"])
    ((cloud, said),) = commands(rendered, "cloud")
    assert (name(cloud), said["run_file"], said["listen"]) == ("cloud", Path("/etc/sgfusion/run.toml"), "0.0.0.0:7070")
    edges = list(commands(rendered, "edge"))
    assert sorted(said["zone"] for _, said in edges) == sorted(run.zones.names)
    for edge, said in edges:
        assert said["cloud"] == f"cloud:{PORT}"
        assert said["advertise"] == f"{name(edge)}:{PORT}"  # the name of its Service
        assert said["listen"] == f"0.0.0.0:{PORT}"
    for host, said in commands(rendered, "device"):
        (zone,) = said["zones"]
        (edge,) = (edge for edge, told in edges if told["zone"] == zone)
        assert labels(edge)[ZONE] == labels(host)[ZONE]
        assert said["edges"] == [f"{zone}={name(edge)}:{PORT}"]
        assert said["run_file"] == Path("/etc/sgfusion/run.toml")
    for part in ("cloud", "edge", "device"):
        for _, said in commands(rendered, part):
            assert (said["state"], said["certs"], said["insecure"]) == (Path("/state"), Path("/keys"), False)
            assert (said["metrics"], said["metrics_plain"]) == (f"0.0.0.0:{METRICS}", part == "device")


def test_the_operators_settings_are_known_to_the_commands(rendered: tuple[Object, ...]) -> None:
    (operator,) = (each for each in of_kind(rendered, "StatefulSet") if component(each) == "operator")
    (main,) = pod(operator)["containers"]
    known = {
        str(parameter.envvar)
        for name in ("status", "follow")
        for parameter in typer.main.get_group(app).commands[name].params
    }
    assert {variable["name"] for variable in main["env"]} <= known


def test_a_policy_too_many_and_an_option_that_is_none_are_found() -> None:
    """The checks above see what they are for."""
    rendered = render(FOLDER / "overlays" / "four-zones")
    sets = {name(each): each for each in of_kind(rendered, "StatefulSet")}
    spec = {
        "podSelector": {"matchLabels": {COMPONENT: "device"}},
        "policyTypes": ["Egress"],
        "egress": [{"to": [{"podSelector": {}}], "ports": [{"protocol": "TCP", "port": PORT}]}],
    }
    policies = of_kind(rendered, "NetworkPolicy")
    assert not allows(policies, "Egress", sets["devices-lubelskie"], sets["cloud"])
    assert allows([*policies, {"spec": spec}], "Egress", sets["devices-lubelskie"], sets["cloud"])
    with pytest.raises(Exception, match="--adverties"):
        parsed("edge", ["--zone", "ash", "--adverties", "edge-ash:7070"])
