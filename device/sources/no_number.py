"""The value that keeps a column from being numbers, and what to do about it."""

import re
from bisect import bisect_left
from typing import Any

from device.sources.extras import optional

DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


def no_number(column: Any) -> tuple[int, object] | None:
    """A value and its row, from 1: the first text that is no number, else the first there is. None: all are missing."""
    there, types = column.is_valid().to_numpy(), optional("pyarrow").types
    if not there.any():
        return None
    row = int(there.argmax())
    if types.is_string(column.type) or types.is_large_string(column.type):
        text = _first_text(column)
        row = text if text < len(column) else row  # a Parquet file may have numbers as text
    return row + 1, column[row].as_py()


def _first_text(column: Any) -> int:
    """Where the first is that Arrow, which chose the column's type, takes for no number; the length if nowhere."""
    arrow, compute = optional("pyarrow"), optional("pyarrow.compute")
    texts = compute.utf8_trim_whitespace(column)
    missing = arrow.array(optional("pyarrow.csv").ConvertOptions().null_values, column.type)
    texts = compute.if_else(compute.is_in(texts, value_set=missing), None, texts)

    def numbers(count: int) -> bool:
        try:
            texts.slice(0, count).cast(arrow.float64())
        except arrow.ArrowInvalid:
            return False
        return True

    # Some twenty casts find it among a million: to try them one by one takes seconds.
    return bisect_left(range(len(texts)), 1, key=lambda row: not numbers(row + 1))


def remedy(value: object) -> str:
    """What to give instead."""
    comma = isinstance(value, str) and DECIMAL_COMMA.fullmatch(value)
    return "give numbers" + (", with a decimal point" if comma else "")
