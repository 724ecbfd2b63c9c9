"""Which files a run names, whether they are there, and whether they have changed."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from device.sources.missing import no_such_file
from sgfusion.runfile import RunFile
from sgfusion.runfile_document import PATHS


def file_stamps(run: RunFile, sections: Collection[str] = RunFile.model_fields) -> str:
    """The files that those sections of the run name, each with its size and time: changed data is other data."""
    return json.dumps({path: _stamp(Path(path)) for path in _named(run, sections).values()})


def check_files(run: RunFile) -> None:
    """Refuse a run that names a file which is not there; what a source of your own means by its path, it knows."""
    for key, path in _named(run, RunFile.model_fields).items():
        own = key == "data.path" and ":" in run.data.source
        if not own and not Path(path).exists():
            raise no_such_file(path, key)


def _named(run: RunFile, sections: Collection[str]) -> Mapping[str, str]:
    document = run.model_dump(by_alias=True)
    named = {f"{section}.{key}": document[section].get(key) for section, key in PATHS if section in sections}
    return {key: path for key, path in named.items() if isinstance(path, str)}


def _stamp(path: Path) -> list[int] | None:
    try:
        state = path.stat()
    except OSError:
        return None  # who reads it will say what is wrong
    return [state.st_size, state.st_mtime_ns]
