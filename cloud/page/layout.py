"""Places in the unit square for zones that have none on earth: alike zones lie side by side (classical scaling)."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sgfusion.dendrogram_file import ZoneTree

Floats = npt.NDArray[np.float64]
Place = tuple[float, float]
MARGIN = 0.06
"""Of the square, on every side."""
SHORE = 0.02
"""Where zones wait that nobody can compare yet: below the others."""
_NOTHING = 1e-12


def by_likeness(distances: npt.ArrayLike) -> Floats:
    """A place for each row of `distances`, whose Euclidean distances are as near to those as two dimensions allow.

    Classical multidimensional scaling: the two leading eigenvectors of the doubly centred squared distances. Signs are
    fixed (the entry that is largest is positive), so the same distances always give the same places.
    """
    squared = np.asarray(distances, np.float64) ** 2
    count = len(squared)
    centring = np.eye(count) - 1.0 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ squared @ centring)
    places = np.zeros((count, 2))
    for axis, which in enumerate(np.argsort(values)[::-1][:2]):
        if values[which] > _NOTHING:
            vector = vectors[:, which]
            places[:, axis] = np.sqrt(values[which]) * vector * np.sign(vector[np.abs(vector).argmax()])
    return _fitted(places)


def leaf_places(tree: ZoneTree | None) -> Mapping[str, Place]:
    """Where the leaves of the tree lie; nobody if there is none."""
    if tree is None:
        return {}
    return {name: (float(x), float(y)) for name, (x, y) in zip(tree.zones, by_likeness(tree.distances), strict=True)}


def all_places(names: Sequence[str], leaves: Mapping[str, Place]) -> Mapping[str, Place]:
    """Where each of `names` lies: who is no leaf waits on a line below the others; all on a circle if none is."""
    waiting = [name for name in names if name not in leaves]
    if len(waiting) == len(names):
        return {name: (float(x), float(y)) for name, (x, y) in zip(names, _circle(len(names)), strict=True)}
    line = np.linspace(MARGIN, 1 - MARGIN, len(waiting) + 2)[1:-1].tolist()
    shore = {name: (x, SHORE) for name, x in zip(waiting, line, strict=True)}
    return {name: leaves.get(name) or shore[name] for name in names}


def _fitted(places: Floats) -> Floats:
    """Moved and scaled into the square, both axes alike; all at one place: on a circle, to be told apart."""
    low, high = places.min(axis=0), places.max(axis=0)
    extent = float((high - low).max())
    if extent <= _NOTHING:
        return _circle(len(places))
    fitted: Floats = 0.5 + (places - (low + high) / 2) / extent * (1 - 2 * MARGIN)
    return fitted


def _circle(count: int) -> Floats:
    if count == 1:
        return np.array([[0.5, 0.5]])
    angles = 2 * np.pi * np.arange(count) / count
    return 0.5 + (0.5 - MARGIN) * np.stack([np.sin(angles), np.cos(angles)], axis=1)
