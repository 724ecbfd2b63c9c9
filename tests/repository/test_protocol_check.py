"""What `make check` lets pass in protos/: buf's part of it, as the Makefile has it, on a copy that is then spoilt."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROTO = Path("protos", "sgfusion", "proto", "v1", "peer.proto")
BUF = Path(sys.executable).with_name("buf")
COMMANDS = re.findall(r"^\t@\$\(BIN\)/(buf .*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    shutil.copytree(ROOT / "protos", place / "protos")
    shutil.copy(ROOT / "buf.yaml", place)
    return place


def check(place: Path) -> tuple[bool, str]:
    """Whether all of buf's commands are content, and what they say; on a machine without a home or a network."""
    # A proxy that nobody serves: who dials out fails.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:1")
    own = {"HOME": str(place.parent / "home"), "BUF_CACHE_DIR": str(place.parent / "cache")}
    runs = [
        subprocess.run(
            [BUF, *command.split()[1:]],
            cwd=place,
            env={"PATH": os.defpath, **own, **nowhere},
            capture_output=True,
            text=True,
            check=False,
        )
        for command in COMMANDS
    ]
    return not any(run.returncode for run in runs), "".join(run.stdout + run.stderr for run in runs)


def edit(place: Path, before: str, after: str) -> None:
    text = (place / PROTO).read_text("utf-8")
    assert text.count(before) == 1, before
    (place / PROTO).write_text(text.replace(before, after), "utf-8")


def test_the_makefile_lints_formats_and_compares() -> None:
    assert [command.split()[1] for command in COMMANDS] == ["lint", "format", "breaking"]


def test_the_protos_pass_and_nothing_is_written_beside_them(copy: Path) -> None:
    before = sorted(copy.rglob("*"))
    assert check(copy) == (True, "")
    assert sorted(copy.rglob("*")) == before
    assert {path.name for path in copy.parent.iterdir()} == {"checkout", "cache"}
    assert "export BUF_CACHE_DIR := $(CURDIR)/.venv/" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "  // Gradients that they computed for it.\n  uint64 gradients = 2;\n",
            "",
            'Previously present field "2" with name "gradients"',
        ),
        (
            "  // Gradients that they computed for it.\n  uint64 gradients = 2;\n",
            '  reserved 2;\n  reserved "gradients";\n',
            'Previously present field "2" with name "gradients"',
        ),
        ("uint64 gradients = 2;", "uint64 gradients = 4;", 'Previously present field "2" with name "gradients"'),
        ("uint64 gradients = 2;", "uint64 passes = 2;", 'changed name from "gradients" to "passes"'),
        ("uint64 gradients = 2;", "uint32 gradients = 2;", 'changed type from "uint64" to "uint32"'),
        ("(stream DirectionResponse)", "(DirectionResponse)", "changed from server streaming"),
    ],
    ids=["removed", "removed and reserved", "renumbered", "renamed", "retyped", "no longer a stream"],
)
def test_what_breaks_a_deployed_peer_is_refused(copy: Path, before: str, after: str, said: str) -> None:
    edit(copy, before, after)
    passed, told = check(copy)
    assert not passed
    assert said in told


def test_an_rpc_that_is_gone_is_refused(copy: Path) -> None:
    text = (copy / PROTO).read_text("utf-8")
    without = re.sub(r"service PeerService \{.*?^\}", "service PeerService {}", text, flags=re.DOTALL | re.MULTILINE)
    (copy / PROTO).write_text(without, "utf-8")
    passed, told = check(copy)
    assert not passed
    assert 'Previously present RPC "Direction"' in told


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("  // Devices in the mean.\n", 'Field "devices" should have a non-empty comment'),
        (
            "// A piece of the direction; all but the chunk is the same in every piece.\n",
            'Message "DirectionResponse" should have a non-empty comment',
        ),
    ],
)
def test_what_has_no_comment_is_refused(copy: Path, comment: str, said: str) -> None:
    edit(copy, comment, "")
    passed, told = check(copy)
    assert not passed
    assert said in told


def test_what_is_badly_formatted_is_refused(copy: Path) -> None:
    edit(copy, "  uint32 devices = 1;", "    uint32 devices=1;")
    passed, told = check(copy)
    assert not passed
    assert "+  uint32 devices = 1;" in told


def test_a_new_field_passes(copy: Path) -> None:
    edit(
        copy, "  uint64 gradients = 2;\n", "  uint64 gradients = 2;\n  // How long they took.\n  double seconds = 4;\n"
    )
    assert check(copy) == (True, "")
