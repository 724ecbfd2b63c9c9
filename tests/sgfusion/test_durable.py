import json
import os
import select
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

import sgfusion
from sgfusion.durable import replace_file
from sgfusion.privacy import Ledger

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


def test_only_the_owner_may_read_what_is_private_even_if_everybody_could_read_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        replace_file(path, b"new", private=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        os.umask(0o027)
        replace_file(path, b"for whom the umask lets")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)


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


# The ledger, killed

RELEASE_FOR_EVER = """
import itertools, json, os, signal, sys
from sgfusion.privacy import Ledger

fsync, fatal = os.fsync, itertools.count(1 - int(sys.argv[2]))  # the n-th fsync kills; 0: none does
os.fsync = lambda fd: fsync(fd) if next(fatal) else os.kill(os.getpid(), signal.SIGKILL)
ledger = Ledger(sys.argv[1], budget=1000.0)
for name in map(str, itertools.count()):
    print(json.dumps([name, ledger.release(name, [1.0, 2.5, 0.0], epsilon=0.125).tolist()]), flush=True)
"""


def released_until_killed(
    path: Path, *, more: int = 0, within: float = 0.0, fatal_fsync: int = 0
) -> list[list[object]]:
    """What a process printed before it was killed: by itself, or here, `within` seconds after `more` new releases."""
    known = len(Ledger(path, budget=1000.0).entries)
    command = [sys.executable, "-c", RELEASE_FOR_EVER, str(path), str(fatal_fsync)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout
        try:
            lines = [process.stdout.readline() for _ in range(known + more)]
            if not fatal_fsync:
                select.select([process.stdout], [], [], within)
                process.kill()
            lines += process.stdout.readlines()
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def check_all_is_kept(path: Path, printed: list[list[object]]) -> None:
    ledger = Ledger(path, budget=1000.0)
    kept = [[entry.name, list(entry.release)] for entry in ledger.entries]
    assert kept[: len(printed)] == printed
    assert len(kept) - len(printed) in (0, 1)  # at most the one that was on its way
    assert ledger.spent == len(kept) * 0.125


def test_a_ledger_killed_at_random_moments_has_every_release_that_left_it(tmp_path: Path) -> None:
    path, random = tmp_path / "ledger.json", Random(7)  # noqa: S311 (moments, not secrets)
    printed: list[list[object]] = []
    for _ in range(5):
        before = printed
        printed = released_until_killed(path, more=random.randint(1, 9), within=random.uniform(0, 5e-3))
        assert printed[: len(before)] == before  # handed back, not drawn again
        check_all_is_kept(path, printed)


@pytest.mark.parametrize(("fatal_fsync", "printed", "kept"), [(1, 0, 0), (7, 3, 3), (8, 3, 4)])
def test_a_ledger_killed_while_it_writes(tmp_path: Path, fatal_fsync: int, printed: int, kept: int) -> None:
    path = tmp_path / "ledger.json"
    first = released_until_killed(path, fatal_fsync=fatal_fsync)
    assert (len(first), len(Ledger(path, budget=1000.0).entries)) == (printed, kept)
    check_all_is_kept(path, first)
    check_all_is_kept(path, released_until_killed(path, more=2))  # nobody holds the lock; it goes on


def test_a_folder_that_is_made_is_fsynced_into_the_one_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger in folders that a power cut takes away would have forgotten what was spent."""
    synced = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(tmp_path / "x" / "y" / "file", b"content")
    assert {tmp_path, tmp_path / "x", tmp_path / "x" / "y"} <= synced


def test_what_a_killed_writer_left_is_swept_up(tmp_path: Path) -> None:
    others = [".ledger.json.old.12345678.sgfusion-tmp", ".ledger.json.bak", ".ledger.json.d"]
    for name in [".ledger.json.12345678.sgfusion-tmp", *others[:-1]]:
        (tmp_path / name).write_bytes(b"half an entry")
    (tmp_path / others[-1]).mkdir()
    Ledger(tmp_path / "ledger.json", budget=1).release("a", [1.0], epsilon=1)
    assert {path.name for path in tmp_path.iterdir()} == {*others, "ledger.json", "ledger.json.lock"}
