"""The images: small, alike below our own code, harmless, and exactly what the lock of versions says."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from tests.containers.engine import REPOSITORY, TARGETS, build
from tests.containers.project import tag_of
from tests.containers.tree import copy_tree

LIMITS = {"edge": 260, "cloud": 560, "device": 1300}
"""Megabytes."""
OWN = 2
"""Layers of our own code in an edge's image, the last ones: the kernel and the tiers."""


def run(engine: docker.DockerClient, image: str, *command: str, **settings: Any) -> str:
    """What the command prints in a container as strict as the compose file's: no network, nothing writable but /tmp."""
    container = engine.containers.run(
        image,
        list(command[1:]),
        entrypoint=[command[0]],
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        tmpfs={"/tmp": ""},  # noqa: S108 (the container's)
        detach=True,  # else the SDK streams the log and leaves its socket open
        **settings,
    )
    try:
        code = container.wait()["StatusCode"]
        assert code == 0, container.logs().decode()
        printed: bytes = container.logs(stderr=False)
        return printed.decode()
    finally:
        container.remove(force=True)


def layers(engine: docker.DockerClient, image: str) -> list[str]:
    found: list[str] = engine.images.get(image).attrs["RootFS"]["Layers"]
    return found


def test_sizes(engine: docker.DockerClient, images: dict[str, str]) -> None:
    sizes = {target: engine.images.get(image).attrs["Size"] / 1e6 for target, image in images.items()}
    print(sizes)
    assert {target: size for target, size in sizes.items() if size > LIMITS[target]} == {}


def test_layers_below_our_own_code_are_shared(engine: docker.DockerClient, images: dict[str, str]) -> None:
    below = layers(engine, images["edge"])[:-OWN]
    assert len(below) >= 3  # the base, the user, the packages of every tier
    for target in ("cloud", "device"):
        assert layers(engine, images[target])[: len(below)] == below


@pytest.mark.parametrize("target", TARGETS)
def test_settings(target: str, engine: docker.DockerClient, images: dict[str, str]) -> None:
    config = engine.images.get(images[target]).attrs["Config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["sgfusion"]
    assert config["WorkingDir"] == "/state"
    assert config["StopSignal"] == "SIGTERM"
    serves = target != "device"
    assert set(config.get("ExposedPorts") or {}) == ({"7070/tcp"} if serves else set())
    assert config["Healthcheck"]["Test"][0] == ("CMD" if serves else "NONE")
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["Labels"].items()}
    assert labels["title"] == f"SGFusion {target}"
    assert labels["licenses"] == "Apache-2.0"
    assert f'version = "{labels["version"]}"' in (REPOSITORY / "pyproject.toml").read_text()
    assert re.fullmatch(r"[0-9a-f]{40}(-changed)?|unknown", labels["revision"])


@pytest.mark.parametrize("target", TARGETS)
def test_the_command_runs_read_only_and_without_rights(
    target: str, engine: docker.DockerClient, images: dict[str, str]
) -> None:
    version = engine.images.get(images[target]).labels["org.opencontainers.image.version"]
    assert run(engine, images[target], "sgfusion", "--version").strip() == version
    assert run(engine, images[target], "id").strip() == "uid=10001(sgfusion) gid=10001(sgfusion) groups=10001(sgfusion)"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("target", TARGETS)
def test_every_distribution_is_of_the_locked_version(
    target: str, engine: docker.DockerClient, images: dict[str, str]
) -> None:
    listing = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    found = {
        canonical(name): version.partition("+")[0]  # torch's builds have a suffix: 2.13.0+cpu
        for name, version in json.loads(run(engine, images[target], "python3", "-c", listing)).items()
    }
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    locked = dict(line.split("==") for line in lines if not line.startswith("#"))
    locked = {canonical(name): version for name, version in locked.items()}
    del found["sgfusion"]
    assert found == {name: locked.get(name) for name in found}
    assert "pip" not in found
    assert ("torch" in found, "opendp" in found) == (target == "device", target == "device")
    assert ("numba" in found) == (target == "cloud")


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_compiled_at_a_start(target: str, engine: docker.DockerClient, images: dict[str, str]) -> None:
    modules = {"edge": "edge.main", "cloud": "cloud.main, numba", "device": "device.main, torch, opendp.prelude"}
    script = (
        f"import os, sys, console.main, {modules[target]}\n"
        "files = [(m.__file__, m.__spec__.cached) for m in list(sys.modules.values()) if getattr(m, '__spec__', None)"
        " and (getattr(m, '__file__', None) or '').endswith('.py')]\n"
        "assert len(files) > 200, len(files)\n"
        "print([file for file, cached in files if cached and not os.path.exists(cached)])"
    )
    assert run(engine, images[target], "python3", "-c", script).strip() == "[]"


FIT = "import numpy; from sgfusion.hrg import fit_dendrogram; fit_dendrogram(1 - numpy.eye(9), seed=2)"


def test_a_new_cloud_finds_its_chain_compiled(engine: docker.DockerClient, images: dict[str, str]) -> None:
    volume = engine.volumes.create()
    settings = {"volumes": {volume.name: {"bind": "/state"}}, "environment": {"NUMBA_DEBUG_CACHE": "1"}}
    try:
        said = run(engine, images["cloud"], "python3", "-c", FIT, **settings)
    finally:
        volume.remove()
    assert "data loaded" in said
    assert "data saved" not in said


def test_the_probe_tells_who_serves(engine: docker.DockerClient, images: dict[str, str]) -> None:
    probe = engine.images.get(images["edge"]).attrs["Config"]["Healthcheck"]["Test"][1:]
    assert probe == engine.images.get(images["cloud"]).attrs["Config"]["Healthcheck"]["Test"][1:]
    serve = (
        "import socket, time; s = socket.create_server(('0.0.0.0', 7070)); print('serves', flush=True); time.sleep(600)"
    )
    codes = {}
    for port in ("7070", "7071"):
        container = engine.containers.run(
            images["edge"],
            ["-c", serve.replace("7070", port)],
            entrypoint=["python3"],
            network_mode="none",
            detach=True,
        )
        try:
            deadline = time.monotonic() + 60
            while b"serves" not in container.logs():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            codes[port] = container.exec_run(probe).exit_code
        finally:
            container.remove(force=True)
    assert codes == {"7070": 0, "7071": 1}


FOREIGN = ("*.key", "*.whl", ".git*", ".env", "pip", "build")


def foreign(engine: docker.DockerClient, image: str) -> str:
    """Files of an image that are not for it, looked for by one who may read all."""
    names = " -o ".join(f"-name '{name}'" for name in FOREIGN)
    search = f"find / -xdev -path /proc -prune -o '(' {names} -o -path '/keys/*' ')' -print"
    return run(engine, image, "sh", "-c", search, user="0", cap_add=["DAC_OVERRIDE"])


@pytest.mark.parametrize("target", TARGETS)
def test_no_keys_no_wheels_no_pip(target: str, engine: docker.DockerClient, images: dict[str, str]) -> None:
    assert foreign(engine, images[target]) == ""


@pytest.fixture
def changed_tree(tmp_path: Path) -> Path:
    """A copy of what images are built from, with one line of a tier changed, and with keys lying about."""
    copy_tree(tmp_path)
    with (tmp_path / "cloud" / "main.py").open("a") as source:
        source.write("# changed\n")
    for secret in ("certs/ca.key", "results/leak.key", ".git/leak.key", "deploy/leak.key", "leak.key"):
        (tmp_path / secret).parent.mkdir(exist_ok=True)
        (tmp_path / secret).write_text("secret")
    return tmp_path


@pytest.fixture
def changed(engine: docker.DockerClient, images: dict[str, str], changed_tree: Path) -> Iterator[dict[str, str]]:
    tag = f"{tag_of(images)}-changed"
    try:
        yield build(changed_tree, tag)
    finally:
        for target in TARGETS:
            with suppress(docker.errors.ImageNotFound):  # of a build that failed
                engine.images.remove(f"sgfusion/{target}:{tag}", force=True)


def test_a_changed_source_makes_the_last_layer_anew_and_no_other(
    engine: docker.DockerClient, images: dict[str, str], changed: dict[str, str]
) -> None:
    for target in TARGETS:
        before, after = layers(engine, images[target]), layers(engine, changed[target])
        assert after[:-1] == before[:-1], target
        assert after[-1] != before[-1], target
        listing = run(engine, changed[target], "grep", "-c", "^# changed$", "-r", "/opt/venv/lib", "--include=main.py")
        assert listing.count(":1\n") == 1
        assert foreign(engine, changed[target]) == ""
