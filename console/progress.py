"""What a person sees of work that takes longer than two seconds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

Report = Callable[[str, int, int], None]
"""Called with a phase's name, how much of it is done, and of how much."""


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
