"""What the console prints when a report is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from console.formats import counted
from console.report.tables import Table


@dataclass(frozen=True)
class ReportSummary:
    """The main tables, who is first, and where the rest is. Print it with rich."""

    folder: Path
    tables: tuple[Table, ...]
    """The main table of each data set."""
    findings: tuple[str, ...]
    missing: tuple[str, ...]
    files: tuple[Path, ...]
    """Everything that was written."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Tables, findings, what is missing, and the way to the report."""
        said: set[str] = set()
        for table in self.tables:
            yield table.to_rich()
            for note in (note for note in table.notes if note not in said):  # what holds for all is said once
                yield Text(note, "dim")
            said |= {*table.notes}
        for finding in self.findings:
            yield Text(finding)
        if self.missing:
            yield Text(f"Not finished, {counted(len(self.missing), 'part')} missing:", "yellow")
            shown = self.missing[:10]
            for part in shown:
                yield Text(f"  {part}", "yellow")
            if len(self.missing) > len(shown):
                yield Text(f"  and {len(self.missing) - len(shown)} more, named in the report", "yellow")
        yield Text(f"Report: {self.folder / 'report.html'}", no_wrap=True, overflow="ignore")
