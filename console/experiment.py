"""`sgfusion experiment`: a suite of methods, seeds and data, from the jobs to the report."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from console.progress import JobBars, QuietBars, phases, told
from sgfusion.durable import replace_file
from sgfusion.errors import MissingDependencyError, RunFileError, brought_by
from simulator.checks import check_suite
from simulator.jobs import WorldKey, survey_suite, train_suite
from simulator.pool import ProcessPool, cores
from simulator.ray_backend import RayPool
from simulator.suite import Suite, load_suite
from simulator.suite_folder import Settled, SuiteFolder, Survey, name_of
from simulator.work import Pool, ThisProcess

Backend = Literal["process", "ray"]


@dataclass(frozen=True)
class Asked:
    """What the command line says of the suite: file, overrides, the part of it that is wanted, and where to."""

    path: Path
    overrides: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    entries: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    out: Path | None = None

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
        words += [] if self.out is None else ["--out", str(self.out)]
        return shlex.join(words)


def experiment(asked: Asked, start: Callable[[], Pool], screen: Console) -> bool:
    """Do what is left of the suite with the pool of `start`, write and print the report; whether all is finished."""
    _check_report_can_be_made()
    suite = asked.load()
    book = SuiteFolder(asked.out or Path("results") / suite.name)
    with book.hold():
        pool = start()  # before anything is set aside: there may be no pool
        try:
            for note in (*suite.notes, *_on_settings(book.settle(suite), book.set_aside)):
                screen.print(Text(f"note: {note}"), soft_wrap=True)
            with QuietBars(screen) as bars:
                surveys, unread = survey_suite(suite, book, pool, bars)
            _tell(unread, screen)  # once, before what may take hours
            untrained: dict[str, str] = {}
            if surveys:
                notes = _notes(suite, surveys, check_suite(suite, surveys))
                for note in (f"{data}: {note}" for data, said in notes.items() for note in said):
                    screen.print(Text(f"note: {note}"), soft_wrap=True)  # before training, to end it in time
                replace_file(book.folder / "suite.json", _described(suite, surveys, notes, asked.command))
                with JobBars(screen) as bars:
                    untrained = train_suite(suite, surveys, book, pool, bars)
                book.check_unchanged(suite)
        finally:
            pool.close()
        if surveys:
            _report(book.folder, screen)
    _tell(untrained, screen)
    if unread or untrained:
        screen.print("Once that is mended, the same command does what failed; finished jobs are kept.", highlight=False)
    return not (unread or untrained)


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
    return ThisProcess() if workers == 1 else ProcessPool(workers)


def _check_report_can_be_made() -> None:
    """Hours of training come before the report: what it lacks is said before them."""
    for package in ("matplotlib", "scipy"):
        if find_spec(package) is None:
            raise MissingDependencyError(f"the report needs {package}: {brought_by('experiments')}")


def _on_settings(settled: Settled, place: Path) -> Iterator[str]:
    """What became of earlier outcomes: a note for all runs together, for there may be hundreds."""
    again = [name_of(key) for key in settled.set_aside if key not in settled.taken_back]
    back = [name_of(key) for key in settled.taken_back]
    if again:
        whose = "its" if len(again) == 1 else "their"
        yield (
            f"the settings, code or data of {_first(again)} have changed: {whose} jobs are done again;"
            f" earlier outcomes are in {place}"
        )
    if back:
        yield (
            f"outcomes of {_first(back)} with these settings, code and data were in {place}: they are taken back, and"
            " any that were in their place are there now"
        )


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _notes(suite: Suite, surveys: Mapping[WorldKey, Survey], on_draws: Mapping[str, str]) -> dict[str, list[str]]:
    """By data, each note once: most are those of every seed."""
    found = {data: [s.notes for (name, _), s in surveys.items() if name == data] for data in suite.data}
    for data, note in on_draws.items():
        found[data].append((note,))
    return {data: list(dict.fromkeys(note for notes in each for note in notes)) for data, each in found.items()}


def _described(
    suite: Suite, surveys: Mapping[WorldKey, Survey], notes: Mapping[str, Sequence[str]], command: str
) -> bytes:
    """`suite.json`."""
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
        "notes": notes,
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
