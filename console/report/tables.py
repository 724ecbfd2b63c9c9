"""A table once, in the four forms it is read in: CSV, Markdown, HTML and on the screen."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import rich.table
from rich.text import Text


@dataclass(frozen=True)
class Column:
    """A column to read, and the one or more columns of plain values that it is in the CSV.

    Without a heading, it is in the CSV alone.
    """

    heading: str
    keys: tuple[str, ...]
    left: bool = False


@dataclass(frozen=True)
class Cell:
    """What is read, and the plain values behind it."""

    text: str
    values: tuple[object, ...]
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """Invariant: every row has a cell for each column, and every cell a value for each of its column's keys."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            for column, cell in zip(self.columns, row, strict=True):
                if len(column.keys) != len(cell.values):
                    raise ValueError(f"{self.name}: {cell} has not the values {column.keys}")

    def to_csv(self) -> str:
        """The plain values; floats keep every bit."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([key for column in self.columns for key in column.keys])
        writer.writerows([value for cell in row for value in cell.values] for row in self.rows)
        return text.getvalue()

    def to_markdown(self) -> str:
        """The table, with its notes below."""
        columns, rows = self._read()
        lines = [
            _row([column.heading for column in columns]),
            _row([":---" if column.left else "---:" for column in columns]),
            *(_row([f"**{_plain(cell.text)}**" if cell.bold else _plain(cell.text) for cell in row]) for row in rows),
        ]
        return "\n".join(lines) + "\n" + "".join(f"\n{_plain(note)}\n" for note in self.notes)

    def to_html(self) -> str:
        """The table with its title as caption, and its notes below."""
        columns, rows = self._read()
        head = "".join(_cell("th", column, escape(column.heading)) for column in columns)
        body = "\n".join(
            "<tr>" + "".join(_cell("td", c, _bold(cell)) for c, cell in zip(columns, row, strict=True)) + "</tr>"
            for row in rows
        )
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        return (
            f'<div class="table"><table><caption>{escape(self.title)}</caption>\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table></div>{notes}\n"
        )

    def to_rich(self) -> rich.table.Table:
        """The table for a terminal."""
        columns, rows = self._read()
        table = rich.table.Table(title=self.title, title_justify="left")
        for column in columns:
            table.add_column(
                column.heading, justify="left" if column.left else "right", overflow="fold", no_wrap=not column.left
            )
        for row in rows:
            table.add_row(*(Text(cell.text, "bold green" if cell.bold else "") for cell in row))
        return table

    def _read(self) -> tuple[list[Column], list[list[Cell]]]:
        """The columns with a heading, and their cells."""
        shown = [i for i, column in enumerate(self.columns) if column.heading]
        return [self.columns[i] for i in shown], [[row[i] for i in shown] for row in self.rows]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _bold(cell: Cell) -> str:
    return f"<b>{escape(cell.text)}</b>" if cell.bold else escape(cell.text)


def _cell(tag: str, column: Column, content: str) -> str:
    return f'<{tag} class="left">{content}</{tag}>' if column.left else f"<{tag}>{content}</{tag}>"
