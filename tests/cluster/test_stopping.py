"""SIGTERM in the middle of training: each process ends by itself, in order, and waits for nothing that nobody wants."""

import signal
import subprocess
import time
from pathlib import Path

from tests.cluster.harness import PATIENCE, Cluster, cluster_of, run_of
from tests.console.commands import start_sgfusion
from tests.unhurried import UNHURRIED

TAKEN_APART = """
import atexit
atexit.register(print, "Python's own way out", flush=True)
"""
"""Has a process say so if it ends the slow way."""
HANGS = """
import pathlib, sys, time
from device.virtual import VirtualDevice

def hang(*_):
    pathlib.Path("{begun}").touch()
    time.sleep(3600)

VirtualDevice._work = hang
"""
"""Has every question to a device take an hour."""


def ended(cluster: Cluster, name: str) -> int:
    """Its exit code."""
    service = cluster.services[name]
    service.wanted = False
    service.signal(signal.SIGTERM)
    assert service.process is not None
    return service.process.wait(PATIENCE)


def until(process: subprocess.Popen[str], begun: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not begun.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.02)  # between two looks


def test_edges_and_devices_that_train_with_each_other_and_their_cloud(tmp_path: Path) -> None:
    with cluster_of(run_of(UNHURRIED, "rounds=100000", "sampler.kind=all"), tmp_path) as cluster:
        cluster.until(lambda status: all(zone.round > 3 for zone in status.zones))
        for name in [*(name for name in cluster.services if name != "cloud"), "cloud"]:
            assert ended(cluster, name) == 0, cluster.said()
            assert "stops: SIGTERM" in cluster.log(name)
            assert "Traceback" not in cluster.log(name), cluster.log(name)
        assert "is stopping: come back when it is up again" in cluster.log("devices-0")


def test_a_device_host_does_not_wait_for_a_gradient_that_takes_an_hour(tmp_path: Path) -> None:
    with cluster_of(run_of(), tmp_path, start=False) as cluster:
        cluster.start_edges("ash")
        edge = cluster.address("edge-ash")
        command = ["device", str(tmp_path / "run.toml"), "--zone", "ash", "--edge", f"ash={edge}"]
        keys = ["--certs", str(tmp_path / "certs"), "--state", str(tmp_path / "devices"), "--threads", "1"]
        host = start_sgfusion(*command, *keys, first=HANGS.format(begun=tmp_path / "begun"))
        try:
            until(host, tmp_path / "begun")
            host.send_signal(signal.SIGTERM)
            said, _ = host.communicate(timeout=PATIENCE)
        finally:
            host.kill()
            host.communicate()
    assert host.returncode == 0
    assert "stops: SIGTERM" in said


def test_who_follows_a_run_and_is_stopped_says_so_and_is_gone(tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text(run_of().to_toml(), "utf-8")
    nowhere = ["--cloud", "127.0.0.1:1", "--insecure", "--out", str(tmp_path / "out")]
    follow = start_sgfusion("follow", tmp_path / "given.toml", *nowhere, first=TAKEN_APART)
    try:
        assert follow.stdout is not None
        before = ""
        while "the cloud is away" not in before:
            before += (line := follow.stdout.readline())
            assert line, before
        follow.send_signal(signal.SIGTERM)
        said, _ = follow.communicate(timeout=PATIENCE)
    finally:
        follow.kill()
        follow.communicate()
    assert follow.returncode == 130
    assert said.splitlines()[-1] == "no longer watching; that ends nothing else"
