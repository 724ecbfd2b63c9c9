"""What workers of one run of tests share is made once, and anew if that failed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.sharing import made_once


def note(folder: Path) -> None:
    with (folder.parent / "calls").open("a") as calls:
        calls.write("made\n")
    (folder / "note").write_text("here")


def test_of_many_who_want_it_at_once_one_makes_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: made_once(tmp_path, "notes", note) / "note", range(6)))
    assert [path.read_text() for path in found] == ["here"] * 6
    assert (tmp_path / "calls").read_text() == "made\n"


def test_what_failed_is_begun_anew_in_a_folder_of_its_own(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        made_once(tmp_path, "notes", fail)
    made = made_once(tmp_path, "notes", note)
    assert [path.name for path in made.iterdir()] == ["note"]
    assert made_once(tmp_path, "notes", fail) == made
