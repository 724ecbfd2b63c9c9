"""What the tests across containers stand on: an engine that answers, and images of the tree under test."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import docker
import docker.errors
import pytest

from tests.sharing import alone

REPOSITORY = Path(__file__).parents[2]
KEPT = "test"
"""The tag that images have when their run is over, so that the next one finds their layers; `latest` is the user's."""
TARGETS = ("edge", "cloud", "device")
REASON = "no Docker engine answers: deploy/engine find says what to do"
FIRST_BUILD = 900.0
"""Seconds for a first build, with base image and wheelhouse, on a machine with much else to do; later ones take ten."""


def connect() -> docker.DockerClient:
    """A client of the engine. Without an engine the test is skipped, or fails if SGFUSION_REQUIRE_DOCKER is 1."""
    # Not by a client of the SDK: one that cannot connect leaves its socket open.
    found = subprocess.run([REPOSITORY / "deploy" / "engine", "find"], stderr=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        if os.environ.get("SGFUSION_REQUIRE_DOCKER") == "1":
            pytest.fail(f"{REASON}\n{found.stderr}", pytrace=False)
        pytest.skip(REASON)
    if "DOCKER_HOST" in os.environ:
        return docker.from_env(timeout=120)
    # The command line knows contexts (Docker Desktop, a rootless engine), and the SDK does not.
    endpoint = ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
    said = subprocess.run(endpoint, stdout=subprocess.PIPE, text=True, check=True).stdout
    return docker.DockerClient(base_url=said.strip(), timeout=120)


def build(tree: Path, tag: str) -> dict[str, str]:
    """Build the images of `tree`: their names by target."""
    built = subprocess.run(
        [tree / "deploy" / "images"],
        env={**os.environ, "SGFUSION_TAG": tag, "SGFUSION_EXTRAS": ""},  # whatever .env says
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout
    print(built.stdout)
    return _named(tag)


@contextmanager
def images_of_this_run(engine: docker.DockerClient, shared: Path, worker: str) -> Iterator[dict[str, str]]:
    """The same for the tree under test, by the first of a run's workers, under a tag that no other run has: one that
    tests another tree on this engine does not swap them. `shared` is a folder that all workers know.
    """
    users = shared / "images-used-by"
    with alone(shared, "images"):
        if not users.exists():
            users.mkdir()
            (shared / "images-tag").write_text(f"test-{uuid.uuid4().hex[:10]}")
        tag = (shared / "images-tag").read_text()
        if not any(users.iterdir()):
            build(REPOSITORY, tag)
        (users / worker).touch()
    yield _named(tag)
    with alone(shared, "images"):
        (users / worker).unlink()
        if not any(users.iterdir()):
            for name, kept in zip(_named(tag).values(), _named(KEPT).values(), strict=True):
                _rename(engine, name, kept)


def _named(tag: str) -> dict[str, str]:
    return {target: f"sgfusion/{target}:{tag}" for target in TARGETS}


def _rename(engine: docker.DockerClient, name: str, kept: str) -> None:
    """What had that name before goes, but for layers that both have."""
    image = engine.images.get(name)
    before = {each.id for each in engine.images.list(kept)} - {image.id}
    image.tag(kept)
    with suppress(docker.errors.APIError):  # a container has it still, or another run was quicker
        engine.images.remove(name)
    for each in before:
        with suppress(docker.errors.APIError):
            if not engine.images.get(each).tags:  # else it is also that of a run of the same tree
                engine.images.remove(each)
