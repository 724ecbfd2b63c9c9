"""What the documents have people write and type, for tests that do so.

A block below a paragraph that ends with a file's name and a colon is that file. `sh` blocks are typed by a shell in the
folder of those files, as they stand; what a test has to change for that (ports, rounds) it says in `changes`.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[1]
PATIENCE = 540
"""Seconds for a page's commands, on a machine with much else to do."""
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""For addresses of this machine: never by a proxy of the environment."""
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
Test = TypeVar("Test", bound=Callable[..., object])


def types(*_places: str, but: Iterable[str] = ()) -> Callable[[Test], Test]:  # noqa: ARG001 (read in the source)
    """This test types every command of these pages, or sections: "docs/cluster.md#By hand" with all below that heading.

    `but` are those that it leaves to others. `tests/repository/test_every_command.py` looks for this in the source.
    """
    return lambda test: test


@dataclass(frozen=True)
class Block:
    """A fenced block, the headings that it is below, from the top, and the file that the paragraph above it names."""

    language: str
    text: str
    headings: tuple[str, ...]
    file: str | None


@cache
def page(name: str) -> str:
    """The text of a page, by its path in the repository."""
    return (ROOT / name).read_text("utf-8")


@cache
def blocks(name: str) -> tuple[Block, ...]:
    """All blocks of a page."""
    text = page(name)
    found = []
    for fence in _FENCE.finditer(text):
        above = text[: fence.start()]
        paragraph = above.strip().rpartition("\n\n")[2]
        names = re.findall(r"`([\w./-]+\.(?:py|toml|csv))`", paragraph) if paragraph.endswith(":") else []
        found.append(Block(fence[2], textwrap.dedent(fence[3]), _headings(above), names[-1] if names else None))
    return tuple(found)


def _headings(above: str) -> tuple[str, ...]:
    """Those that are open at the end of a text."""
    open_at: dict[int, str] = {}
    for heading in _HEADING.finditer(_FENCE.sub("", above)):
        level = heading[0].index(" ")
        open_at = {each: name for each, name in open_at.items() if each < level} | {level: heading[1]}
    return tuple(name for _, name in sorted(open_at.items()))


def script(name: str, heading: str | None = None) -> str:
    """All that a page has people type, or that part of it."""
    found = [block.text for block in blocks(name) if block.language == "sh" and heading in (None, *block.headings)]
    assert found, f"{name} has nothing to type below {heading!r}"
    return "".join(found)


def commands(block: str) -> Iterator[str]:
    """The commands of a block: a line each, or several where a quotation or a backslash goes on."""
    pending = ""
    for line in block.splitlines():
        pending += line
        if _open_quotation(pending) or line.endswith("\\"):
            pending += "\n"
            continue
        if pending.strip():
            yield pending
        pending = ""
    assert not pending, f"a quotation without an end: {block}"


def _open_quotation(text: str) -> bool:
    bare = re.sub(r"\\.", "", re.sub(r"(^|\s)#\s.*$", "", text, flags=re.MULTILINE))
    return any(quote in re.sub(r"'[^']*'|\"[^\"]*\"", "", bare) for quote in "'\"")


def normal(command: str) -> str:
    """Without its comment, without the folder that commands are in, on one line."""
    without = re.sub(r"\s+#\s.*$", "", command, flags=re.MULTILINE).replace("\\\n", " ")
    return re.sub(r"(^|[\s(|;])\.venv/bin/", r"\1", " ".join(without.split()))


def write_files(name: str, folder: Path) -> list[str]:
    """The files that a page has people write; their names."""
    named = {block.file: block.text for block in blocks(name) if block.file is not None and block.language != "sh"}
    for file, text in named.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    return list(named)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback device that nobody has now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def other_ports(*ports: int) -> dict[str, str]:
    """`changes` that put ports which nobody has in the place of a page's."""
    return {f"127.0.0.1:{port}": f"127.0.0.1:{free}" for port, free in zip(ports, free_ports(len(ports)), strict=True)}


def type_in(commands: str, place: Path, changes: Mapping[str, str] = {}, within: float = PATIENCE) -> str:
    """What a shell prints that is given the commands; it leaves no process behind. A change that hits nothing fails."""
    for ours, other in changes.items():
        assert ours in commands, f"{ours!r} is not typed any more"
        commands = commands.replace(ours, other)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (place / "shell.log").open("w+b") as out:
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", commands],  # noqa: S607
            cwd=place,
            env={**os.environ, "PATH": path, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(within)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
            out.seek(0)
            printed = out.read().decode()
            logs = "".join(f"\n{log.name}:\n{log.read_text()[-2000:]}" for log in sorted(place.glob("*.log")))
    assert code == 0, f"{printed}\n{logs}"
    return printed


def make(*words: str, place: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """`make` typed there, by the Python of the tests: .venv is not to be made anew. It leaves no process behind."""
    old = [f"--assume-old=.venv/.installed-{extra}" for extra in ("dev", "experiments")]
    typed = ["make", "--no-print-directory", *old, f"BIN={Path(sys.executable).parent}", *words]
    with subprocess.Popen(
        typed,
        cwd=place,
        env={**os.environ, "MAKEFLAGS": "", **environment},  # none of a `make test` around us
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(typed, process.returncode, said)


def looked_at(command: str, file: str = "page.json") -> dict[str, str]:
    """A change for a command that serves a page until Ctrl-C: what the page has is fetched to the file, then Ctrl-C."""
    fetch = (
        "import re, sys, urllib.request; "
        "url = re.search(r'http://[^ ]*/', open('view.log').read())[0]; "
        "open(sys.argv[1], 'wb').write(urllib.request.urlopen(url + 'api/run', timeout=20).read())"
    )
    until = f'until python -c "{fetch}" {file} 2> fetch.log; do sleep 0.2; done'
    return {command: f"{command} > view.log &\nviewer=$!\n{until}\nkill -INT $viewer\nwait $viewer || true"}
