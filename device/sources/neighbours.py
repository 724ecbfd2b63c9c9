"""Which zones are next to each other, from where they lie."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from device.sources.extras import optional
from sgfusion.errors import DataError

Floats = npt.NDArray[np.float64]

FLAT = 1e-9
"""Centres that deviate less than this share of their extent from a line lie on it."""


def delaunay_neighbours(
    zones: Sequence[str], latitudes: npt.ArrayLike, longitudes: npt.ArrayLike
) -> dict[str, tuple[str, ...]]:
    """The neighbours of each zone by the Delaunay triangulation of the zones' centres, in degrees.

    Symmetric, and a function of names and centres alone, not of their order. Where there is no triangle (two zones, or
    all on one line) a zone is next to the one before and the one after it on the line.
    """
    names, latitude, longitude = list(zones), np.asarray(latitudes, np.float64), np.asarray(longitudes, np.float64)
    if len(set(names)) != len(names) or latitude.shape != (len(names),) or longitude.shape != (len(names),):
        raise DataError(
            f"{len(names)} zones, {len(set(names))} of them different, with {latitude.size} latitudes and"
            f" {longitude.size} longitudes: give each zone once, with one centre"
        )
    bad = ~on_globe(latitude, longitude)
    if bad.any():
        which = int(np.argmax(bad))
        raise DataError(
            f"zone {names[which]!r} has its centre at latitude {latitude[which]}, longitude {longitude[which]}:"
            " give degrees, -90 to 90 and -180 to 180"
        )
    by_name = sorted(range(len(names)), key=names.__getitem__)
    names = [names[i] for i in by_name]
    return symmetric(names, _edges(_on_plane(latitude[by_name], longitude[by_name])))


def on_globe(latitude: Floats, longitude: Floats) -> npt.NDArray[np.bool_]:
    """Where the numbers are degrees; NaN is not."""
    there: npt.NDArray[np.bool_] = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)
    return there


def mean_places(group: npt.NDArray[np.intp], latitude: Floats, longitude: Floats, groups: int) -> tuple[Floats, Floats]:
    """The mean latitude and longitude of each group's places; NaN for a group without any.

    The mean of directions from the Earth's centre, so that places on both sides of the 180th meridian meet there.
    """
    phi, lam = np.radians(latitude), np.radians(longitude)
    directions = (np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi))
    x, y, z = (np.bincount(group, part, minlength=groups) for part in directions)
    empty = np.bincount(group, minlength=groups) == 0
    means = np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))
    return np.where(empty, np.nan, means[0]), np.where(empty, np.nan, means[1])


def symmetric(names: Sequence[str], edges: Iterable[tuple[int, int]]) -> dict[str, tuple[str, ...]]:
    """The neighbours of each name, in sorted order; an edge joins both its ends, and none is its own neighbour."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for a, b in edges:
        if a != b:
            found[names[a]].add(names[b])
            found[names[b]].add(names[a])
    return {name: tuple(sorted(others)) for name, others in found.items()}


def _on_plane(latitude: Floats, longitude: Floats) -> Floats:
    """Centres as `[Z, 2]` around their middle in degrees of latitude, those of longitude as short as they are there.

    What is on one parallel or one meridian stays on a line, and nothing is torn at the 180th meridian.
    """
    if not len(latitude):
        return np.empty((0, 2))
    turns = np.exp(1j * np.radians(longitude)).sum()
    middle = np.degrees(np.angle(turns))
    east = (longitude - middle + 180) % 360 - 180
    return np.column_stack([east * np.cos(np.radians(latitude.mean())), latitude])


def _edges(places: Floats) -> list[tuple[int, int]]:
    if len(places) < 2:
        return []
    offsets = places - places.mean(axis=0)
    _, extents, directions = np.linalg.svd(offsets, full_matrices=False)
    if len(places) == 2 or extents[1] <= FLAT * extents[0]:
        line = directions[0] * np.sign(directions[0][np.argmax(np.abs(directions[0]))])  # an axis may point either way
        return list(pairwise(np.argsort(offsets @ line, kind="stable").tolist()))
    triangulation = optional("scipy.spatial").Delaunay(places)
    corners = triangulation.simplices
    edges = [
        (int(a), int(b)) for i, j in ((0, 1), (1, 2), (2, 0)) for a, b in zip(corners[:, i], corners[:, j], strict=True)
    ]
    # A centre on top of another is a corner of no triangle: it is next to that other.
    return edges + [(int(point), int(corner)) for point, _, corner in triangulation.coplanar]
