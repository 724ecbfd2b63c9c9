"""Which files a run names, and whether they have changed."""

import json
from pathlib import Path

from sgfusion.runfile import PATHS, RunFile


def file_stamps(run: RunFile) -> str:
    """The files that the run names, each with its size and time: who has changed data since has another world."""
    document = run.model_dump(by_alias=True)
    named = [document[section].get(key) for section, key in PATHS]
    return json.dumps({path: _stamp(Path(path)) for path in named if isinstance(path, str)})


def _stamp(path: Path) -> list[int] | None:
    try:
        state = path.stat()
    except OSError:
        return None  # who reads it will say what is wrong
    return [state.st_size, state.st_mtime_ns]
