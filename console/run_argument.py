"""The run file that a command is given."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgfusion.errors import RunFileError
from sgfusion.runfile import RunFile, checked, load_run_file
from sgfusion.runfile_document import load_document


def load_one_run(path: Path, overrides: Sequence[str]) -> RunFile:
    """The run file; a suite file is refused by name."""
    refuse_suite(path, load_document(path, overrides))
    return load_run_file(path, overrides)


def refuse_suite(path: Path, document: Mapping[str, Any]) -> None:
    """A suite has a run file and seeds in place of a run's own keys."""
    if {"run", "seeds"} <= document.keys():
        raise RunFileError(f"{path} is a suite file: give it to sgfusion experiment, or give a run file here")


def with_zone(run: RunFile, zone: str) -> RunFile:
    """The run with a zone that joined later: it comes after all others, as the cloud numbers it."""
    if not run.zones.names or zone in run.zones.names:
        return run
    document = run.model_dump(by_alias=True, exclude_none=True)
    document["zones"]["names"] = [*run.zones.names, zone]
    return checked(RunFile, document, f"run {run.name!r} with zone {zone!r}")
