"""Zones on a map: cells and polygons as outlines of few corners, other zones as points."""

import math
from typing import Any

import pytest

from device.sources.outlines import MOST_CORNERS, cells, mean_points, nowhere, outline, points

h3 = pytest.importorskip("h3")
shapely = pytest.importorskip("shapely")


def wavy(corners: int, x: float = 10, y: float = 60, size: float = 2.0) -> Any:
    """A circle with waves: as many corners as one likes."""
    turns = [2 * math.pi * i / corners for i in range(corners)]
    radii = [size * (1 + 0.1 * math.sin(7 * turn)) for turn in turns]
    return shapely.Polygon(
        [(x + r * math.cos(turn), y + r * math.sin(turn)) for r, turn in zip(radii, turns, strict=True)]
    )


def test_a_cell_is_its_six_corners() -> None:
    assert cells(["851f9943fffffff"]) == {
        "851f9943fffffff": (
            (
                (45.278, 9.0749),
                (45.191, 9.0849),
                (45.1582, 9.1994),
                (45.2123, 9.304),
                (45.2993, 9.2941),
                (45.3322, 9.1794),
            ),
        )
    }
    assert cells(["warsaw"]) == {}
    assert len(cells(["8009fffffffffff"])["8009fffffffffff"][0]) == 5  # one of the few pentagons


def test_a_small_cell_keeps_its_shape() -> None:
    cell = h3.latlng_to_cell(52.23, 21.01, 15)  # half a metre: four decimals would make a point of it
    ((ring,),) = cells([cell]).values()
    assert len(set(ring)) == 6
    for (latitude, longitude), (lat, lon) in zip(ring, h3.cell_to_boundary(cell), strict=True):
        assert abs(latitude - lat) < 1e-8
        assert abs(longitude - lon) < 1e-8


def test_a_polygon_is_its_outer_ring_and_those_of_its_larger_islands() -> None:
    mainland = shapely.Polygon([(10, 50), (14, 50), (14, 54), (10, 54)], [[(11, 51), (12, 51), (12, 52), (11, 52)]])
    island = shapely.Polygon([(20, 50), (20, 50.5), (21, 50.5)])  # 0.25 of 15: more than a hundredth
    rock = shapely.box(30, 50, 30.1, 50.1)
    assert outline(shapely.MultiPolygon([rock, island, mainland])) == (
        ((50.0, 10.0), (50.0, 14.0), (54.0, 14.0), (54.0, 10.0)),
        ((50.0, 20.0), (50.5, 20.0), (50.5, 21.0)),
    )
    line = shapely.LineString([(0, 0), (1, 1)])
    mended = shapely.GeometryCollection([line, shapely.MultiPolygon([rock, island])])  # as make_valid leaves them
    assert outline(mended)[0] == ((50.0, 20.0), (50.5, 20.0), (50.5, 21.0))
    assert len(outline(mended)) == 2  # the rock is 0.01 of 0.25


def test_many_corners_become_few_and_the_shape_stays() -> None:
    shape = wavy(5000)
    (ring,) = outline(shape)
    assert 20 <= len(ring) <= MOST_CORNERS
    drawn = shapely.Polygon([(lon, lat) for lat, lon in ring])
    assert drawn.symmetric_difference(shape).area < 0.02 * shape.area
    assert all(round(number, 4) == number for pair in ring for number in pair)
    assert len(outline(wavy(MOST_CORNERS))[0]) == MOST_CORNERS  # few enough as they are


def test_a_country_of_islands_has_no_more_corners_than_any() -> None:
    islands = [wavy(300, x=10 + 3 * i, size=1 - i / 20) for i in range(12)]
    rings = outline(shapely.union_all(islands))
    assert len(rings) == 8
    assert sum(map(len, rings)) <= MOST_CORNERS
    areas = [shapely.Polygon(ring).area for ring in rings]
    assert areas == sorted(areas, reverse=True)


def test_what_lies_beyond_the_map_is_cut_off() -> None:
    assert outline(shapely.box(170, -95, 185, -80)) == (((-90, 180), (-80.0, 180), (-80.0, 170.0), (-90, 170.0)),)
    assert outline(shapely.box(500_000, 6_000_000, 600_000, 6_100_000)) == ()  # metres


def test_points_are_as_they_are_known() -> None:
    assert points({"PSE": (18.0083, -66.5630), "x": (1.00004, -1.00006)}) == {
        "PSE": (((18.0083, -66.563),),),
        "x": (((1.0, -1.0001),),),
    }
    assert nowhere(("a",)) == {}


def test_a_mean_is_no_finer_than_a_map_needs() -> None:
    country = {"a": (59.91234, 10.71234), "b": (63.41234, 10.41234)}
    assert mean_points(country) == {"a": (((59.91, 10.71),),), "b": (((63.41, 10.41),),)}
    town = {"a": (59.91234, 10.71234), "b": (59.95678, 10.71234)}
    assert mean_points(town) == {"a": (((59.91, 10.71),),), "b": (((59.96, 10.71),),)}  # not finer
    assert mean_points({"a": (59.91234, 10.71234)}) == {"a": (((59.91, 10.71),),)}
    assert mean_points({}) == {}
