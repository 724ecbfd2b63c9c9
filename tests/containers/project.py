"""A cluster in containers under a test's hand: a compose project in a folder of its own, always torn down."""

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
import requests.exceptions
import yaml
from docker.models.containers import Container

from console.compose import Asked, write_compose
from sgfusion.runfile import RunFile, load_run_file

PATIENCE = 200.0
"""Seconds for a small cluster to come up or to finish on a machine with much else to do."""
REFUSALS = (docker.errors.APIError, requests.exceptions.RequestException)
"""What an engine says that cannot, or not in time."""
OPERATOR = f"{os.getuid()}:{os.getgid()}" if os.getuid() else "10001:10001"
"""Who owns the results: we, but for root, as whom nothing is to run."""
WATCHER = """
import asyncio, dataclasses, json, pathlib
from console.status import to_json
from sgfusion.errors import SGFusionError
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity

async def watch():
    keys = Keys.load(pathlib.Path("/keys"))
    while True:
        try:
            me, server = Identity("operator"), Identity("cloud")
            async with open_channel("cloud:7070", server=server, me=me, keys=keys) as channel:
                async for status in CloudClient(channel).watch_status():
                    print(json.dumps(json.loads(to_json(status))), flush=True)
        except SGFusionError:
            await asyncio.sleep(0.2)

asyncio.run(watch())
"""
"""Prints each status of the cloud as a line; through its restarts."""


def compose_commands() -> list[list[str]]:
    """The Compose commands of this machine: 1.29's and 2's, whichever are there."""
    found = [["docker-compose"]] if shutil.which("docker-compose") else []
    if (program := shutil.which("docker")) is None:
        return found
    plugin = subprocess.run([program, "compose", "version"], capture_output=True, check=False)
    return found + ([["docker", "compose"]] if plugin.returncode == 0 else [])


COMPOSE = ("docker-compose", "docker compose")


def compose_command(wanted: str = "") -> list[str]:
    """That command, or any; a skip where it is missing. With SGFUSION_REQUIRE_DOCKER=1 there has to be one at least."""
    found = compose_commands()
    if not found and os.environ.get("SGFUSION_REQUIRE_DOCKER") == "1":
        pytest.fail("an engine is here, and no Compose: install docker-compose", pytrace=False)
    if not found or (wanted and wanted.split() not in found):
        pytest.skip(f"no `{wanted or 'docker-compose'}` here")
    return wanted.split() or found[0]


def tag_of(images: Mapping[str, str]) -> str:
    """The one tag that all images of a test run have."""
    (tag,) = {image.rpartition(":")[2] for image in images.values()}
    return tag


@dataclass
class Project:
    """One compose project. `folder` has docker-compose.yml, the run file and, later, the results."""

    engine: docker.DockerClient
    folder: Path
    tag: str
    command: Sequence[str]
    name: str = field(default_factory=lambda: f"sgf-{uuid.uuid4().hex[:10]}")
    environment: Mapping[str, str] = field(default_factory=dict)

    def surroundings(self) -> dict[str, str]:
        """The environment of the project's commands."""
        own = {"SGFUSION_TAG": self.tag, "SGFUSION_USER": OPERATOR, "SGFUSION_PAGE_PORT": "0"}  # 0: any free one
        return {**os.environ, **own, **self.environment}

    def compose(
        self, *arguments: str, check: bool = True, timeout: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run Compose in the project's folder."""
        done = subprocess.run(
            [*self.command, "--project-name", self.name, *arguments],
            cwd=self.folder,
            env=self.surroundings(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{arguments}:\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done

    def container(self, service: str) -> Container:
        """The service's container, running or not."""
        labels = [f"com.docker.compose.project={self.name}", f"com.docker.compose.service={service}"]
        found = [
            c
            for c in self.engine.containers.list(all=True, filters={"label": labels})
            if c.labels.get("com.docker.compose.oneoff", "False") == "False"
        ]
        assert len(found) == 1, f"{service}: {found}\n{self.logs()}"
        return found[0]

    def containers(self) -> list[Container]:
        """All of the project's, those of `watch` too."""
        mine = self.engine.containers.list(all=True, filters={"label": f"com.docker.compose.project={self.name}"})
        return [*mine, *self.engine.containers.list(all=True, filters={"label": f"sgfusion.test={self.name}"})]

    def image(self, target: str) -> str:
        return f"sgfusion/{target}:{self.tag}"

    def network(self, name: str) -> str:
        return f"{self.name}_{name}"

    def volume(self, name: str) -> str:
        return f"{self.name}_{name}"

    # Watching

    def watch(self) -> None:
        """Start what `status` reads: one process that prints each of the cloud's statuses."""
        self.engine.containers.run(
            self.image("edge"),
            ["-c", WATCHER],
            entrypoint="python",
            name=f"{self.name}-watcher",
            labels={"sgfusion.test": self.name},
            network=self.network("backbone"),
            volumes={self.volume("keys-operator"): {"bind": "/keys", "mode": "ro"}},
            user=OPERATOR,
            detach=True,
            init=True,
        )

    def look_away(self) -> None:
        """Remove the watcher: a network that somebody is on outlives `down`."""
        self.engine.containers.get(f"{self.name}-watcher").remove(force=True)

    def statuses(self, last: int | str = "all") -> list[dict[str, Any]]:
        """All that the watcher has seen, oldest first; or the last of it."""
        log = self.engine.containers.get(f"{self.name}-watcher").logs(stderr=False, tail=last)
        found = []
        for line in log.decode().splitlines():
            with suppress(ValueError):  # the last line may not be whole yet
                found.append(json.loads(line))
        return found

    def rounds(self) -> dict[str, int]:
        """The last round that each zone has reported."""
        return {zone["zone"]: zone["round"] for status in self.statuses(2)[-1:] for zone in status["zones"]}

    def until(self, reached: Callable[[dict[str, Any]], bool], within: float = PATIENCE) -> dict[str, Any]:
        """Wait for a status like that."""
        end = time.monotonic() + within
        last: dict[str, Any] = {}
        while time.monotonic() < end:
            for last in self.statuses(2)[-1:]:
                if reached(last):
                    return last
            time.sleep(0.1)  # between two looks
        raise AssertionError(
            f"not reached within {within} s; the last status: {json.dumps(last)[:3000]}\n{self.logs()}"
        )

    def until_round(self, number: int) -> dict[str, Any]:
        """Wait until every zone is training and has reported that round."""
        return self.until(
            lambda status: bool(status["zones"]) and all(zone["round"] >= number for zone in status["zones"])
        )

    def finish(self, within: float = PATIENCE) -> Path:
        """Wait until the console has written the results; the folder they are in."""
        try:
            ended = self.container("console").wait(timeout=within)
        except requests.exceptions.RequestException:
            raise AssertionError(f"no results within {within} s\n{self.logs()}") from None
        assert ended["StatusCode"] == 0, self.logs()
        return self.results

    @property
    def results(self) -> Path:
        return self.folder / "results" / self.run.name

    @property
    def run(self) -> RunFile:
        return load_run_file(self.folder / "given.toml")

    def logs(self) -> str:
        """The last lines of every container."""
        said = []
        for container in self.containers():
            with suppress(docker.errors.APIError):
                said.append(
                    f"--- {container.name} ({container.status})\n{container.logs(tail=15).decode(errors='replace')}"
                )
        return "\n".join(said)

    # The end

    def tear_down(self) -> None:
        """Remove all of it, whatever state it is in; its logs stay, in a folder `logs` beside the compose file."""
        keep = self.folder / "logs"
        keep.mkdir(parents=True, exist_ok=True)
        for container in self.containers():
            with suppress(*REFUSALS):
                (keep / f"{container.name}.log").write_bytes(container.logs(timestamps=True))
            with suppress(*REFUSALS):
                container.remove(force=True, v=True)
        # Engine 20.10 may keep an endpoint of a large project: its network then stays, and names are unique.
        for network in self.engine.networks.list(names=[f"{self.name}_"]):
            with suppress(*REFUSALS):
                network.remove()
        for volume in self.engine.volumes.list(filters={"name": f"{self.name}_"}):
            with suppress(*REFUSALS):
                volume.remove(force=True)


@contextmanager
def project(
    engine: docker.DockerClient,
    folder: Path,
    run_text: str,
    tag: str,
    *,
    command: Sequence[str] | None = None,
    hosts: int | None = None,
    publish: str | None = None,
    change: Callable[[dict[str, Any]], None] | None = None,
) -> Iterator[Project]:
    """The compose project of a run file, not started yet; gone afterwards, with its logs kept if the test fails.

    `change` changes what the compose file says.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "given.toml").write_text(run_text, "utf-8")
    write_compose(load_run_file(folder / "given.toml"), folder / "given.toml", Asked(folder, hosts, publish))
    if change is not None:
        path = folder / "docker-compose.yml"
        document = yaml.safe_load(path.read_text("utf-8"))
        change(document)
        path.write_text(yaml.safe_dump(document), "utf-8")
    with torn_down(Project(engine, folder, tag, command or compose_command())) as made:
        yield made


@contextmanager
def torn_down(made: Project) -> Iterator[Project]:
    """The project, gone afterwards."""
    try:
        yield made
    except BaseException as error:
        error.add_note(f"logs of all containers: {made.folder / 'logs'}")
        raise
    finally:  # logs always: whoever uses this in a fixture does not hear of a failure here
        made.tear_down()
