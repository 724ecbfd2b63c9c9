"""Samples to predict: from an .npz or a CSV file, in the units of the run's data, scaled as that was."""

import csv
import importlib
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from device.samples import Array, Samples
from device.sources import sequences, table
from device.sources.did_you_mean import did_you_mean
from device.sources.lines import numbered
from device.sources.npz import Npz
from device.tasks.task import TASKS, Task
from sgfusion.errors import DataError
from sgfusion.runfile import RunFile

SAMPLE = "sample"
"""The column that says which rows of a CSV file are the steps of one sequence, in their order."""
BEFORE = "previous_"
"""Before the name of a feature of context."""


def read_samples(path: Path, run: RunFile, task: Task, like: Samples, *, scaled: bool) -> Samples:
    """The file's samples as the model takes them. `like` says their shape; `scaled`, that the task scales nothing."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".npz"):
        raise DataError(f"{path}: give a .csv or an .npz file")
    raw = _from_csv(path, run, like) if suffix == ".csv" else _from_npz(path, like)
    for name in ("x", "context"):
        given, wanted = getattr(raw, name), getattr(like, name)
        if wanted is not None and (given is None or given.ndim != wanted.ndim):
            letters = ["N", *(["T"] if wanted.ndim == 3 else []), "F" if name == "x" else "C"]
            shape = "nothing" if given is None else f"shape {list(given.shape)}"
            raise DataError(f"{path}: {name} has {shape}: this model needs [{', '.join(letters)}]")
    if raw.context is not None and like.context is None:
        raw = Samples(raw.x, raw.y)
    try:
        task.check(raw)
        ready = _with_own_constants(raw, run) if scaled else task.scale(raw)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if ready.x.shape[-1] != like.x.shape[-1]:
        raise DataError(f"{path}: {raw.x.shape[-1]} features: this model's samples have {like.x.shape[-1]}")
    return ready


def columns_of(run: RunFile, like: Samples) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the columns of features, and of those of context."""
    named: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    if run.data.source == "table":
        named = run.data.options_as("data", table.Options).features
    elif run.task.name in TASKS:
        module = importlib.import_module(f"device.tasks.{run.task.name}")
        named, context = getattr(module, "FEATURES", ()), getattr(module, "CONTEXT", ())
    named = named or tuple(f"x{i}" for i in range(like.x.shape[-1]))
    if like.context is None:
        return named, ()
    context = context or tuple(f"context{i}" for i in range(like.context.shape[-1]))
    return named, tuple(f"{BEFORE}{name}" for name in context)


def _from_npz(path: Path, like: Samples) -> Samples:
    x = ("N", "T", "F") if like.x.ndim == 3 else ("N", "F")
    file = Npz(str(path), {"x": (x,), "context": (("N", "T", "C"),)}, ("x",))
    context = file.numbers("context").astype(np.float32) if "context" in file else None
    values = file.numbers("x").astype(np.float32)
    return Samples(values, _no_labels(values), context)


def _from_csv(path: Path, run: RunFile, like: Samples) -> Samples:
    features, context = columns_of(run, like)
    sequences_wanted = like.x.ndim == 3
    wanted = (*([SAMPLE] if sequences_wanted else []), *features, *context)
    try:
        with path.open(newline="", encoding="utf-8-sig") as text:
            rows, lines = _rows(text)
    except FileNotFoundError as error:
        raise DataError(f"{path} is not there: give the path of a file") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is no CSV file in UTF-8: {error}") from error
    if not rows:
        raise DataError(f"{path} has no rows under its header: the columns are {', '.join(wanted)}")
    there = list(rows[0])
    for name in wanted:
        if name not in there:
            raise DataError(
                f"{path} has no column {name!r}{did_you_mean(name, there)} Give {', '.join(wanted)}; it has"
                f" {', '.join(there)}"
            )
    x = _numbers(path, rows, features, lines)
    behind = _numbers(path, rows, context, lines) if context else None
    if sequences_wanted:
        groups = _groups(path, [row[SAMPLE] for row in rows])
        x = np.stack([x[group] for group in groups])
        behind = None if behind is None else np.stack([behind[group] for group in groups])
    return Samples(x, _no_labels(x), behind)


def _rows(text: Iterable[str]) -> tuple[list[dict[str, str]], list[int]]:
    """Rows by the heading's names, None for what a short one lacks, and the lines that they begin at."""
    rows, lines, heading = [], [], None
    for line, fields in numbered(text):
        if heading is None:
            heading = fields
        else:
            rows.append(dict(zip_longest(heading, fields[: len(heading)])))
            lines.append(line)
    return rows, lines


def _groups(path: Path, names: Sequence[str]) -> list[list[int]]:
    """The rows of each sequence, in the order in which sequences begin."""
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        groups.setdefault(name, []).append(row)
    lengths = {name: len(rows) for name, rows in groups.items()}
    (first, steps), *_ = lengths.items()
    for name, length in lengths.items():
        if length != steps:
            raise DataError(f"{path}: sample {name!r} has {length} steps and {first!r} has {steps}: give all the same")
    return list(groups.values())


def _numbers(path: Path, rows: Sequence[dict[str, str]], names: Sequence[str], lines: Sequence[int]) -> Array:
    """`lines` are those that the rows begin at, as an editor counts them."""
    found = np.empty((len(rows), len(names)), np.float32)
    for number, row in enumerate(rows):
        for column, name in enumerate(names):
            try:
                found[number, column] = float(row[name])
            except (TypeError, ValueError):
                raise DataError(f"{path}: line {lines[number]} has {row[name]!r} for {name!r}: give a number") from None
    return found


def _no_labels(x: Array) -> Array:
    """What is to be predicted is not known; checks of samples ask for labels all the same."""
    return np.zeros(len(x), np.float32)


def _with_own_constants(raw: Samples, run: RunFile) -> Samples:
    """Scaled by the run file's own constants, where its source has some."""
    x, context = raw.x, raw.context
    if run.data.source == "table":
        options = run.data.options_as("data", table.Options)
        constants = np.array([options.scale.get(name, (0.0, 1.0)) for name in options.features])
        x = ((x - constants[:, 0]) / constants[:, 1]).astype(np.float32)
    elif run.data.source == "sequences":
        scale = run.data.options_as("data", sequences.Options).scale
        x = _scaled(x, np.array(scale.x))
        context = None if context is None else _scaled(context, np.array(scale.context))
    return Samples(x, raw.y, context)


def _scaled(values: Array, constants: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Array:
    if not len(constants):
        return values
    if len(constants) != values.shape[-1]:
        raise DataError(f"{values.shape[-1]} features: data.scale has constants of {len(constants)}")
    return ((values - constants[:, 0]) / constants[:, 1]).astype(np.float32)
