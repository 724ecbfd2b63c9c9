"""What the tests across containers stand on: an engine that answers, and images of the tree under test."""

import fcntl
import os
import subprocess
from pathlib import Path

import docker
import pytest

REPOSITORY = Path(__file__).parents[2]
TAG = "test"
"""Of the images that tests build; `latest` is the user's."""
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
    return docker.from_env(timeout=120)


def build(tree: Path, tag: str) -> dict[str, str]:
    """Build the images of `tree`: their names by target."""
    built = subprocess.run(
        [tree / "deploy" / "images"],
        env={**os.environ, "SGFUSION_TAG": tag},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout
    print(built.stdout)
    return {target: f"sgfusion/{target}:{tag}" for target in TARGETS}


def build_once(shared: Path) -> dict[str, str]:
    """The same for the tree under test, by the first of a run's workers. `shared` is a folder that all of them know."""
    done = shared / "images-built"
    with (shared / "images-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            build(REPOSITORY, TAG)
            done.touch()
    return {target: f"sgfusion/{target}:{TAG}" for target in TARGETS}
