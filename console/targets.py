"""Where the metrics of a local cluster's processes are: a file that Prometheus reads by `file_sd_configs`.

A process is listed from when it first said where, until the cluster stops: one that has ended is a target that is down,
and that is what an alert is about. Started anew it has another port, and goes by the same name.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from sgfusion.durable import replace_file
from sgfusion.wire.service import METRICS, announced

FILE = "targets.json"
JOB = "sgfusion"
"""The label `job` of all that we have Prometheus read."""
EVERY = 0.5
"""Seconds between two looks at who has said what."""


def file_of(joined: str) -> str:
    """The list of a zone that joined, beside that of the cluster: each has one writer."""
    return f"targets-{joined}.json"


class Targets:
    """The file, and the folders in which processes say where their metrics are, by their names."""

    def __init__(self, path: Path, run: str, folders: Mapping[str, Path]) -> None:
        self._path, self._run, self._folders = path, run, folders
        self._known: dict[str, str] = {}
        self._looked = -EVERY

    def look(self) -> None:
        """Write the file anew if somebody is new, or elsewhere; not all of them are asked every time."""
        if time.monotonic() - self._looked < EVERY:
            return
        self._looked = time.monotonic()
        found = {name: announced(folder, METRICS) for name, folder in self._folders.items()}
        news = {name: url for name, url in found.items() if url is not None and self._known.get(name) != url}
        if news:
            self._known.update(news)
            self._write([self._target(name, url) for name, url in sorted(self._known.items())])

    def forget(self) -> None:
        """The cluster has stopped, or has not started: there is nobody, whatever one that was killed has left."""
        self._known.clear()
        for folder in self._folders.values():
            (folder / METRICS).unlink(missing_ok=True)
        self._write([])

    def _target(self, name: str, url: str) -> dict[str, object]:
        tier = "device" if name.startswith("devices-") else name.partition("-")[0]
        labels = {"job": JOB, "instance": name, "tier": tier, "run": self._run}
        return {"targets": [urlsplit(url).netloc], "labels": labels}

    def _write(self, targets: list[dict[str, object]]) -> None:
        replace_file(self._path, (json.dumps(targets, indent=1) + "\n").encode())
