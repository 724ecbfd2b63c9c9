"""What a person sees of work that takes longer than two seconds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from console.formats import counted
from sgfusion.reports import duration
from simulator.work import Work

Report = Callable[[str, int, int], None]
"""Called with a phase's name, how much of it is done, and of how much."""

QUIET = 60.0
"""Seconds without a terminal after which a line says how far it is, even if that is not a tenth further."""
MOST_NAMED = 5
"""Jobs named of those that failed for one reason."""


@contextmanager
def phases(screen: Console) -> Iterator[Report]:
    """A bar for each phase, with the time left; where there is no terminal, a line as each begins."""
    columns = (TextColumn("{task.description:20}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def report(phase: str, done: int, of: int) -> None:
            if phase not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, completed=bars.tasks[earlier].total)
                tasks[phase] = bars.add_task(phase, total=of)
                if not screen.is_terminal:
                    screen.print(f"{phase} ...", highlight=False)
            bars.update(tasks[phase], completed=done, total=of)

        yield report


class JobBars:
    """A bar over all jobs with the time left, and one for each that is under way.

    Where there is no terminal: a line at every tenth, and after `QUIET` seconds without one.
    """

    def __init__(self, screen: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"))
        self._bars = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
        self._reasons: set[str] = set()
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def stage(self, title: str, works: Sequence[Work], finished: int) -> None:
        """A stage begins: a fresh bar."""
        for row in self._bars.task_ids:
            self._bars.remove_task(row)
        self._rows = {}
        self._title, self._jobs, self._finished, self._before = title, len(works) + finished, finished, finished
        self._total, self._done = sum(work.cost for work in works), 0.0
        self._parts: dict[str, float] = {}
        self._began = self._said = self._clock()
        self._tenth, self._note = 0, ""
        self._all = self._bars.add_task(title, total=self._total or 1.0, note="")
        already = f", {finished:,} finished earlier" if finished else ""
        if not self._screen.is_terminal:
            self._screen.print(f"{title}: {counted(self._jobs, 'job')}{already} ...", highlight=False)
        self._show()

    def started(self, work: Work) -> None:
        """A row for it."""
        self._rows[work.name] = self._bars.add_task(f"  {work.name}", total=1.0, note="")

    def advanced(self, work: Work, done: int, of: int) -> None:
        """Its share counts towards the whole."""
        self._parts[work.name] = work.cost * done / max(of, 1)
        self._bars.update(self._rows[work.name], completed=done, total=of)
        self._show()

    def finished(self, work: Work, _result: str) -> None:
        """Its row goes."""
        self._finished += 1
        self._end(work)

    def failed(self, work: Work, reason: str) -> None:
        """Said at once, but each reason only once: what fails for one zone often fails for all."""
        if reason not in self._reasons:
            self._reasons.add(reason)
            said = last_line(reason)
            self._screen.print(Text.assemble(("failed: ", "red"), f"{work.name}: {said}"), soft_wrap=True)
        self._end(work)

    def _end(self, work: Work) -> None:
        self._done += work.cost
        self._parts.pop(work.name, None)
        if work.name in self._rows:
            self._bars.remove_task(self._rows.pop(work.name))
        self._show()

    def _show(self) -> None:
        done = self._done + sum(self._parts.values())
        share = done / self._total if self._total else 1.0
        elapsed = self._clock() - self._began
        left = f", {duration(elapsed * (1 - share) / share)} left" if share > 0 and share < 1 and elapsed > 1 else ""
        note = f"{self._finished:,} of {counted(self._jobs, 'job')}{left}"
        self._bars.update(self._all, completed=done if self._total else 1.0, note=note)
        tenth, now = min(int(share * 10 + 1e-9), 9 if self._parts or self._rows else 10), self._clock()
        further = tenth > self._tenth and note != self._note  # jobs that fail at once bring nothing new to say
        if self._screen.is_terminal or not (further or now - self._said >= QUIET):
            return
        self._tenth, self._said, self._note = tenth, now, note
        self._screen.print(f"{self._title}: {note}", highlight=False)


class QuietBars(JobBars):
    """Bars of work whose failures are told together, once it is over."""

    def failed(self, work: Work, reason: str) -> None:  # noqa: ARG002 (who collects failures tells it)
        """Its row goes."""
        self._end(work)


def told(failures: Mapping[str, str]) -> str:
    """Which jobs failed and why, a reason once: what fails for one zone often fails for all."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in failures.items():
        by_reason.setdefault(reason, []).append(name)
    lines = []
    for reason, names in by_reason.items():
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        lines.append(f"{', '.join(names[:MOST_NAMED])}{more}: {reason}")
    return "\n".join(lines)


def last_line(reason: str) -> str:
    """The line of a traceback that says what it was."""
    return reason.splitlines()[-1] if reason.startswith("Traceback") else reason
