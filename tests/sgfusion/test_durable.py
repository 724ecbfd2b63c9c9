import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sgfusion
from sgfusion.durable import replace_file

ROOT = Path(sgfusion.__file__).parents[1]


def fail(*_: object) -> None:
    raise OSError("no space left on device")


def test_the_content_is_what_was_given(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for content in (b"first, and longer", b"", b"\x00\xff\r\n"):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    replace_file(tmp_path / "a" / "b" / "state", b"new")
    assert (tmp_path / "a" / "b" / "state").read_bytes() == b"new"


def test_only_the_owner_may_read_it_even_if_everybody_could_read_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        replace_file(path, b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_reader_that_has_the_old_file_open_reads_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace_file(path, b"new")
        assert reader.read() == b"old"


def test_a_relative_path_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replace_file(Path("state"), b"new")
    assert (tmp_path / "state").read_bytes() == b"new"


def test_the_content_is_on_disk_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    steps: list[tuple[str, object]] = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        steps.append(("fsync folder", None) if stat.S_ISDIR(status.st_mode) else ("fsync file", status.st_size))
        if stat.S_ISDIR(status.st_mode):
            assert os.path.samestat(status, tmp_path.stat())
        fsync(descriptor)

    def watched_replace(self: Path, target: Path) -> Path:
        assert self.parent == tmp_path  # a rename is atomic within one file system only
        steps.append(("rename", self.read_bytes()))
        assert target.read_bytes() == b"old"
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    replace_file(path, b"brand new")
    assert steps == [("fsync file", 9), ("rename", b"brand new"), ("fsync folder", None)]


@pytest.mark.parametrize("failing", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("existed", [True, False])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, existed: bool
) -> None:
    path = tmp_path / "state"
    if existed:
        path.write_bytes(b"old")
    monkeypatch.setattr(failing, fail)
    with pytest.raises(OSError, match="no space left"):
        replace_file(path, b"new")
    monkeypatch.undo()
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == ({"state": b"old"} if existed else {})


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "state"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_file(path, b"new")
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"state": b"old"}


def test_a_folder_that_cannot_be_synced_is_an_error_for_the_file_may_not_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: fail() if stat.S_ISDIR(os.fstat(fd).st_mode) else fsync(fd))
    with pytest.raises(OSError, match="no space left"):
        replace_file(tmp_path / "state", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]  # whole, all the same


@pytest.mark.parametrize(
    ("step", "left"),
    [("fsync 1", b"old"), ("replace", b"old"), ("fsync 2", b"new" * 50_000)],
    ids=lambda value: value[:7],
)
def test_killed_at_any_step_it_leaves_the_old_file_or_the_new_one(tmp_path: Path, step: str, left: bytes) -> None:
    child = """
import os, pathlib, signal, sys
from sgfusion.durable import replace_file

def or_die(name, call):
    def wrapped(*arguments):
        count[name] = count.get(name, 0) + 1
        if sys.argv[2] in (name, f"{name} {count[name]}"):
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments)
    return wrapped

count = {}
os.fsync = or_die("fsync", os.fsync)
pathlib.Path.replace = or_die("replace", pathlib.Path.replace)
replace_file(pathlib.Path(sys.argv[1]), b"new" * 50_000)
"""
    path = tmp_path / "state"
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", child, path, step], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == left


def test_of_many_writers_at_once_one_is_the_last_and_whole(tmp_path: Path) -> None:
    contents = [bytes([writer]) * 10_000 for writer in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda content: replace_file(tmp_path / "state", content), contents))
    assert (tmp_path / "state").read_bytes() in contents
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]
