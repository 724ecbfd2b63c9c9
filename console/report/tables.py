"""A table once, in the four forms it is read in: CSV, Markdown, HTML and on the screen."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import rich.table
from rich.text import Text


@dataclass(frozen=True)
class Column:
    """A column to read, and the one or more columns of plain values that it is in the CSV.

    Without a heading, it is in the CSV alone; one in `detail` is left out on a screen, which is narrow.
    """

    heading: str
    keys: tuple[str, ...]
    left: bool = False
    detail: bool = False


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
        """The table with its title above, and its notes below."""
        columns, rows = self._read()
        lines = [
            f"**{markdown_text(self.title)}**\n",
            _row([column.heading for column in columns]),
            _row([":---" if column.left else "---:" for column in columns]),
            *(
                _row([f"**{markdown_text(cell.text)}**" if cell.bold else markdown_text(cell.text) for cell in row])
                for row in rows
            ),
        ]
        return "\n".join(lines) + "\n" + "".join(f"\n{markdown_text(note)}\n" for note in self.notes)

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
        """The table for a terminal, where numbers keep to one line, and headings and names give way."""
        columns, rows = self._read()
        table = rich.table.Table(title=self.title, title_justify="left")
        shown = [i for i, column in enumerate(columns) if not column.detail]
        for column, cells in ((columns[i], [row[i] for row in rows]) for i in shown):
            width = max((len(cell.text) for cell in cells), default=0)
            if column.left:
                table.add_column(column.heading, overflow="fold", min_width=min(width, 20))
            else:
                width = max(width, *map(len, column.heading.split()))
                table.add_column(column.heading, justify="right", width=width)
        for row in rows:
            table.add_row(*(Text(row[i].text, "bold green" if row[i].bold else "") for i in shown))
        return table

    def _read(self) -> tuple[list[Column], list[list[Cell]]]:
        """The columns with a heading, and their cells."""
        shown = [i for i, column in enumerate(self.columns) if column.heading]
        return [self.columns[i] for i in shown], [[row[i] for i in shown] for row in self.rows]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def markdown_text(text: str) -> str:
    """The text with what Markdown would read as its own escaped."""
    return re.sub(r"([|*_`<>\[\]\\])", r"\\\1", text)


def _bold(cell: Cell) -> str:
    return f"<b>{escape(cell.text)}</b>" if cell.bold else escape(cell.text)


def _cell(tag: str, column: Column, content: str) -> str:
    return f'<{tag} class="left">{content}</{tag}>' if column.left else f"<{tag}>{content}</{tag}>"
