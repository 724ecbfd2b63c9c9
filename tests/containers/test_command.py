"""`make cluster`: typed, left by Ctrl-C while it follows, typed again.

In a copy of the repository, with a run of seconds. Its devices wait for a file, so that the run cannot end by itself
while it is followed for the first time.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import docker
import docker.errors
import pytest
import yaml

from console.compose import Asked, write_compose
from sgfusion.runfile import load_run_file
from tests.containers.engine import REPOSITORY, TARGETS
from tests.containers.project import PATIENCE, Project, compose_command, tag_of, torn_down
from tests.containers.runs import ZONES, run_text
from tests.containers.tree import copy_tree

OWNER = (os.getuid(), os.getgid()) if os.getuid() else (4321, 8765)
"""Who types it, and whose the results are to be. For root, as whom nothing runs, `id` here says somebody else."""
ID = f"#!/bin/sh\ncase $1 in -u) echo {OWNER[0]} ;; -g) echo {OWNER[1]} ;; *) exec /usr/bin/id $@ ;; esac\n"
INTERRUPTIBLE = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp('make', sys.argv[1:])"
"""Whoever runs the tests in the background ignores Ctrl-C, and so would all that they start."""
WAITING = ["sh", "-c", 'until [ -e /gate/open ]; do sleep 0.1; done; exec sgfusion "$$@"', "sgfusion"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The repository with another run in place of the demonstration."""
    copy_tree(tmp_path)
    shutil.copyfile(REPOSITORY / "Makefile", tmp_path / "Makefile")
    for folder in ("bin", "experiments", "gate"):
        (tmp_path / folder).mkdir()
    if os.getuid() == 0:
        (tmp_path / "bin" / "id").write_text(ID)
        (tmp_path / "bin" / "id").chmod(0o755)
    run_file = tmp_path / "experiments" / "containers.toml"
    run_file.write_text(run_text(20), "utf-8")
    write_compose(load_run_file(run_file), run_file, Asked(tmp_path, hosts=1))
    path = tmp_path / "docker-compose.yml"
    document = yaml.safe_load(path.read_text("utf-8"))
    document["services"]["devices-ash"]["entrypoint"] = WAITING
    document["services"]["devices-ash"]["volumes"].append("./gate:/gate:ro")
    path.write_text(yaml.safe_dump(document), "utf-8")
    return tmp_path


@pytest.fixture
def cluster(engine: docker.DockerClient, images: dict[str, str], tree: Path) -> Iterator[Project]:
    made = Project(engine, tree, f"{tag_of(images)}-command", compose_command())
    with torn_down(made):
        yield made
    for target in TARGETS:
        with suppress(docker.errors.ImageNotFound):  # of a build that failed
            engine.images.remove(made.image(target), force=True)


@contextmanager
def typed(cluster: Project) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The command in a process group of its own, as in a terminal, and the file with all that it says."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SGFUSION_")},
        "PATH": f"{cluster.folder / 'bin'}:{os.environ['PATH']}",
        "MAKEFLAGS": "",  # those of a `make test` around us
        "COMPOSE_PROJECT_NAME": cluster.name,
        "SGFUSION_TAG": cluster.tag,
        "SGFUSION_PAGE_PORT": "0",
    }
    said = cluster.folder / "said"
    # Not to be made anew, whatever is changed: .venv is that of the tests.
    command = [sys.executable, "-c", INTERRUPTIBLE, "make", "--assume-old=.venv/.installed-experiments", "cluster"]
    with said.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=cluster.folder, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process, said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until_said(words: str, process: subprocess.Popen[bytes], said: Path) -> None:
    end = time.monotonic() + PATIENCE
    while words not in said.read_text("utf-8"):
        assert process.poll() is None, said.read_text("utf-8")
        assert time.monotonic() < end, said.read_text("utf-8")
        time.sleep(0.05)  # between two looks


def started(cluster: Project) -> Mapping[str, tuple[str, str]]:
    """Which containers of cloud, edges and devices run, and since when."""
    running = [container for container in cluster.containers() if container.status == "running"]
    found = {c.labels["com.docker.compose.service"]: (str(c.id), str(c.attrs["State"]["StartedAt"])) for c in running}
    found.pop("console", None)
    return found


def shown_at(page: str) -> str:
    """The name of the run that a page shows, opened as by a browser: by a cookie from then on."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(page, timeout=60) as answer:
        assert "token" not in answer.url
        assert answer.headers["content-type"].startswith("text/html")
    with opener.open(f"{page.partition('?')[0]}api/run", timeout=60) as answer:
        name: str = json.load(answer)["run"]["name"]
    return name


def test_it_is_followed_left_alone_and_followed_to_the_end(cluster: Project) -> None:
    with typed(cluster) as (process, said):
        until_said("data ...", process, said)  # the console's first words
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(PATIENCE)
        told = said.read_text("utf-8")
    assert code != 0, told
    assert "The run goes on." in told
    (page,) = re.findall(r"^page: (http://127\.0\.0\.1:\d+/\?token=\S+)$", told, re.MULTILINE)
    assert shown_at(page) == "containers"
    assert "The services still hold the models." not in told
    there = started(cluster)
    assert set(there) == {"cloud", *(f"edge-{zone}" for zone in ZONES), "devices-ash"}, cluster.logs()
    assert cluster.container("console").status == "running", cluster.logs()
    kept = (cluster.folder / ".env").read_text("utf-8")
    assert kept.splitlines().count(f"SGFUSION_USER={OWNER[0]}:{OWNER[1]}") == 1

    (cluster.folder / "gate" / "open").touch()
    with typed(cluster) as (process, said):
        code = process.wait(PATIENCE)
        told = said.read_text("utf-8")
    assert code == 0, told
    assert started(cluster) == there, "it went on with what was there"
    assert (cluster.folder / ".env").read_text("utf-8") == kept
    _, title, table = told.partition("on the test split")
    assert title, told
    assert all(f" {zone} " in table for zone in (*ZONES, "pooled")), told
    for hint in ("The services still hold the models.", "run --rm console status ", "compose down "):
        assert hint in table, told
    results = cluster.folder / "results" / "containers"
    assert (results / "summary.json").exists()
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (results, *results.rglob("*"))} == {OWNER}
