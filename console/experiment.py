"""`sgfusion experiment`: a suite of methods, seeds and data, from the jobs to the report."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from console.progress import JobBars, phases, told
from sgfusion.durable import replace_file
from sgfusion.errors import MissingDependencyError, RunFileError
from simulator.jobs import World, survey_suite, train_suite
from simulator.pool import ProcessPool, cores
from simulator.ray_backend import RayPool
from simulator.suite import Suite, load_suite
from simulator.suite_folder import SuiteFolder, Survey, name_of
from simulator.work import InProcess, Pool

Backend = Literal["process", "ray"]


@dataclass(frozen=True)
class Asked:
    """What the command line says of the suite: the file, the overrides, and the part of it that is wanted."""

    path: Path
    overrides: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    entries: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    def load(self) -> Suite:
        """The suite, with every run resolved."""
        return load_suite(self.path, self.overrides, seeds=self.seeds, entries=self.entries, data=self.data)

    @property
    def command(self) -> str:
        """The command that gives these results, whatever number of workers."""
        words = ["sgfusion", "experiment", str(self.path)]
        for override in self.overrides:
            words += ["--set", override]
        parts: dict[str, Sequence[object]] = {"--seeds": self.seeds, "--entries": self.entries, "--data": self.data}
        for option, names in parts.items():
            words += [option, ",".join(map(str, names))] if names else []
        return shlex.join(words)


def experiment(asked: Asked, folder: Path | None, start: Callable[[], Pool], screen: Console) -> bool:
    """Do what is left of the suite with the pool of `start`, write and print the report; whether all is finished."""
    _check_report_can_be_made()
    suite = asked.load()
    book = SuiteFolder(folder or Path("results") / suite.name)
    with book.hold():
        pool = start()  # before anything is removed: there may be no pool
        try:
            for key in book.settle(suite):
                screen.print(Text(f"note: the settings of {name_of(key)} have changed: its jobs are done again"))
            with JobBars(screen) as bars:
                surveys, failures = survey_suite(suite, book, pool, bars)
                if surveys:
                    replace_file(book.folder / "suite.json", _described(suite, surveys, asked.command))
                    failures |= train_suite(suite, surveys, book, pool, bars)
        finally:
            pool.close()
        if surveys:
            _report(book.folder, screen)
    _tell(failures, screen)
    return not failures


def make_pool(backend: Backend, workers: int | None, address: str | None) -> Pool:
    """The pool that the command line asks for; all cores by default."""
    if address is not None and backend != "ray":
        raise RunFileError(f"--address {address!r} is that of a Ray cluster: give --backend ray too")
    if address is not None and workers is not None:
        raise RunFileError(
            f"--workers {workers}: the cluster at --address {address!r} takes a job on each of its CPUs. Leave one out"
        )
    workers = workers or cores()
    if backend == "ray":
        return RayPool(address, workers)
    return InProcess() if workers == 1 else ProcessPool(workers)


def _check_report_can_be_made() -> None:
    """Hours of training come before the report: what it lacks is said before them."""
    for package in ("matplotlib", "scipy"):
        if find_spec(package) is None:
            raise MissingDependencyError(f"the report needs {package}: pip install 'sgfusion[experiments]'")


def _described(suite: Suite, surveys: Mapping[World, Survey], command: str) -> bytes:
    """`suite.json`."""
    notes = {data: [s.notes for (name, _), s in surveys.items() if name == data] for data in suite.data}
    document: dict[str, Any] = {
        "name": suite.name,
        "task": suite.task,
        "metric": next(iter(surveys.values())).metric,
        "data": list(suite.data),
        "seeds": list(suite.seeds),
        "entries": [
            {"name": entry.name, "method": entry.method, "set": dict(entry.set), "title": entry.title}
            for entry in suite.entries
        ],
        "reference": suite.reference,
        "notes": {data: list(dict.fromkeys(note for each in found for note in each)) for data, found in notes.items()},
        "synthetic": [d for d in suite.data if any(s.synthetic for (name, _), s in surveys.items() if name == d)],
        "command": command,
    }
    return (json.dumps(document, indent=1, default=str) + "\n").encode()


def _report(folder: Path, screen: Console) -> None:
    from console.report import write_report  # noqa: PLC0415 (matplotlib, and only once there is something to report)

    with phases(screen) as progress:
        written = write_report(folder, progress)
    screen.print(written)


def _tell(failures: Mapping[str, str], screen: Console) -> None:
    if failures:
        screen.print(Text.assemble((f"{len(failures)} failed\n", "red"), told(failures)), soft_wrap=True)
        screen.print("Once that is mended, the same command does what failed; finished jobs are kept.", highlight=False)
