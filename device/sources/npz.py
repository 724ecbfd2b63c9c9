"""Arrays of an `.npz` file, with their kinds and shapes checked."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from device.sources.did_you_mean import did_you_mean
from device.sources.grouped import Names
from device.sources.missing import no_such_file
from device.sources.sieve import Mask
from device.sources.times import iso_times
from sgfusion.errors import DataError

Array = npt.NDArray[Any]
Shape = tuple[str, ...]


class Npz:
    """The arrays of a file that `shapes` names: those of one letter have one length. Others are not read."""

    def __init__(self, path: str, shapes: Mapping[str, tuple[Shape, ...]], required: tuple[str, ...]) -> None:
        self._path = path
        # Opened here, not by numpy: that leaves a file open that is not a zip.
        try:
            with Path(path).open("rb") as opened:
                self._arrays, self.unused = self._read(np.load(opened, allow_pickle=False), shapes)
        except FileNotFoundError as error:
            raise no_such_file(path) from error
        except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            if isinstance(error, DataError):
                raise
            why = "" if "pickle" in str(error) else f": {error}"  # numpy advises to read pickles: never
            raise DataError(f"data.path = {path!r} is not an .npz of np.savez, or is damaged{why}") from error
        for key in required:
            self.require(key)
        self._check_shapes(shapes)

    def _read(self, file: Any, shapes: Mapping[str, object]) -> tuple[dict[str, Array], tuple[str, ...]]:
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise DataError(f"data.path = {self._path!r} is a single array: give an .npz, as np.savez writes it")
        arrays: dict[str, Array] = {}
        for key in sorted(set(file.files) & set(shapes)):
            try:
                arrays[key] = file[key]
            except ValueError as error:
                raise DataError(
                    f"{key} of {self._path} is an array of Python objects or damaged, and pickles are not read: save it"
                    f" as numbers or as text, such as np.asarray({key}, float) or np.asarray({key}, str) ({error})"
                ) from error
        return arrays, tuple(sorted(set(file.files) - set(shapes)))

    def __contains__(self, key: str) -> bool:
        return key in self._arrays

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values())))

    def require(self, key: str, instead: str = "") -> None:
        """Refuse the file if it lacks the key; `instead` is another way out."""
        if key not in self._arrays:
            there = ", ".join((*self._arrays, *self.unused)) or "nothing"
            raise DataError(f"{self._path} has no {key!r}{did_you_mean(key, self.unused)} It has: {there}{instead}")

    def _check_shapes(self, shapes: Mapping[str, tuple[Shape, ...]]) -> None:
        lengths: dict[str, tuple[int, str]] = {}
        for key in (key for key in shapes if key in self._arrays):
            shape = self._arrays[key].shape
            letters = next((letters for letters in shapes[key] if len(letters) == len(shape)), None)
            if letters is None:
                wanted = " or ".join(f"[{', '.join(letters)}]" for letters in shapes[key])
                raise DataError(f"{key} of {self._path} has shape {shape}: give {wanted}")
            for letter, length in zip(letters, shape, strict=True):
                known, where = lengths.setdefault(letter, (length, key))
                if known != length:
                    raise DataError(
                        f"{key} of {self._path} has shape {shape}, so {letter} = {length}, but {where} has"
                        f" {letter} = {known}"
                    )
                if not length:
                    raise DataError(f"{key} of {self._path} has shape {shape}: there is nothing in it")

    def numbers(self, key: str) -> Array:
        """The key's numbers."""
        array = self._arrays[key]
        if array.dtype.kind not in "fiub":
            raise DataError(f"{key} of {self._path} is of type {array.dtype}: give numbers")
        return array

    def text(self, key: str) -> Names:
        """The key's text or whole numbers, as text."""
        array = self._arrays[key]
        if array.dtype.kind == "S":
            return np.char.decode(array, "utf-8", "replace")
        if array.dtype.kind not in "Uiu":
            raise DataError(f"{key} of {self._path} is of type {array.dtype}: give text or whole numbers")
        return array.astype(np.str_)

    def order(self, key: str) -> tuple[Array, Mask]:
        """The key's numbers or times to sort by, and where there is none."""
        array = self._arrays[key]
        if array.dtype.kind in "Mm":
            return array.view(np.int64), np.isnat(array)
        if array.dtype.kind in "SU":
            texts = self.text(key)
            return iso_times(texts.tolist(), f"{key} of {self._path}"), texts == ""
        numbers = self.numbers(key)
        return numbers, np.isnan(numbers)
