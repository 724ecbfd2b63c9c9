"""What kubernetes needs of a run: an overlay with a kustomization for each zone, and a Secret for each identity.

    manifests.py overlay RUN.toml DIR                        DIR is a folder in deploy/kubernetes/overlays
    manifests.py certs RUN.toml                              the `sgfusion certs` command that makes the run's keys
    manifests.py secrets RUN.toml CERTS --namespace NAME     for `kubectl apply --server-side -f -`
    manifests.py prometheus RUN.toml --namespace NAME        what Prometheus reads, with the monitor's keys

For Python with SGFusion and what its devices need, as in .venv: data says how many devices a zone has.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import shlex
import shutil
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from console.certs import host_folder
from console.targets import JOB
from sgfusion.errors import InputError, SGFusionError
from sgfusion.runfile import RunFile, load_run_file
from sgfusion.runfile_document import PATHS
from sgfusion.wire.endpoint import PORT as METRICS_PORT
from sgfusion.wire.identity import Identity, folder_of
from simulator.resolve import devices_of, places_of, resolved

BASE = Path(__file__).parent / "base"
PORT = 7070
LONGEST = 44
"""Characters of a zone in a name: a StatefulSet's may have 52 before its pods' labels get too long, `devices-` is 8."""
MOST_BYTES = 1 << 20
"""Of a Secret, by Kubernetes' own limit."""
ARCHIVE = "keys.tar.gz"
_KEYS = ("ca.crt", "tls.crt", "tls.key")
_NEEDS_NEIGHBOURS = frozenset({"chi", "neighbours"})


def name_of(zone: str) -> str:
    """The zone in names and labels: itself if it is a short DNS label, else what its certificate has, or the like."""
    label = Identity("edge", zone).server_name.partition(".")[0]
    return label if len(label) <= LONGEST else "x-" + hashlib.sha256(zone.encode()).hexdigest()[:20]


def write_overlay(run_file: Path, folder: Path) -> None:
    """Write the overlay of a run; zones that it no longer has go."""
    given = load_run_file(run_file, ())
    devices = devices_of(given)
    to_base = Path(os.path.relpath(BASE, folder.resolve())).as_posix()
    shutil.rmtree(folder / "zones", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if run_file.resolve() != (folder / "run.toml").resolve() or not _says_enough(given):
        (folder / "run.toml").write_text(_run_text(given, run_file), "utf-8")
    resources = [f"{to_base}/run", *(f"zones/{name_of(zone)}" for zone in devices)]
    (folder / "kustomization.yaml").write_text(_top(given, folder.resolve().name, resources, len(devices)), "utf-8")
    for zone, ids in devices.items():
        place = folder / "zones" / name_of(zone)
        place.mkdir(parents=True)
        (place / "kustomization.yaml").write_text(_zone(zone, len(ids), f"../../{to_base}/zone"), "utf-8")


def _says_enough(run: RunFile) -> bool:
    """Whether pods can read the run file as it is: a cloud has no data to learn the zones or their places from."""
    near = run.sampler.kind not in _NEEDS_NEIGHBOURS or run.zones.adjacent is not None
    return bool(run.zones.names) and near and (run.zones.places is not None or not places_of(run))


def _run_text(run: RunFile, path: Path) -> str:
    document = run.model_dump(by_alias=True)
    named = [f"{section}.{key}" for section, key in PATHS if document[section].get(key)]
    if named:
        raise InputError(f"{path}: {', '.join(named)} names a file, which pods do not have: mount it with a patch")
    return path.read_text("utf-8") if _says_enough(run) else resolved(run).to_toml()


def _top(run: RunFile, folder: str, resources: Sequence[str], zones: int) -> str:
    listed = "".join(f"  - {resource}\n" for resource in resources)
    tag = json.dumps(version("sgfusion"))
    images = "".join(f"  - {{name: sgfusion/{tier}, newTag: {tag}}}\n" for tier in ("cloud", "edge", "device"))
    return (
        f"# The run {run.name!r}, {zones} zones. By deploy/kubernetes/manifests.py, as for any run file.\n"
        "apiVersion: kustomize.config.k8s.io/v1beta1\n"
        "kind: Kustomization\n"
        f"namespace: sgfusion-{folder}\n"
        f"resources:\n{listed}"
        "configMapGenerator:\n"
        "  - {name: run, files: [run.toml]}\n"
        "generatorOptions: {disableNameSuffixHash: true} # a run's settings stay: pods need not restart for others\n"
        "images: # add `newName: …`, where your registry has them; not `latest`, which may be another at every start\n"
        f"{images}"
    )


def _zone(zone: str, devices: int, base: str) -> str:
    name = name_of(zone)
    literals = [f"ZONE={zone}", f"EDGE=edge-{name}:{PORT}", f"DEVICES={devices}"]
    return (
        "apiVersion: kustomize.config.k8s.io/v1beta1\n"
        "kind: Kustomization\n"
        f"resources: [{base}]\n"
        f"nameSuffix: -{name}\n"
        "labels:\n"
        f"  - {{pairs: {{sgfusion/zone: {json.dumps(name)}}}, includeSelectors: true}}\n"
        "configMapGenerator:\n"
        f"  - {{name: zone, literals: {json.dumps(literals, ensure_ascii=False)}}}\n"
        "generatorOptions: {disableNameSuffixHash: true}\n"
    )


def certs_command(run_file: Path, run: RunFile) -> str:
    """The `sgfusion certs` that makes what `secrets` takes: the keys of a zone's devices in a folder of their own."""
    hosts = (f"--host {shlex.quote(zone)}" for zone in devices_of(run))
    return " ".join(["sgfusion certs", shlex.quote(str(run_file)), *hosts])


def secrets(run: RunFile, certs: Path, namespace: str) -> dict[str, Any]:
    """A Secret for each identity that a pod has, with the name of the workload that mounts it."""
    return {"apiVersion": "v1", "kind": "List", "items": list(_secrets(devices_of(run), certs, namespace))}


def _secrets(devices: Mapping[str, Sequence[str]], certs: Path, namespace: str) -> Iterator[dict[str, Any]]:
    for identity, name in (
        (Identity("cloud"), "cloud"),
        (Identity("operator"), "operator"),
        *((Identity("edge", zone), f"edge-{name_of(zone)}") for zone in devices),
    ):
        place = folder_of(certs, identity)
        yield _secret(name, namespace, {file: _read(place / file) for file in _KEYS})
    for zone, ids in devices.items():
        folders = [folder_of(certs / host_folder([zone]), Identity("device", device)) for device in ids]
        yield _secret(f"devices-{name_of(zone)}", namespace, {ARCHIVE: _archive(folders)})


def _secret(name: str, namespace: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    if (size := sum(map(len, data.values()))) > MOST_BYTES:
        raise InputError(f"Secret {name} would have {size} bytes, Kubernetes takes {MOST_BYTES}: use smaller zones")
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    labels = {"app.kubernetes.io/part-of": "sgfusion"}
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": encoded}


def _archive(folders: Sequence[Path]) -> bytes:
    """The folders, packed; the same bytes each time, so that applying them again changes nothing."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in folders:
            for file in _KEYS:
                content = _read(folder / file)
                entry = tarfile.TarInfo(f"{folder.name}/{file}")
                entry.size, entry.mode = len(content), 0o600  # an init container may run again, over what it wrote
                archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def scrape_configs(run: RunFile, namespace: str) -> str:
    """What Prometheus reads: servers by their Services, a job for each, as each has a name of its own to prove; device
    hosts, which have no Service and prove nothing, by asking Kubernetes for their pods.
    """
    servers = [("cloud", "cloud", Identity("cloud"))]
    servers += [(f"edge-{name_of(zone)}", "edge", Identity("edge", zone)) for zone in devices_of(run)]
    jobs = [_server_job(*server, run.name, namespace) for server in servers]
    listed = "".join(
        f"  - {json.dumps(job, ensure_ascii=False)}\n" for job in [*jobs, _devices_job(run.name, namespace)]
    )
    return f"scrape_configs: # of the run {run.name!r}, by deploy/kubernetes/manifests.py\n{listed}"


def _server_job(service: str, tier: str, who: Identity, run: str, namespace: str) -> dict[str, Any]:
    mounted = f"/keys/{namespace}"  # by docs/kubernetes.md; another run has keys of another CA
    keys = {f"{what}_file": f"{mounted}/{file}" for what, file in zip(("ca", "cert", "key"), _KEYS, strict=True)}
    labels = {"job": JOB, "tier": tier, "run": run, "namespace": namespace, "instance": service}
    return {
        "job_name": f"{namespace}/{service}",
        "scheme": "https",
        "tls_config": {**keys, "server_name": who.server_name},
        "static_configs": [{"targets": [f"{service}.{namespace}.svc:{METRICS_PORT}"], "labels": labels}],
    }


def _devices_job(run: str, namespace: str) -> dict[str, Any]:
    labels = {"job": JOB, "tier": "device", "run": run, "namespace": namespace}
    pods = {"role": "pod", "label": "app.kubernetes.io/component=device"}
    return {
        "job_name": f"{namespace}/devices",
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [namespace]}, "selectors": [pods]}],
        "relabel_configs": [
            {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": "metrics", "action": "keep"},
            {
                "source_labels": ["__meta_kubernetes_pod_label_sgfusion_zone"],
                "target_label": "instance",
                "replacement": "devices-$1",
            },
            *({"target_label": label, "replacement": value} for label, value in labels.items()),
        ],
    }


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): `manifests.py certs` says the command that makes it"
        ) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, second, what in (
        ("overlay", "dir", "write the overlay of a run file into DIR"),
        ("certs", None, "print the `sgfusion certs` command that makes the run's keys"),
        ("secrets", "certs", "print a Secret for each identity, from the keys in CERTS"),
        ("prometheus", None, "print what Prometheus reads of the run"),
    ):
        command = commands.add_parser(name, help=what, description=what)
        command.add_argument("run", type=Path, metavar="RUN.toml")
        if second is not None:
            command.add_argument(second, type=Path, metavar=second.upper())
        if name in ("secrets", "prometheus"):
            command.add_argument("--namespace", required=True, help="the overlay's, as in its kustomization.yaml")
    given = parser.parse_args(arguments)
    try:
        if given.command == "overlay":
            write_overlay(given.run, given.dir)
            return
        run = load_run_file(given.run, ())
        if given.command == "certs":
            said = certs_command(given.run, run)
        elif given.command == "prometheus":
            said = scrape_configs(run, given.namespace).rstrip()
        else:
            said = json.dumps(secrets(run, given.certs, given.namespace), indent=1)
        sys.stdout.write(said + "\n")
    except SGFusionError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
