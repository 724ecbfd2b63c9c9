"""A cluster in containers gives the simulator's bytes, goes on where it was, and is as small as it should be."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from tests.containers.project import COMPOSE, Project, compose_command, project, tag_of
from tests.containers.runs import ZONES, assert_same, run_text, simulated

GIGABYTE = 1e9


@pytest.mark.parametrize("command", COMPOSE)
def test_models_are_the_simulators(
    command: str, engine: docker.DockerClient, images: dict[str, str], tmp_path: Path
) -> None:
    """With both versions of Compose, with devices on two hosts."""
    compose = compose_command(command)
    text = run_text(60)
    with project(engine, tmp_path / "c", text, tag_of(images), command=compose, hosts=2) as cluster:
        cluster.compose("up", "--detach")
        results = cluster.finish()
        assert_same(results, simulated(text, tmp_path / "simulated"))
        status = cluster.compose("run", "--rm", "console", "status").stdout
    assert all(zone in status for zone in ZONES)
    assert status.count("60/60") == len(ZONES)


def test_down_is_quick_and_up_goes_on(engine: docker.DockerClient, images: dict[str, str], tmp_path: Path) -> None:
    """Twice in the middle of training; the better one counts, and it goes on after both. The limit is 5 s, or three
    times what the engine takes to end as many containers that have nothing to do, on a machine so crowded that this is
    more.
    """
    rounds = 2000  # a crowded engine took so long that 800 were over
    text = run_text(rounds)
    took, bare = [], []
    with (
        project(engine, tmp_path / "cluster", text, tag_of(images), hosts=1, change=at_once) as cluster,
        project(engine, tmp_path / "idle", text, tag_of(images), hosts=1, change=idle) as nothing,
    ):
        reached = dict.fromkeys(ZONES, 0)
        for _ in range(2):
            cluster.compose("up", "--detach")
            cluster.watch()
            cluster.until(lambda status: all(len(z["attendance"]["attending"]) == 2 for z in status["zones"]))
            cluster.until_round(max(cluster.rounds().values()) + 3)
            before, reached = reached, cluster.rounds()
            assert all(before[zone] < reached[zone] < rounds for zone in ZONES), (before, reached)
            cluster.look_away()
            began = time.time()
            cluster.compose("down")
            took.append(time.time() - began)
            # 137 would be whoever did not heed SIGTERM. The console says that its work was interrupted.
            assert exit_codes(cluster, began) == {
                "cloud": 0,
                **{f"edge-{zone}": 0 for zone in ZONES},
                "devices-ash": 0,
                "console": 130,
            }
            assert not cluster.containers()
            nothing.compose("up", "--detach")
            began = time.time()
            nothing.compose("down")
            bare.append(time.time() - began)
        cluster.compose("up", "--detach")
        cluster.watch()
        cluster.until(lambda status: all(len(z["attendance"]["attending"]) == 2 for z in status["zones"]))
        # To what end, test_faults.py compares, of services that had no time to stop.
        cluster.until_round(max(cluster.rounds().values()) + 3)
        for zone in ZONES:
            assert "goes on after round" in cluster.container(f"edge-{zone}").logs().decode()
        cluster.look_away()
    both = list(zip(took, bare, strict=True))
    print(f"down, ours and of idle containers: {', '.join(f'{ours:.1f} s {idle:.1f} s' for ours, idle in both)}")
    assert any(ours < max(5, 3 * idle) for ours, idle in both), both


def at_once(document: dict[str, Any]) -> None:
    """Nobody waits for others' health to start, which takes time; the order, which `down` goes by, stays."""
    for service in document["services"].values():
        for name, waits_for in service.get("depends_on", {}).items():
            if name != "certs":
                waits_for["condition"] = "service_started"


def idle(document: dict[str, Any]) -> None:
    """The same services in the same order with nothing to do, which end when they are told."""
    at_once(document)
    del document["services"]["certs"]
    for service in document["services"].values():
        service |= {"entrypoint": ["sleep", "600"], "command": []}
        service["depends_on"].pop("certs", None)


def exit_codes(cluster: Project, since: float) -> dict[str, int]:
    """Of services that have ended since then."""
    ended = cluster.engine.events(
        since=int(since),
        until=int(time.time()) + 1,
        filters={"event": "die", "label": f"com.docker.compose.project={cluster.name}"},
        decode=True,
    )
    told = [event["Actor"]["Attributes"] for event in ended]
    return {of["com.docker.compose.service"]: int(of["exitCode"]) for of in told}


@pytest.mark.timeout(1500)
def test_eight_zones_of_25_devices_fit_into_six_gigabytes(
    engine: docker.DockerClient, images: dict[str, str], tmp_path: Path
) -> None:
    zones = [f"z{number}" for number in range(8)]
    text = run_text(40, zones=zones, devices=25)
    with project(engine, tmp_path / "cluster", text, tag_of(images)) as cluster:
        cluster.compose("up", "--detach", timeout=400)
        most: dict[str, int] = {}
        with ThreadPoolExecutor(18) as pool:  # the engine takes a second for an answer
            while cluster.container("console").status == "running":
                running = [c for c in cluster.containers() if c.status == "running"]
                now = dict(zip([str(c.name) for c in running], pool.map(memory, running), strict=True))
                most = max(most, now, key=lambda found: sum(found.values()))
        results = cluster.finish()
        assert len(most) == 18, most  # the cloud, eight edges, eight hosts of devices, the console
    print(f"{sum(most.values()) / GIGABYTE:.2f} GB in {len(most)} containers: {most}")
    assert sum(most.values()) < 6 * GIGABYTE
    assert_same(results, simulated(text, tmp_path / "simulated"))


def memory(container: Container) -> int:
    """As `docker stats` has it: without the page cache that nobody uses. 0 if it has just ended."""
    try:
        told: dict[str, Any] = container.stats(stream=False, one_shot=True)["memory_stats"]
    except docker.errors.NotFound:
        return 0
    details = told.get("stats", {})
    return int(told.get("usage", 0) - details.get("total_inactive_file", details.get("inactive_file", 0)))
