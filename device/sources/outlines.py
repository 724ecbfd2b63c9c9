"""Zones on a map: outlines of polygons and cells, thinned so that a run file stays small, and points."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from device.sources.extras import optional
from sgfusion.runfile_geography import Ring, Rings

Places = Callable[[tuple[str, ...]], Mapping[str, Rings]]
"""Gives the places of those of the zones that have one."""

MOST_CORNERS = 60
"""Of all outlines of one zone: on a map it is some hundred pixels wide."""
MOST_RINGS = 8
LEAST_SHARE = 0.01
"""Islands with less than this share of the largest part's area are left out."""


def nowhere(_zones: tuple[str, ...]) -> Mapping[str, Rings]:
    """For data without places."""
    return {}


def points(centres: Mapping[str, tuple[float, float]]) -> dict[str, Rings]:
    """Zones as points that are known as they stand: an airport, the middle of a region."""
    return {zone: (((round(latitude, 4), round(longitude, 4)),),) for zone, (latitude, longitude) in centres.items()}


def mean_points(centres: Mapping[str, tuple[float, float]]) -> dict[str, Rings]:
    """Zones as the mean places of their samples, to 0.01 degrees, about a kilometre, and never finer: a mean of few is
    nearly theirs.
    """
    return {zone: (((round(lat, 2), round(lon, 2)),),) for zone, (lat, lon) in centres.items()}


def cells(zones: Iterable[str]) -> dict[str, Rings]:
    """H3 cells by their names; what is no cell's has no place."""
    h3 = optional("h3")
    return {zone: (_rounded(h3.cell_to_boundary(zone)),) for zone in zones if h3.is_valid_cell(zone)}


def outline(shape: Any) -> Rings:
    """The outer rings of a shape, largest first, without its holes. Small islands and small corners are left out."""
    shapely = optional("shapely")
    # Twice: what make_valid has mended may be a collection of many polygons, and of lines, which have no area.
    parts = sorted(shapely.get_parts(shapely.get_parts(shape)), key=lambda part: -part.area)
    rings = [shapely.Polygon(part.exterior) for part in parts[:MOST_RINGS] if part.area >= LEAST_SHARE * parts[0].area]
    west, south, east, north = shape.bounds
    tolerance, thinned = max(east - west, north - south) / 2000, rings
    while sum(len(ring.exterior.coords) - 1 for ring in thinned) > MOST_CORNERS:  # ends: of a ring, three stay
        thinned = [ring.simplify(tolerance) for ring in rings]
        tolerance *= 1.5
    corners = (_rounded([(y, x) for x, y, *_ in ring.exterior.coords[:-1]]) for ring in thinned)
    return tuple(ring for ring in corners if len(set(ring)) > 2)


def _rounded(ring: Sequence[tuple[float, float]]) -> Ring:
    """To 0.0001 degrees, about ten metres; what is small, to a thousandth of its own size. Cut off where the map is."""
    digits = max(4, _digits(_extent(ring)) + 1)
    return tuple((_within(latitude, 90, digits), _within(longitude, 180, digits)) for latitude, longitude in ring)


def _within(degrees: float, most: float, digits: int) -> float:
    return min(max(round(degrees, digits), -most), most)


def _extent(pairs: Iterable[tuple[float, float]]) -> float:
    return max((max(values) - min(values) for values in zip(*pairs, strict=True)), default=0.0)


def _digits(extent: float) -> int:
    """Decimals that tell apart what is a hundredth of the extent."""
    return 2 - math.floor(math.log10(extent)) if extent else 0
