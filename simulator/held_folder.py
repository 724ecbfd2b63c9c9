"""A results folder that one process has at a time, by a lock in it."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sgfusion.durable import make_folder
from sgfusion.errors import DataError

LOCK = ".lock"
MOST_MISSED = 100
"""Times that a folder may vanish under us: one that is never there cannot be made."""
MOST_REFUSED, APART = 3, 0.02
"""Tries, and seconds between them: whoever asks `is_held` has it for a moment."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep the folder against a second process; it is made if there is none.

    What ends in an error and has left nothing there leaves no lock of its own either, nor folders that it made.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    before = _names(folder)
    with _locked(folder):
        try:
            yield
        except BaseException:
            if LOCK not in before and _names(folder) == before | {LOCK}:
                _remove(folder, made)
            raise


def is_held(folder: Path) -> bool | None:
    """Whether some process has it now. None: that cannot be seen, as where the lock is another user's alone."""
    try:
        with (folder / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (FileNotFoundError, NotADirectoryError):  # no lock: nobody has ever had it
        return False
    except OSError:
        return None
    return False


def _locked(folder: Path) -> IO[str]:
    """The lock, which is ours as long as it is open: the kernel gives it back if this process is killed."""
    missed = refused = 0
    while True:
        try:
            make_folder(folder)
            file = (folder / LOCK).open("w")
        except FileNotFoundError:  # its last owner takes the folder away
            missed += 1
            if missed == MOST_MISSED:
                raise
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat()):
                return file
        except BlockingIOError:
            file.close()
            refused += 1
            if refused < MOST_REFUSED:
                time.sleep(APART)
                continue
            raise DataError(
                f"{folder}: another sgfusion command is at work there. Wait for it, or give another --out"
            ) from None
        except FileNotFoundError:
            pass
        file.close()  # its last owner took it away after we had opened it: it keeps out nobody


def _remove(folder: Path, made: list[Path]) -> None:
    """The lock first, while it is ours: who opens it from now on opens another. Then the folders, as far as empty."""
    with suppress(OSError):
        (folder / LOCK).unlink()
        for each in made:
            each.rmdir()


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
