"""The results folder that a command is given."""

from pathlib import Path

from sgfusion.errors import DataError


def refuse_absent(folder: Path, kind: str = "folder") -> None:
    """A mistyped name, or a command typed elsewhere than it should be: said before what the folder lacks."""
    if not folder.exists():
        here = "" if folder.is_absolute() else f" (here is {Path.cwd()})"
        raise DataError(f"there is no {kind} {folder}{here}")
