"""Files that are either the old ones or the new ones, whatever happens in between."""

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Make `content` the file at `path`, readable by its owner alone if `private`; durable when this returns.

    Written beside it, fsynced, renamed over it, and the folder fsynced: a kill or a power cut leaves the old file or
    the new one, never a part.
    """
    make_folder(path.parent)
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600 if private else 0o644)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    _fsync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make the folder and those above it, durably: a folder is an entry in the one above."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _fsync_folder(folder.parent)


def _fsync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
