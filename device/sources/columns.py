"""Named columns of a Parquet or CSV file, as numpy arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from device.sources.did_you_mean import did_you_mean
from device.sources.extras import optional
from device.sources.grouped import Names
from device.sources.lines import line_of
from device.sources.missing import no_such_file
from device.sources.neighbours import Floats
from device.sources.no_number import no_number, remedy
from device.sources.sieve import Mask
from device.sources.times import iso_times
from sgfusion.errors import DataError

TEXTS = ("data.device", "data.zone")
"""The keys whose columns are text in a CSV file, whatever it looks like: `007` is not `7`, and Namibia is `NA`."""


class Columns:
    """The columns of a file; `columns` has each that is read, and the key of the run file that names it."""

    def __init__(self, path: str, columns: dict[str, str]) -> None:
        self._path, self._arrow = path, optional("pyarrow")
        readers = {".parquet": self._parquet, ".csv": self._csv}
        if Path(path).suffix.lower() not in readers:
            raise DataError(f"data.path = {path!r}: give a .parquet or a .csv file")
        try:
            self._data = readers[Path(path).suffix.lower()](columns)
        except FileNotFoundError as error:
            raise no_such_file(path) from error
        except (OSError, self._arrow.ArrowException, UnicodeDecodeError) as error:
            foreign = isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error)
            advice = ": save it as UTF-8" if foreign else ""
            # Arrow's words repeat the row that it cannot read.
            raise DataError(f"data.path = {path!r} cannot be read: {error}{advice}", shows=str(error)) from error
        self.rows: int = self._data.num_rows

    def _parquet(self, columns: dict[str, str]) -> Any:
        with optional("pyarrow.parquet").ParquetFile(self._path) as file:
            self._check(columns, file.schema_arrow.names)
            return file.read(columns=list(columns))

    def _csv(self, columns: dict[str, str]) -> Any:
        csv = optional("pyarrow.csv")
        with Path(self._path).open("rb") as text:
            header = text.readline()
        if b";" in header and b"," not in header:  # one column, and a label and a feature are two
            raise DataError(
                f"data.path = {self._path!r} is separated by ';': save it with commas, and numbers with a decimal point"
            )
        with csv.open_csv(self._path) as file:
            self._check(columns, file.schema.names)
        as_text = {name: self._arrow.string() for name, key in columns.items() if key in TEXTS}
        convert = csv.ConvertOptions(include_columns=list(columns), column_types=as_text)
        table = csv.read_csv(self._path, convert_options=convert)
        for field in table.schema:
            if self._arrow.types.is_binary(field.type):  # what Arrow takes text for that is not UTF-8
                raise DataError(f"column {field.name!r} of {self._path} is not UTF-8: save the file as UTF-8")
        return table

    def _check(self, columns: dict[str, str], there: list[str]) -> None:
        for name, key in columns.items():
            if there.count(name) > 1:
                raise DataError(f"{key}: {self._path} has {there.count(name)} columns {name!r}: rename one")
            if name not in there:
                meant = did_you_mean(name, there)
                shown = ", ".join(there[:30]) + (", …" if len(there) > 30 else "")
                raise DataError(f"{key}: {self._path} has no column {name!r}{meant} Its columns: {shown}")

    def numbers(self, name: str, what: str) -> Floats:
        """The column as numbers, NaN where there is none."""
        column, types = self._data.column(name), self._arrow.types
        kind = column.type
        if not any(
            is_kind(kind)
            for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        ):
            row, value = no_number(column) or (0, None)
            example = f", such as {value!r} in {self.where(row)}" if row else ""
            advice = remedy(value) + (", classes as 0, 1, 2, …" if what == "label" else "")
            raise DataError(
                f"{what} column {name!r} of {self._path} has values of type {kind}{example}: {advice}",
                shows=repr(value) if row else "",
            )
        numbers: Floats = column.cast(self._arrow.float64(), safe=False).to_numpy()
        return numbers

    def where(self, row: int) -> str:
        """The row, from 1, as who opens the file finds it: an editor counts the heading and empty lines too."""
        line = None if Path(self._path).suffix.lower() == ".parquet" else line_of(self._path, row)
        return f"row {row}" if line is None else f"line {line}"

    def text(self, name: str) -> Names:
        """The column as text, "" where there is none."""
        column = self._data.column(name)
        if self._arrow.types.is_floating(column.type):
            compute = optional("pyarrow.compute")
            column = compute.if_else(compute.is_finite(column), column, None)
        try:
            column = column.cast(self._arrow.string())
        except self._arrow.ArrowException as error:
            raise DataError(f"column {name!r} of {self._path} has values of type {column.type}: give text") from error
        return np.array(["" if value is None else value for value in column.to_pylist()], np.str_)

    def times(self, name: str) -> tuple[npt.NDArray[Any], Mask]:
        """The column as numbers to sort by, and where there is none."""
        column, types = self._data.column(name), self._arrow.types
        if types.is_temporal(column.type):
            missing = column.is_null().to_numpy()
            integer = self._arrow.int32() if column.type.bit_width == 32 else self._arrow.int64()
            return column.cast(integer).fill_null(0).to_numpy(), missing
        if types.is_integer(column.type):  # exact: nanoseconds are beyond what floats tell apart
            return column.fill_null(0).to_numpy(), column.is_null().to_numpy()
        if types.is_floating(column.type) or types.is_decimal(column.type) or types.is_null(column.type):
            numbers = self.numbers(name, "time")
            return numbers, np.isnan(numbers)
        texts = self.text(name)
        return iso_times(texts.tolist(), f"time column {name!r} of {self._path}"), texts == ""
