"""The privacy ledger's file: entries in JSON, with a checksum over them, behind a lock (method 1)."""

import fcntl
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from sgfusion.durable import make_folder, replace_file, sweep_unfinished
from sgfusion.errors import LedgerCorruptError

FORMAT = "sgfusion.ledger/1"


@dataclass(frozen=True)
class Entry:
    """One release: its name, its price, the adjacency the price is for, and what was released."""

    name: str
    epsilon: float
    adjacency: str
    release: tuple[float, ...]


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The entries in the order of their release; none if there is no file yet."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise _corrupt(path, str(error)) from error
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise _corrupt(path, f"its format is {document['format']!r}, not {FORMAT!r}")
        if document["sha256"] != _digest(document["entries"]):
            raise _corrupt(path, "its entries do not have the checksum that stands beside them")
        entries = tuple(
            Entry(str(row["name"]), float(row["epsilon"]), str(row["adjacency"]), tuple(map(float, row["release"])))
            for row in document["entries"]
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise _corrupt(path, f"it does not read as one ({error!r})") from error
    for entry in entries:
        if not (math.isfinite(entry.epsilon) and entry.epsilon > 0):
            raise _corrupt(path, f"entry {entry.name!r} has epsilon {entry.epsilon}")
    return entries


def write_entries(path: Path, entries: Sequence[Entry]) -> None:
    """Replace the file; durable when this returns. Only under the lock: it sweeps up what killed writers left."""
    sweep_unfinished(path)
    rows = [asdict(entry) for entry in entries]
    document = {"format": FORMAT, "sha256": _digest(rows), "entries": rows}
    replace_file(path, json.dumps(document, indent=1).encode(), private=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the ledger against other processes and threads. The lock is on a file of its own: the ledger is replaced."""
    make_folder(path.parent)
    with path.with_name(f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # given back by the close, or by the kernel if the process dies
        yield


def _digest(rows: object) -> str:
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _corrupt(path: Path, what: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"{path} is not a readable privacy ledger: {what}. Nothing was released. Restore it from a copy"
        " that has every release; without one the device's budget is spent: a fresh ledger would forget what has left"
    )
