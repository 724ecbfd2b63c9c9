"""What `sgfusion simulate` keeps in its results folder until the results are there.

::

    unfinished/<fingerprint>/run.toml       the run, resolved
                            /<zone>.json    a finished job's result; _all.json for a method with central models
              /models.json                  the models that are about to be written

Until all jobs are finished, the results beside it are those of the last run, whole. Killed and started again, a run
reads its finished jobs back; the folder goes when the results are written.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from sgfusion.durable import UNFINISHED, fsync_folder, replace_file
from sgfusion.runfile import RunFile
from simulator.suite_folder import fingerprint

WRITTEN = ("run.toml", "dendrogram.json", "dendrogram.png", "rounds.jsonl", "zones.json")
"""Besides the models and `summary.json`."""


class UnfinishedRun:
    """The finished jobs of a run in a results folder; use it in a `with`, under `SuiteFolder.hold`."""

    def __init__(self, folder: Path, run: RunFile, method: str) -> None:
        self._folder = folder
        self._all = folder / "unfinished"
        self._jobs = self._all / fingerprint(run, method).strip()
        replace_file(self._jobs / "run.toml", run.to_toml().encode())  # a folder one cannot write to is found out now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """What failed before any job was finished leaves nothing to go on from."""
        if not any(self._jobs.glob("*.json")):
            shutil.rmtree(self._jobs, ignore_errors=True)
            with suppress(OSError):  # another run's jobs are in it, or it is gone
                self._all.rmdir()

    def result(self, zone: str | None) -> dict[str, Any] | None:
        """The result of the zone's job, if it was finished and can be read."""
        try:
            result: dict[str, Any] = json.loads(self._job(zone).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return result

    def keep(self, zone: str | None, result: str) -> None:
        """The job is finished."""
        replace_file(self._job(zone), result.encode())

    def make_way(self, models: Iterable[str]) -> None:
        """Remove the last run's results, before these models and the rest are written: at no time are both there.

        What was removed or written half when this process is killed is known to the next one by `summary.json`, which
        goes last and comes last, and by `models.json`. What else lies in the folder is not ours to remove.
        """
        places = (self._folder, self._folder / "models")
        for place in places:
            for left_over in place.glob(f".*{UNFINISHED}"):
                left_over.unlink()
        for name in self._last_models():
            path = self._folder / "models" / f"{name}.safetensors"
            if path.parent == self._folder / "models":
                path.unlink(missing_ok=True)
        for name in WRITTEN:
            (self._folder / name).unlink(missing_ok=True)
        for place in places:
            if place.exists():
                fsync_folder(place)
        (self._folder / "summary.json").unlink(missing_ok=True)
        replace_file(self._all / "models.json", json.dumps({"models": list(models)}).encode())

    def remove(self) -> None:
        """The results are written: forget how they came about."""
        shutil.rmtree(self._all)

    def _job(self, zone: str | None) -> Path:
        return self._jobs / f"{zone or '_all'}.json"

    def _last_models(self) -> Iterator[str]:
        for path in (self._folder / "summary.json", self._all / "models.json"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                yield from map(str, json.loads(path.read_bytes())["models"])
