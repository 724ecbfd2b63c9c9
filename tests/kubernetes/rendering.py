"""The manifests as a cluster would get them: rendered by kustomize, and held against Kubernetes' published schemas."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
OVERLAYS = {"four-zones": ROOT / "experiments" / "containers.toml", "us": FOLDER / "overlays" / "us" / "run.toml"}
"""Each with the run file that it is made from."""
REQUIRED = "SGFUSION_REQUIRE_KUBECTL"
"""Set to 1, a test that cannot render fails instead of being skipped."""
OLDEST, NEWEST = "1.29", "1.37"
"""The releases of Kubernetes that manifests are for: of all that the validator brings, some that are in use."""
KUSTOMIZE = 5
"""The first major version that knows all that we write."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C: ten times as fast

Object = Mapping[str, Any]

# The validator reads a megabyte of schemas again for each object.
kubernetes_validate.utils.schema_contents = lru_cache(kubernetes_validate.utils.schema_contents)


def objects(text: str) -> list[Object]:
    """The objects of a YAML stream."""
    return [each for each in yaml.load_all(text, LOADER) if each]


def check(each: Object, version: str) -> None:
    """Raises `kubernetes_validate.ValidationError` unless the schema knows every field of the object."""
    kubernetes_validate.validate(each, version, strict=True)


@lru_cache
def render(folder: Path) -> tuple[Object, ...]:
    """What `kubectl apply -k` would send. Without a tool that renders the test is skipped, and says so."""
    command = _tool()
    if command is None:
        said = f"neither kustomize nor a kubectl with kustomize {KUSTOMIZE} is on PATH: manifests are not rendered"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(said)
        pytest.skip(f"{said}; {REQUIRED}=1 makes this a failure")
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr  # of a field that is on its way out
    return tuple(objects(done.stdout))


@lru_cache
def _tool() -> tuple[str, ...] | None:
    """The command that renders. Debian 12's own kubectl is of 2021, and cannot."""
    if shutil.which("kustomize"):
        said = subprocess.run(["kustomize", "version"], capture_output=True, text=True, check=False)  # noqa: S607
        if _major(said.stdout) >= KUSTOMIZE:
            return ("kustomize", "build")
    if shutil.which("kubectl"):
        asked = ["kubectl", "version", "--client", "--output", "json"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        if said.returncode == 0 and _major(json.loads(said.stdout).get("kustomizeVersion", "")) >= KUSTOMIZE:
            return ("kubectl", "kustomize")
    return None


def _major(version: str) -> int:
    first = version.strip().removeprefix("v").partition(".")[0]
    return int(first) if first.isdigit() else 0


def of_kind(rendered: Iterable[Object], kind: str) -> list[Object]:
    """Those of a kind."""
    return [each for each in rendered if each["kind"] == kind]


def name(each: Object) -> str:
    """An object's name."""
    found: str = each["metadata"]["name"]
    return found


def pod(workload: Object) -> Object:
    """The spec of its pods."""
    found: Object = workload["spec"]["template"]["spec"]
    return found


def labels(workload: Object) -> dict[str, str]:
    """Those of its pods."""
    return dict(workload["spec"]["template"]["metadata"]["labels"])


def containers(workload: Object) -> list[Object]:
    """All that run in its pods, those at the start too."""
    return [*pod(workload).get("initContainers", ()), *pod(workload)["containers"]]


def matches(selector: Object, of: Mapping[str, str]) -> bool:
    """Whether a label selector selects such a pod."""
    assert set(selector) <= {"matchLabels", "matchExpressions"}
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "In"
        if of.get(expression["key"]) not in expression["values"]:
            return False
    return all(of.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def manifests() -> Any:
    """The module deploy/kubernetes/manifests.py, which is in no package."""
    spec = spec_from_file_location("manifests", FOLDER / "manifests.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
