"""What the documents have people type to reach another host, typed: a real sshd on this machine is that host.

The images of docs/edge.md go by SSH in tests/containers/test_edge_elsewhere.py, which has an engine.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.console.commands import start_sgfusion
from tests.pages import DIRECT, ROOT, blocks, free_ports, page, type_in, write_files
from tests.ssh import PATIENCE, example_hosts

TUNNEL = "ssh -L 7080:127.0.0.1:7080 cloud.example"


def shown(name: str, program: str) -> list[str]:
    """The lines of a page's `text` blocks that begin so."""
    lines = [line for block in blocks(name) if block.language == "text" for line in block.text.splitlines()]
    return [line for line in lines if line.startswith(f"{program} ")]


def test_the_folder_and_the_bundle_of_an_edge_come_to_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "cloud.example", tmp_path / "wielkopolskie.example"
    shutil.copytree(ROOT / "deploy" / "edge", here / "deploy" / "edge")
    (here / "cluster").mkdir()
    (here / "cluster" / "wielkopolskie.tar").write_bytes(b"private keys")
    (here / "cluster" / "wielkopolskie.tar").chmod(0o600)
    there.mkdir()
    with example_hosts(tmp_path / "ssh", there) as programs:
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        commands = shown("docs/edge.md", "scp")
        assert len(commands) == 2
        type_in("\n".join(commands), here)
    bundle = there / "edge" / "bundle" / "wielkopolskie.tar"
    assert bundle.read_bytes() == b"private keys"
    assert bundle.stat().st_mode & 0o777 == 0o600
    bundle.unlink()
    assert files(there / "edge") == files(ROOT / "deploy" / "edge")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_page_of_another_host_comes_through_a_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown("docs/operate.md", "ssh") == [TUNNEL]
    local, other = free_ports(2)
    write_files("docs/cluster.md", tmp_path)
    with cloud(tmp_path, other), example_hosts(tmp_path / "ssh", tmp_path) as programs:
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        command = TUNNEL.replace("7080:127.0.0.1:7080", f"{local}:127.0.0.1:{other}")  # here both hosts are one
        shell = ["bash", "-c", command]
        # A shell on that host, in which nothing is typed, as long as it can hear.
        tunnel = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            assert fetched(f"http://127.0.0.1:{local}/api/run", tunnel)["run"]["name"] == "harbour"
            said, _ = tunnel.communicate(timeout=PATIENCE)  # it hears that there is no more, and ends
            assert tunnel.returncode == 0, said
        finally:
            tunnel.kill()
            tunnel.communicate()
    with pytest.raises(OSError, match="refused"):
        DIRECT.open(f"http://127.0.0.1:{local}/", timeout=PATIENCE)


@contextmanager
def cloud(folder: Path, port: int) -> Iterator[None]:
    """That of docs/cluster.md with its page at that port, as plain as the page is on loopback."""
    options = ("--listen", "127.0.0.1:0", "--insecure", "--page", f"127.0.0.1:{port}", "--state", folder / "state")
    process = start_sgfusion("cloud", folder / "harbour.toml", *options)
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


def fetched(url: str, tunnel: subprocess.Popen[bytes]) -> Any:
    """What is there, once tunnel and page are up."""
    until = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError), DIRECT.open(url, timeout=PATIENCE) as answer:
            return json.load(answer)
        assert tunnel.poll() is None, tunnel.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.1)  # between two looks


def test_the_page_of_containers_names_the_same_tunnel() -> None:
    (named,) = re.findall(r"`(ssh [^`]*)`", page("docs/containers.md"))
    assert named == TUNNEL.replace("cloud.example", "HOST")
