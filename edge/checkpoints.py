"""A zone's progress on disk: safetensors and JSON, atomic, fsynced, the previous one kept (architecture, Faults).

::

    round-00000012.safetensors     the state after round 12 (`sgfusion.checkpoint`)
    round-00000012.json            what goes with it; written last, so it says that the rest is there
    best-00000010.safetensors      the model that is best on the validation samples so far
    records.jsonl                  every round and evaluation up to the last checkpoint, one line each
    roster.json, plan.json, run.toml   what the edge was told before: it goes on by them if the cloud is away

A checkpoint counts if its JSON has its own checksum and those of the files it names. One that does not (a torn disk, a
hand that edited it) is passed over with a warning, and the one before it is used.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from sgfusion import checkpoint
from sgfusion.durable import UNFINISHED, make_folder, replace_file
from sgfusion.errors import CheckpointError
from sgfusion.tensor_file import pieces
from sgfusion.zone_trainer import ZoneState

Vector = npt.NDArray[np.float32]

FORMAT = "sgfusion.edge/1"
KEPT = 2
"""Checkpoints on disk: the last, and the one before it."""
_log = logging.getLogger("sgfusion.edge")


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a zone is: its state, the model it would keep, and the records since the last checkpoint."""

    state: ZoneState
    best: Vector
    best_round: int
    best_worth: float
    records: Sequence[dict[str, Any]] = ()
    """New ones when saving; all of them when loaded."""
    diverged: str = ""


class Checkpoints:
    """The checkpoints of one zone in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines = self._bytes = 0  # of the records
        self._best_saved: tuple[int, str] | None = None
        make_folder(folder)
        for left_over in folder.glob(f".*{UNFINISHED}"):
            left_over.unlink()

    def save(self, progress: Progress) -> None:
        """Make the progress durable; when this returns it survives a power cut."""
        number = progress.state.round
        state = self._write(f"{_name(number)}.safetensors", checkpoint.to_pieces(progress.state))
        if self._best_saved is None or self._best_saved[0] != progress.best_round:
            best = self._write(f"best-{progress.best_round:08}.safetensors", pieces({"theta": progress.best}))
            self._best_saved = progress.best_round, best
        self._append(progress.records)
        document = {
            "format": FORMAT,
            "round": number,
            "state": state,
            "best": {
                "round": progress.best_round,
                "worth": progress.best_worth,
                "sha256": self._best_saved[1],
            },
            "records": self._lines,
            "diverged": progress.diverged,
        }
        replace_file(self._folder / f"{_name(number)}.json", _sealed(document))
        self._sweep()

    def load(self) -> Progress | None:
        """The last progress that is whole; None if there is none at all. Raises if none of several is whole."""
        found = sorted(self._folder.glob("round-????????.json"), reverse=True)
        for path in found:
            try:
                return self._read(path)
            except (CheckpointError, SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
                _log.warning("checkpoint %s is passed over: %s", path.name, error)
        if found:
            raise CheckpointError(
                f"{self._folder}: none of {', '.join(path.name for path in found)} is whole. Restore the folder from a"
                " copy, or remove it to train the zone from the start"
            )
        self._forget_records()
        return None

    def written(self) -> float:
        """When the last one was, in seconds since 1970; 0 if there is none."""
        return max((path.stat().st_mtime for path in self._folder.glob("round-????????.json")), default=0.0)

    def _read(self, path: Path) -> Progress:
        document = _unsealed(path.read_bytes())
        content = path.with_suffix(".safetensors").read_bytes()
        if _sha256(content) != document["state"]:
            raise CheckpointError("the state beside it does not have its checksum")
        state = checkpoint.from_bytes(content)
        best = document["best"]
        kept = (self._folder / f"best-{best['round']:08}.safetensors").read_bytes()
        if _sha256(kept) != best["sha256"]:
            raise CheckpointError("the best model beside it does not have its checksum")
        records = self._read_records(int(document["records"]))
        self._best_saved = int(best["round"]), str(best["sha256"])
        theta = safetensors.numpy.load(kept)["theta"]
        return Progress(state, theta, int(best["round"]), float(best["worth"]), records, str(document["diverged"]))

    def _write(self, name: str, content: Iterator[bytes | memoryview]) -> str:
        """Write the file; its SHA-256, taken on the way."""
        digest = hashlib.sha256()

        def seen() -> Iterator[bytes | memoryview]:
            for piece in content:
                digest.update(piece)
                yield piece

        replace_file(self._folder / name, seen())
        return digest.hexdigest()

    def _append(self, records: Sequence[dict[str, Any]]) -> None:
        if not records:
            return
        with (self._folder / "records.jsonl").open("ab") as file:
            file.truncate(self._bytes)  # what a write that failed has left goes
            file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))
            file.flush()
            os.fsync(file.fileno())
            self._bytes = file.tell()
        self._lines += len(records)

    def _read_records(self, count: int) -> list[dict[str, Any]]:
        """The first `count` lines; what a killed edge wrote after them goes."""
        path = self._folder / "records.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if count or path.exists() else []
        if len(lines) < count:
            raise CheckpointError(f"records.jsonl has {len(lines)} lines, {count} belong to it")
        records = [json.loads(line) for line in lines[:count]]
        if len(lines) > count:
            replace_file(path, b"".join(lines[:count]))
        self._lines, self._bytes = count, sum(map(len, lines[:count]))
        return records

    def _forget_records(self) -> None:
        (self._folder / "records.jsonl").unlink(missing_ok=True)
        self._lines = self._bytes = 0

    def _sweep(self) -> None:
        """Keep the last two checkpoints and the best models that they name; a torn one does not count."""
        best: list[str] = []
        for path in sorted(self._folder.glob("round-????????.json"), reverse=True):
            if len(best) < KEPT:
                with suppress(CheckpointError, ValueError, KeyError, TypeError, OSError):
                    best.append(f"best-{_unsealed(path.read_bytes())['best']['round']:08}.safetensors")
                    continue
            path.unlink()
            path.with_suffix(".safetensors").unlink(missing_ok=True)
        for path in self._folder.glob("best-????????.safetensors"):
            if path.name not in best:
                path.unlink()


def _name(round: int) -> str:
    return f"round-{round:08}"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sealed(document: dict[str, Any]) -> bytes:
    body = json.dumps(document, sort_keys=True)
    return json.dumps({"sha256": _sha256(body.encode()), "checkpoint": document}, sort_keys=True).encode()


def _unsealed(content: bytes) -> dict[str, Any]:
    outer = json.loads(content)
    document: dict[str, Any] = outer["checkpoint"]
    if _sha256(json.dumps(document, sort_keys=True).encode()) != outer["sha256"]:
        raise CheckpointError("it does not have its own checksum")
    if document["format"] != FORMAT:
        raise CheckpointError(f"its format is {document['format']!r}, not {FORMAT!r}")
    return document
