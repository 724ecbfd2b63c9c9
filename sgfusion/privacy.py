"""The Laplace mechanism on a device's label histogram, and the ledger of what it has cost (method 1).

Noise is drawn by OpenDP's discrete Laplace on the histogram's integer parts: exact arithmetic, no floating-point tail
to attack. It cannot be seeded, by design. The unit of privacy is one sample; what ε covers is this histogram and
nothing else: gradients are not covered. An error about a mass names the true number, and so must stay on the device.
"""

import math
import os
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from sgfusion.arrays import as_floats
from sgfusion.durable import fsync_folder
from sgfusion.errors import BudgetExceededError, LedgerConflictError, MissingDependencyError, PrivacyError, brought_by
from sgfusion.histogram import UNIT
from sgfusion.ledger_file import Entry, locked, read_entries, write_entries

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Adjacency = Literal["replace", "add-remove"]

_SENSITIVITY: dict[Adjacency, int] = {"replace": 2, "add-remove": 1}
_MOST = 2**53 // UNIT  # samples: beyond it float64 no longer holds every part


def privatize(mass: npt.ArrayLike, *, epsilon: float, adjacency: Adjacency = "replace") -> Floats:
    """`M(Y_u, ε) = Y_u + Lap(Δ/ε)`, then clipped at zero and scaled to sum 1 (post-processing).

    `mass` is a `label_mass`. Call it once for each release and keep the answer: a second call draws fresh noise and
    spends ε again. A `Ledger` does that keeping.
    """
    return scaled_to_one(noised_parts(mass, epsilon=epsilon, adjacency=adjacency))


class Ledger:
    """The releases of one device, kept in the file `path`, and the budget of ε that they may spend together.

    A release is on disk before it leaves the device, so a crash can waste ε but never spend it unseen: killed before
    the entry is written, nothing has left; killed after, the entry is handed back. Epsilons add up over all releases
    (sequential composition), as the decimals they were written as: three releases at 0.1 fit a budget of 0.3.
    """

    def __init__(self, path: str | os.PathLike[str], budget: float) -> None:
        self.path = Path(path).resolve()  # a link to a ledger is that ledger, with its lock
        self.budget = _positive("budget", budget)

    def release(self, name: str, mass: npt.ArrayLike, *, epsilon: float, adjacency: Adjacency = "replace") -> Floats:
        """What was released under `name`: privatized and entered now, or the stored release if there is one.

        A repeat costs nothing and gives the same numbers whatever `mass` is by then: noising afresh would let the
        receiver average the noise away. `name` says what it is (`"histogram/heart_rate/lublin"`); a histogram of new
        data is a new release and takes a new name.
        """
        if type(name) is not str:  # the file holds text: 5 would be stored as "5" and never found again
            raise PrivacyError(f"name = {name!r}: a release has a name, as text")
        bins, epsilon = len(_parts(mass)), checked_epsilon(epsilon)
        measurement(epsilon, adjacency)  # refuse bad settings before anything is looked up
        with locked(self.path):
            entries = read_entries(self.path)
            for entry in entries:
                if entry.name == name:
                    if (entry.epsilon, entry.adjacency, len(entry.release)) != (epsilon, adjacency, bins):
                        raise LedgerConflictError(
                            f"{name!r} was released with epsilon {entry.epsilon}, adjacency {entry.adjacency!r} and"
                            f" {len(entry.release)} bins, and is asked for with {epsilon}, {adjacency!r} and {bins}:"
                            " ask with those, or give the new release a name of its own"
                        )
                    fsync_folder(self.path.parent)  # its writer may have been killed between the rename and this
                    return np.array(entry.release)
                if entry.adjacency != adjacency:  # one sample replaced is one removed and one added: ε would not add up
                    raise LedgerConflictError(
                        f"{self.path} has releases with adjacency {entry.adjacency!r}: {name!r} with {adjacency!r}"
                        " cannot be added up with them. Use that one"
                    )
            spent = _total(entries)
            if spent + _exact(epsilon) > _exact(self.budget):
                raise BudgetExceededError(
                    f"{name!r} at epsilon {epsilon} would exceed the budget of {self.budget}: {float(spent)} is spent"
                    f" ({self.path}). Ask for a smaller epsilon, or have the device's owner raise the budget"
                )
            released = privatize(mass, epsilon=epsilon, adjacency=adjacency)
            write_entries(self.path, (*entries, Entry(name, epsilon, adjacency, tuple(released.tolist()))))
            return released

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases so far, in order."""
        return read_entries(self.path)

    @property
    def spent(self) -> float:
        """The ε spent so far."""
        return float(_total(self.entries))


def _exact(epsilon: float) -> Fraction:
    """The decimal that people wrote, not the binary number nearest to it."""
    return Fraction(repr(epsilon))


def _total(entries: tuple[Entry, ...]) -> Fraction:
    return sum((_exact(entry.epsilon) for entry in entries), Fraction(0))


def noised_parts(mass: npt.ArrayLike, *, epsilon: float, adjacency: Adjacency = "replace") -> Ints:
    """The noised histogram in parts of `UNIT`, before any post-processing: may be negative."""
    parts = _parts(mass)
    return np.array(measurement(epsilon, adjacency)(parts.tolist()), np.int64)


def scaled_to_one(parts: npt.ArrayLike) -> Floats:
    """Clipped at zero and scaled to sum 1; the uniform histogram if nothing is left, for it then tells nothing."""
    clipped = np.maximum(as_floats(parts, "parts", PrivacyError), 0.0)
    if clipped.ndim != 1 or not len(clipped):
        raise PrivacyError(f"parts of shape {clipped.shape}: give one number for each bin")
    total = clipped.sum()
    return clipped / total if total > 0 else np.full(len(clipped), 1 / len(clipped))


def sensitivity(adjacency: Adjacency) -> int:
    """`Δ`: how far one sample can move a histogram in L1, in units of mass."""
    if adjacency not in get_args(Adjacency):
        raise PrivacyError(f"adjacency = {adjacency!r}: choose one of {', '.join(map(repr, get_args(Adjacency)))}")
    return _SENSITIVITY[adjacency]


def checked_epsilon(epsilon: object) -> float:
    """ε as a float, refused unless a finite number > 0."""
    return _positive("epsilon", epsilon)


def _positive(name: str, number: object) -> float:
    is_number = isinstance(number, int | float | Fraction | np.number) and not isinstance(number, bool)
    value = float(number) if is_number else math.nan  # type: ignore[arg-type]
    if not (math.isfinite(value) and value > 0):
        raise PrivacyError(f"{name} = {number!r}: give a finite number > 0 (smaller is more private)")
    return value


def measurement(epsilon: float, adjacency: Adjacency) -> Any:
    """OpenDP's mechanism on a vector of integer parts; its own `map(Δ·UNIT)` is at most `epsilon`."""
    return _measurement(checked_epsilon(epsilon), sensitivity(adjacency) * UNIT)


@cache
def _measurement(epsilon: float, change: int) -> Any:
    scale = change / epsilon
    if not math.isfinite(scale):
        raise PrivacyError(f"epsilon = {epsilon} is too small: the noise would have no finite scale")
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = space >> dp.m.then_laplace(scale=scale)
    while (
        mechanism.map(change) > epsilon
    ):  # the division was rounded down: a hair more noise, never a hair less privacy
        scale = math.nextafter(scale, math.inf)
        mechanism = space >> dp.m.then_laplace(scale=scale)
    return mechanism


def _parts(mass: npt.ArrayLike) -> Ints:
    array = as_floats(mass, "mass", PrivacyError)
    if array.ndim != 1 or not len(array):
        raise PrivacyError(f"mass of shape {array.shape}: give one number for each bin, as label_mass does")
    parts = np.minimum(array, _MOST) * UNIT
    for what, wrong in (
        ("is not a finite number >= 0", ~(np.isfinite(array) & (array >= 0))),
        (f"is more than the {_MOST} samples that fixed point holds: split the data", array > _MOST),
        # Rounding here would let a sample contribute more than its unit, and the noise would no longer cover it.
        (
            f"is not a whole number of 1/{UNIT} parts: count labels with label_mass",
            parts != np.floor(parts),
        ),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise PrivacyError(f"mass[{at}] = {array[at]} {what}", shows=str(array[at]))
    return parts.astype(np.int64)


@cache
def _opendp() -> Any:
    try:
        import opendp.prelude as dp  # noqa: PLC0415 (277 MB that only a device carries)
    except ImportError as error:
        raise MissingDependencyError(f"OpenDP draws the noise and is not installed: {brought_by('device')}") from error
    dp.enable_features("contrib")
    return dp
