"""Where in a CSV file a row stands, as an editor counts lines: where it begins, for a quoted value may have several."""

import csv
from collections.abc import Iterable, Iterator


def numbered(text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The fields of the heading and of each row, after the line that they begin at. Empty lines are left out."""
    reader, begins = csv.reader(text), 1
    for fields in reader:
        if fields:
            yield begins, fields
        begins = reader.line_num + 1


def line_of(path: str, row: int) -> int | None:
    """The line of a row, from 1 both; the heading is no row. None in a file whose fields are too long for Python, if
    not for Arrow. Read again for it, up to there: only errors and notes on faults ask.
    """
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as text:  # noqa: PTH123 (Path adds nothing)
        try:
            return next((line for seen, (line, _) in enumerate(numbered(text)) if seen == row), None)
        except csv.Error:
            return None
