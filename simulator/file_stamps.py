"""Which files a run names, and whether they have changed."""

import json
from collections.abc import Collection
from pathlib import Path

from sgfusion.runfile import RunFile
from sgfusion.runfile_document import PATHS


def file_stamps(run: RunFile, sections: Collection[str] = RunFile.model_fields) -> str:
    """The files that those sections of the run name, each with its size and time: changed data is other data."""
    document = run.model_dump(by_alias=True)
    named = [document[section].get(key) for section, key in PATHS if section in sections]
    return json.dumps({path: _stamp(Path(path)) for path in named if isinstance(path, str)})


def _stamp(path: Path) -> list[int] | None:
    try:
        state = path.stat()
    except OSError:
        return None  # who reads it will say what is wrong
    return [state.st_size, state.st_mtime_ns]
