"""Samples that are left out, and the words that say so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sgfusion.errors import DataError

Mask = npt.NDArray[np.bool_]


def as_float32(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The numbers as samples have them; what is too large becomes infinite, and so is left out."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


class Sieve:
    """Which of a file's samples are kept. A sample with two faults is counted once, for the first that is found.

    `where` says, of a sample's number from 1, how who opens the file finds it.
    """

    def __init__(self, count: int, where: Callable[[int], str] | None = None) -> None:
        self._where = where
        self.kept: Mask = np.ones(count, np.bool_)
        self.notes: list[str] = []

    def drop(self, bad: Mask, why: str) -> None:
        """Leave out the samples that are `bad`."""
        hit = np.flatnonzero(self.kept & bad)
        if len(hit):
            self.notes.append(f"{len(hit)} of {len(self.kept)} samples left out: {why}{self._example(hit)}")
            self.kept &= ~bad

    def _example(self, hit: npt.NDArray[np.intp]) -> str:
        if self._where is None:
            return ""
        return f", {'first ' if len(hit) > 1 else ''}in {self._where(int(hit[0]) + 1)}"

    def check_some_left(self, path: str) -> None:
        """Refuse a file of which nothing is kept, with the reasons."""
        if not self.kept.any():
            reasons = "; ".join(self.notes) or "it has none at all"
            raise DataError(f"{path} has no sample to use: {reasons}")
