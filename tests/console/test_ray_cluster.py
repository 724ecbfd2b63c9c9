"""A suite on a Ray cluster that somebody else started: here a head of its own, with a token, on this machine."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.console.commands import files, sgfusion, start_sgfusion
from tests.simulator.tiny_suite import write_suite

Capture = pytest.CaptureFixture[str]
PATIENCE = 180.0
GREETER = "import socket; s = socket.socket(fileno=0).accept()[0]; s.sendall(b'SSH-2.0-x'); s.recv(99)"
"""Speaks first, as an SSH server does, at the listening socket that it is handed."""


def two_free_ports() -> tuple[int, int]:
    with socket.create_server(("", 0)) as first, socket.create_server(("", 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


@contextmanager
def ray_head() -> Iterator[str]:
    """A head in a process group of its own, which ends with the block; its address, once it answers."""
    port, client_port = two_free_ports()
    ray = Path(sys.executable).with_name("ray")
    options = (f"--port={port}", f"--ray-client-server-port={client_port}", "--num-cpus=2", "--block")
    # Not pytest's folder: the paths of Ray's sockets would be too long for the system.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        command = [str(ray), "start", "--head", "--include-dashboard=false", f"--temp-dir={folder}", *options]
        with log.open("wb") as into:
            head = subprocess.Popen(command, stdout=into, stderr=into, start_new_session=True)
        try:
            until = time.monotonic() + PATIENCE
            while "Ray runtime started" not in log.read_text("utf-8"):
                assert head.poll() is None, log.read_text("utf-8")
                assert time.monotonic() < until, log.read_text("utf-8")
                time.sleep(0.1)
            yield f"127.0.0.1:{port}"
        finally:
            head.terminate()  # it ends its workers, which are in groups of their own
            with suppress(subprocess.TimeoutExpired):
                head.wait(30)
            with suppress(ProcessLookupError):
                os.killpg(head.pid, signal.SIGKILL)
            head.wait()


@pytest.mark.timeout(600)  # a head, two commands; each of them has a deadline of its own
def test_a_cluster_gives_the_same_files_and_asks_for_its_token(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    command = ("experiment", write_suite(tmp_path), "--data", "far", "--seeds", "1")
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 4)
    monkeypatch.setattr("console.report.write_report", lambda *_: "report")  # it has tests of its own
    monkeypatch.setenv("HOME", str(tmp_path))  # no token of the user's
    monkeypatch.setenv("RAY_worker_niceness", "0")  # on a loaded machine, workers of less right start in minutes
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # a head listens to the whole network
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    with ray_head() as address:
        on_it = ("--out", tmp_path / "ray", "--backend", "ray", "--address", address)
        with monkeypatch.context() as stranger:
            stranger.setenv("RAY_AUTH_MODE", "disabled")
            process = start_sgfusion(*command, *on_it)
            said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert "the cluster asks for its token: set RAY_AUTH_MODE=token" in said
        assert "Traceback" not in said
        process = start_sgfusion(*command, *on_it)
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    assert sgfusion(capsys, *command, "--out", tmp_path / "here", "--workers", "1").code == 0
    assert files(tmp_path / "ray") == files(tmp_path / "here")


def test_what_is_not_ray_is_told_at_once(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("ray")
    with socket.create_server(("", 0)) as server:
        hears = f"127.0.0.1:{server.getsockname()[1]}"
        greeter = subprocess.Popen([sys.executable, "-c", GREETER], stdin=server.fileno())
        try:
            command = ("experiment", write_suite(tmp_path), "--backend", "ray", "--address", hears)
            done = sgfusion(capsys, *command, "--out", tmp_path / "out")
        finally:
            greeter.kill()
            greeter.wait()
    assert done.code == 1
    assert f"--address '{hears}': what answers there is not Ray" in done.error
