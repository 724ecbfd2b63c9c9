"""Who has a results folder, and what is left of it by who was refused."""

import fcntl
from pathlib import Path

import pytest

from sgfusion.errors import DataError
from simulator import held_folder
from simulator.held_folder import LOCK, held, is_held


def refuse(folder: Path, *written: str) -> None:
    def work() -> None:
        with held(folder):
            for name in written:
                (folder / name).touch()
            raise DataError("no such column")

    with pytest.raises(DataError, match="no such column"):
        work()


def test_who_is_refused_before_anything_is_written_leaves_nothing(tmp_path: Path) -> None:
    refuse(tmp_path / "results" / "b1")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "b1"
    folder.parent.mkdir()
    refuse(folder)
    assert list(tmp_path.rglob("*")) == [folder.parent]
    folder.mkdir()
    refuse(folder)
    assert list(folder.iterdir()) == []
    (folder / "notes.txt").touch()
    refuse(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    (folder / LOCK).touch()
    refuse(folder)
    assert {path.name for path in folder.iterdir()} == {"notes.txt", LOCK}


def test_what_was_written_stays(tmp_path: Path) -> None:
    refuse(tmp_path / "b1", "run.toml")
    assert {path.name for path in (tmp_path / "b1").iterdir()} == {"run.toml", LOCK}
    with held(tmp_path / "b2"):
        pass
    assert [path.name for path in (tmp_path / "b2").iterdir()] == [LOCK]


def test_a_lock_that_somebody_else_holds_stays_his(tmp_path: Path) -> None:
    folder = tmp_path / "b1"
    with held(folder):
        for _ in range(2):
            with pytest.raises(DataError, match="another sgfusion command is at work there"), held(folder):
                pass
        assert (folder / LOCK).exists()


def test_a_lock_that_was_taken_away_as_we_opened_it_keeps_out_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, tries = tmp_path / "b1", list[int]()

    class Racing:
        """The lock's last owner takes folder and lock away just before we have it."""

        LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB

        @staticmethod
        def flock(file: int, how: int) -> None:
            tries.append(how)
            if len(tries) == 1:
                (folder / LOCK).unlink()
                folder.rmdir()
            fcntl.flock(file, how)

    monkeypatch.setattr(held_folder, "fcntl", Racing)
    with held(folder):
        assert len(tries) == 2
        with pytest.raises(DataError, match="is at work there"), held(folder):
            pass


def test_a_folder_that_cannot_be_made_is_an_error_and_not_tried_for_ever() -> None:
    with pytest.raises(FileNotFoundError), held(Path("/proc/sgfusion")):
        pass


def test_who_asks_whether_it_is_held_changes_nothing_and_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_held(tmp_path / "none")
    with held(tmp_path):
        assert is_held(tmp_path)
    assert not is_held(tmp_path)
    with (tmp_path / LOCK).open() as asking:  # and just now has it
        fcntl.flock(asking, fcntl.LOCK_SH)
        monkeypatch.setattr("simulator.held_folder.time.sleep", lambda _: fcntl.flock(asking, fcntl.LOCK_UN))
        with held(tmp_path):
            assert is_held(tmp_path)


def test_a_lock_that_cannot_be_opened_is_not_said_to_be_free(tmp_path: Path) -> None:
    """It may be another user's, who is at work there. Root opens any but one that leads to itself."""
    (tmp_path / LOCK).symlink_to(LOCK)
    assert is_held(tmp_path) is None
    (tmp_path / "file").touch()
    assert is_held(tmp_path / "file") is False
