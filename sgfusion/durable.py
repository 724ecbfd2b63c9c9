"""Files that are either the old ones or the new ones, whatever happens in between."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path

UNFINISHED = ".sgfusion-tmp"


def replace_file(path: Path, content: bytes | Iterable[bytes | memoryview], *, private: bool = False) -> None:
    """Make `content`, whole or in pieces, the file at `path`; durable when this returns.

    Readable by its owner alone if `private`. Written beside it, fsynced, renamed over it, and the folder fsynced: a
    kill or a power cut leaves the old file or the new one, never a part.
    """
    make_folder(path.parent)
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}{UNFINISHED}")
    try:
        # Opened, not made by tempfile: so a file for everyone has the permissions that the umask leaves it.
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(descriptor, "wb") as file:
            for piece in (content,) if isinstance(content, bytes) else content:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def sweep_unfinished(path: Path) -> None:
    """Remove what killed writers of `path` left beside it; only while no other writes it."""
    for left_over in path.parent.glob(f".{glob.escape(path.name)}.????????{UNFINISHED}"):
        left_over.unlink()


def make_folder(path: Path) -> None:
    """Make the folder and those above it, durably: a folder is an entry in the one above."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        fsync_folder(folder.parent)


def fsync_folder(path: Path) -> None:
    """Make what was last renamed in the folder durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
