"""A suite on a Ray cluster that somebody else started, as docs/simulator.md has it typed: a head and one machine more,
with a token. Both are this machine. They have its processes for themselves, where that is permitted: `ray stop` ends
all Ray that it sees.
"""

import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.console.commands import RUN_IT, WITHOUT_REPORT, files, sgfusion
from tests.pages import free_ports, page, type_in
from tests.simulator.tiny_suite import write_suite

Capture = pytest.CaptureFixture[str]
PATIENCE = 500.0
GREETER = "import socket; s = socket.socket(fileno=0).accept()[0]; s.sendall(b'SSH-2.0-x'); s.recv(99)"
"""Speaks first, as an SSH server does, at the listening socket that it is handed."""
BLOCKING = """{command} --block > {log} 2>&1 &
until grep -q "Ray runtime started" {log}; do kill -0 $! || exit 1; sleep 0.1; done
"""
"""Where `ray stop` must not be typed: in the foreground it ends with its parts."""
END_ALL = "trap 'kill $(jobs -p) || true; wait' EXIT\n"
"""So that a step that fails leaves none of them behind, which have sessions of their own."""
STRANGER = "if RAY_AUTH_MODE=disabled {command} > stranger.txt 2>&1; then exit 1; fi\n"


def by_themselves() -> list[str]:
    """What is put before a command that shall see no process but its own, which end with it. Empty: not permitted."""
    if shutil.which("unshare") is None:
        return []
    for user in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *user, "--pid", "--fork", "--mount-proc", "--kill-child"]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return []


def steps() -> list[str]:
    """What the page has people type on a cluster, in order."""
    part = page("docs/simulator.md").partition("**On a Ray cluster.**")[2]
    return [
        command
        for line in re.findall(r"^\d\. (.*)$", part, re.MULTILINE)
        for command in re.findall(r"`((?:export|ray|sgfusion) [^`]*)`", line)
    ]


def typed(ports: Sequence[int], *, stop: bool) -> str:
    """These in one shell. The head has no CPU for jobs: the machine that joins does them all."""
    export, token, head, node, experiment, end = steps()
    assert (export, end) == ("export RAY_AUTH_MODE=token", "ray stop")
    assert "--port=6379 " in head
    head = head.replace("--port=6379 ", f"--port={ports[0]} --ray-client-server-port={ports[1]} --num-cpus=0 ")
    node, experiment = (each.replace("HEAD:6379", f"127.0.0.1:{ports[0]}") for each in (node, experiment))
    assert str(ports[0]) in node
    assert str(ports[0]) in experiment
    node, experiment = f"{node} --num-cpus=1", f"{experiment} --data far --seeds 1 --out $PWD/ray"
    start = "{command} > {log} 2>&1\n" if stop else BLOCKING
    lines = [
        "" if stop else END_ALL,
        f"{export}\n{token}\n",
        start.format(command=head, log="head.log"),
        start.format(command=node, log="node.log"),
        STRANGER.format(command=experiment),
        f"{experiment}\n",
        f"{end}\n" if stop else "",
    ]
    return "".join(lines)


@pytest.fixture
def short() -> Iterator[Path]:
    """Not pytest's folder: the paths of Ray's sockets would be too long for the system."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.mark.timeout(PATIENCE + 60)
def test_the_cluster_of_the_page_gives_the_same_files_and_asks_for_its_token(
    tmp_path: Path, short: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    write_suite(tmp_path).rename(tmp_path / "suite.toml")  # as on the page
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sgfusion").write_text(
        f"#!{sys.executable}\n{WITHOUT_REPORT}{RUN_IT}"
    )  # that has its own tests
    (tmp_path / "bin" / "sgfusion").chmod(0o755)
    monkeypatch.setattr("console.report.write_report", lambda *_: "report")
    monkeypatch.setenv("HOME", str(tmp_path))  # no token of the user's, and none for the user
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(short))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")  # it would tell others
    monkeypatch.setenv("RAY_worker_niceness", "0")  # on a loaded machine, workers of less right start in minutes
    alone = by_themselves()
    script = f"PATH={tmp_path}/bin:$PATH\n{typed(free_ports(2), stop=bool(alone))}"
    printed = type_in(shlex.join([*alone, "bash", "-euo", "pipefail", "-c", script]), tmp_path, within=PATIENCE)

    assert (tmp_path / ".ray" / "auth_token").read_text().strip() in printed
    said = (tmp_path / "stranger.txt").read_text()
    assert "the cluster asks for its token: set RAY_AUTH_MODE=token" in said
    assert "Traceback" not in said
    assert not alone or "Stopped all" in printed, printed
    monkeypatch.chdir(tmp_path)
    here = ("--data", "far", "--seeds", "1", "--out", tmp_path / "here", "--workers", "1")
    assert sgfusion(capsys, "experiment", "suite.toml", *here).code == 0
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
