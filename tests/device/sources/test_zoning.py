"""Places become zones by polygons, H3 cells or a column; zones have neighbours by border, ring or Delaunay."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.sources.neighbours import mean_places
from device.sources.outlines import cells
from device.sources.sieve import Sieve
from device.sources.zoning import delaunay_neighbours, place
from sgfusion.errors import DataError
from sgfusion.runfile import Zones

Neighbours = Mapping[str, tuple[str, ...]]


def check_symmetric(neighbours: Neighbours) -> None:
    for zone, others in neighbours.items():
        assert zone not in others
        assert list(others) == sorted(set(others))
        assert all(zone in neighbours[other] for other in others)


# Delaunay


def test_few_zones_have_the_neighbours_one_would_say() -> None:
    assert delaunay_neighbours([], np.array([]), np.array([])) == {}
    assert delaunay_neighbours(["a"], np.array([60.0]), np.array([10.0])) == {"a": ()}
    assert delaunay_neighbours(["b", "a"], np.array([60.0, 0]), np.array([10.0, 0])) == {"a": ("b",), "b": ("a",)}
    assert delaunay_neighbours(["a", "b", "c"], np.array([0.0, 0, 1]), np.array([0.0, 1, 0])) == {
        "a": ("b", "c"),
        "b": ("a", "c"),
        "c": ("a", "b"),
    }


@pytest.mark.parametrize(
    ("latitudes", "longitudes"),
    [
        ([60, 60, 60, 60], [10, 40, 20, 30]),
        ([0, 3, 1, 2], [7, 7, 7, 7]),
        ([10, 10.3, 10.1, 10.2], [1, 1.6, 1.2, 1.4]),
        ([-17, -17, -17, -17], [178, -179, 179, 180]),  # across the 180th meridian
    ],
)
def test_zones_on_a_line_are_next_to_the_one_before_and_the_one_after(
    latitudes: list[float], longitudes: list[float]
) -> None:
    found = delaunay_neighbours(["a", "d", "b", "c"], np.array(latitudes, float), np.array(longitudes, float))
    assert found == {"a": ("b",), "b": ("a", "c"), "c": ("b", "d"), "d": ("c",)}


def test_a_zone_in_the_middle_is_next_to_all_around_it() -> None:
    found = delaunay_neighbours(list("neswm"), np.array([1.0, 0, -1, 0, 0]), np.array([0.0, 1, 0, -1, 0]))
    assert found["m"] == ("e", "n", "s", "w")
    assert found["n"] == ("e", "m", "w")


def test_a_degree_of_longitude_is_short_in_the_north() -> None:
    # At 80 degrees north, w and e are 4 degrees of longitude but 0.7 of latitude apart: nearer than n and s.
    found = delaunay_neighbours(list("ensw"), np.array([80.0, 81, 79, 80]), np.array([2.0, 0, 0, -2]))
    assert "w" in found["e"]
    assert "n" not in found["s"]
    assert "n" in delaunay_neighbours(list("ensw"), np.array([0.0, 1, -1, 0]), np.array([2.0, 0, 0, -2]))["s"]


def test_zones_at_one_place_are_next_to_each_other() -> None:
    found = delaunay_neighbours(list("abcd"), np.array([0.0, 0, 1, 0]), np.array([0.0, 1, 0, 0]))
    check_symmetric(found)
    assert "d" in found["a"]
    assert all(found.values())
    assert delaunay_neighbours(list("abc"), np.full(3, 5.0), np.full(3, 5.0)) == {
        "a": ("b",),
        "b": ("a", "c"),
        "c": ("b",),
    }


@given(st.lists(st.tuples(st.integers(-60, 70), st.integers(-170, 170)), max_size=14), st.randoms())
def test_neighbours_are_symmetric_connect_all_zones_and_do_not_depend_on_their_order(
    places: list[tuple[int, int]], random: Any
) -> None:
    zones = {f"z{number}": place for number, place in enumerate(places)}
    found = delaunay_neighbours(list(zones), [p[0] for p in places], [p[1] for p in places])
    check_symmetric(found)
    assert list(found) == sorted(zones)
    mixed = list(zones)
    random.shuffle(mixed)
    assert delaunay_neighbours(mixed, [zones[z][0] for z in mixed], [zones[z][1] for z in mixed]) == found
    reached, ahead = set(), list(found)[:1]
    while ahead:
        zone = ahead.pop()
        if zone not in reached:
            reached.add(zone)
            ahead += found[zone]
    assert reached == set(zones)


@pytest.mark.parametrize(
    ("zones", "latitudes", "longitudes", "message"),
    [
        (["a", "a"], [0, 1], [0, 1], "2 zones, 1 of them different"),
        (["a", "b"], [0, 1, 2], [0, 1], "with 3 latitudes and 2 longitudes"),
        (["a", "b"], [0, np.nan], [0, 1], "zone 'b' has its centre at latitude nan"),
        (["a", "b"], [91, 0], [0, 1], "zone 'a' has its centre at latitude 91"),
        (["a", "b"], [0, 0], [0, 181], "zone 'b' .* longitude 181"),
    ],
)
def test_centres_that_are_none_are_refused(zones: list[str], latitudes: Any, longitudes: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        delaunay_neighbours(zones, latitudes, longitudes)


def test_the_mean_of_places_on_both_sides_of_the_180th_meridian_is_there() -> None:
    group = np.array([0, 0, 2])
    latitude, longitude = mean_places(group, np.array([0.0, 0, 60]), np.array([179.0, -179, 10]), 3)
    assert abs(longitude[0]) == pytest.approx(180)
    assert latitude[[0, 2]] == pytest.approx([0, 60])
    assert np.isnan(latitude[1])
    assert np.isnan(longitude[1])


# Columns


def degrees(*values: float) -> Any:
    return np.array(values, np.float64)


def test_a_column_has_neighbours_by_delaunay_if_there_are_places_and_none_otherwise() -> None:
    column = np.array(["b b", "a", "", "c", "a", "d"])
    sieve = Sieve(6)
    latitude, longitude = degrees(0, 0, 0, 0, 2, np.nan), degrees(5, 0, 0, 9, 0, 0)
    zone, neighbours, places = place(Zones(), column, latitude, longitude, sieve)
    assert zone[sieve.kept].tolist() == ["b-b", "a", "c", "a", "d"]
    assert sieve.notes == [
        "1 of 6 samples left out: no zone",
        "1 of 5 samples have no place on the globe (latitude within ±90, longitude within ±180): they count, but not"
        " for the zones' neighbours",
    ]
    assert neighbours(("a", "b-b", "c"))["a"] == ("b-b", "c")  # a is at 1 north: a triangle
    assert neighbours(("a", "d")) == {"a": (), "d": ()}  # d is nowhere
    assert places(("c", "a", "d")) == {"c": (((0.0, 9.0),),), "a": (((1.0, 0.0),),)}
    zone, neighbours, places = place(Zones(), column, None, None, Sieve(6))
    assert neighbours(("a", "c")) == {}
    assert places(("a", "c")) == {}


def test_what_a_zoning_needs_and_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match=r"zones.by = 'column' needs a zone for each sample"):
        place(Zones(), None, degrees(1), degrees(1), Sieve(1))
    with pytest.raises(DataError, match=r"zones.neighbours = 'delaunay' needs the latitude"):
        place(Zones(neighbours="delaunay"), np.array(["a"]), None, None, Sieve(1))
    with pytest.raises(DataError, match=r"zones.by = 'h3' needs the latitude"):
        place(Zones(by="h3"), np.array(["a"]), None, None, Sieve(1))


@pytest.mark.parametrize("by", ["column", "h3", "polygons"])
def test_places_of_which_none_is_one_leave_nothing(tmp_path: Path, by: str) -> None:
    geojson(tmp_path / "z.geojson", feature("a", square(0, 0)))
    keys: Any = {"polygons": str(tmp_path / "z.geojson")} if by == "polygons" else {}
    sieve = Sieve(2)
    place(Zones.model_validate({"by": by, **keys}), np.array(["", ""]), degrees(np.nan, 91), degrees(5, 5), sieve)
    assert not sieve.kept.any()
    with pytest.raises(DataError, match="f has no sample to use: 2 of 2 samples left out: no "):
        sieve.check_some_left("f")


def test_places_the_wrong_way_round_are_asked_about_and_places_that_are_none_either_way_are_not() -> None:
    asked = "; are latitude and longitude swapped?"
    for latitude, longitude, swapped in (
        (degrees(-100, 120), degrees(40, 45), True),
        (degrees(-100, np.nan), degrees(40, 45), True),
        (degrees(-100, 40), degrees(40, 45), False),  # one is a place as it stands
        (degrees(-100, 120), degrees(95, np.nan), False),
        (degrees(5e6, 5e6), degrees(1e5, 1e5), False),  # metres
    ):
        for zones, column in ((Zones(), np.array(["a", "b"])), (Zones(by="h3"), None)):
            sieve = Sieve(2)
            place(zones, column, latitude, longitude, sieve)
            assert [note.endswith(asked) for note in sieve.notes] == [swapped]


# H3 cells


def test_h3_cells_are_zones_and_their_ring_their_neighbours() -> None:
    h3 = pytest.importorskip("h3")
    centre = h3.latlng_to_cell(59.9, 10.7, 5)
    ring = sorted(set(h3.grid_disk(centre, 1)) - {centre})
    far = h3.latlng_to_cell(63.4, 10.4, 5)
    places = [h3.cell_to_latlng(cell) for cell in (centre, ring[0], ring[1], far)]
    latitude, longitude = degrees(*(p[0] for p in places), np.nan, 99), degrees(*(p[1] for p in places), 1, 1)
    sieve = Sieve(6)
    zone, neighbours, outlines = place(Zones(by="h3"), None, latitude, longitude, sieve)
    assert zone[sieve.kept].tolist() == [centre, ring[0], ring[1], far]
    assert sieve.notes == ["2 of 6 samples left out: no latitude and longitude in degrees"]
    kept = tuple(sorted(zone[sieve.kept].tolist()))
    found = neighbours(kept)
    check_symmetric(found)
    assert found[centre] == (ring[0], ring[1])
    assert found[far] == ()
    assert outlines((far,)) == cells([far])
    coarse, _, _ = place(Zones(by="h3", resolution=0), None, latitude, longitude, Sieve(6))
    assert len(set(coarse[:4].tolist())) < 4
    sieve = Sieve(6)
    _, by_centres, outlines = place(Zones(by="h3", neighbours="delaunay"), None, latitude, longitude, sieve)
    assert by_centres(kept)[far]
    assert list(outlines(kept)) == list(kept)
    assert len(outlines(kept)[far][0]) == 6


# Polygons


def square(west: float, south: float, size: float = 1) -> list[list[list[float]]]:
    east, north = west + size, south + size
    return [[[west, south], [east, south], [east, north], [west, north], [west, south]]]


def feature(name: Any, coordinates: Any, kind: str = "Polygon", key: str = "name") -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": {key: name, "code": 1},
        "geometry": {"type": kind, "coordinates": coordinates},
    }


def geojson(path: Path, *features: Any) -> Zones:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return Zones(by="polygons", polygons=str(path))


def zoned(zones: Zones, *places: tuple[float, float]) -> tuple[list[str], list[str], Any]:
    """The zones of (latitude, longitude), what was left out, and the neighbours."""
    sieve = Sieve(len(places))
    zone, neighbours, _ = place(zones, None, degrees(*(p[0] for p in places)), degrees(*(p[1] for p in places)), sieve)
    return zone[sieve.kept].tolist(), sieve.notes, neighbours


@pytest.mark.parametrize("neighbours", ["border", "delaunay"])
def test_a_polygons_place_is_its_outline(neighbours: Any, tmp_path: Path) -> None:
    path = tmp_path / "z.geojson"
    isles = [square(10, 0), square(12, 0, 0.5), square(14, 0, 0.01)]  # the last is too small to see
    geojson(path, feature("a b", [*square(0, 0, 3), square(1, 1, 1)[0]]), feature("isles", isles, "MultiPolygon"))
    zones = Zones(by="polygons", polygons=str(path), neighbours=neighbours)
    _, _, places = place(zones, None, degrees(0.5, 0.5), degrees(0.5, 10.5), Sieve(2))
    assert {name: [sorted(ring) for ring in rings] for name, rings in places(("isles", "a-b")).items()} == {
        "a-b": [[(0.0, 0.0), (0.0, 3.0), (3.0, 0.0), (3.0, 3.0)]],
        "isles": [
            [(0.0, 10.0), (0.0, 11.0), (1.0, 10.0), (1.0, 11.0)],
            [(0.0, 12.0), (0.0, 12.5), (0.5, 12.0), (0.5, 12.5)],
        ],
    }
    assert list(places(("isles",))) == ["isles"]


def test_a_place_is_in_the_polygon_around_it_and_left_out_beyond_them_all(tmp_path: Path) -> None:
    holed = [*square(0, 0, 3), square(1, 1, 1)[0]]
    zones = geojson(
        tmp_path / "z.geojson",
        feature("Big Ring", holed),
        feature("hole", [square(1, 1)], "MultiPolygon"),
        feature("isles", [square(10, 0), square(12, 0)], "MultiPolygon"),
        feature("isles", square(14, 0)),
    )
    # Latitude is y: (0.5, 2.5) is 2.5 degrees east.
    names, notes, neighbours = zoned(
        zones, (0.5, 2.5), (1.5, 1.5), (0.5, 10.5), (0.5, 12.5), (0.5, 14.5), (0.5, 11.5), (2.5, 0.5), (np.nan, 1)
    )
    assert names == ["Big-Ring", "hole", "isles", "isles", "isles", "Big-Ring"]
    assert notes == [
        "1 of 8 samples left out: no latitude and longitude in degrees",
        "1 of 8 samples left out: outside every polygon of z.geojson",
    ]
    assert neighbours(("Big-Ring", "hole", "isles")) == {"Big-Ring": ("hole",), "hole": ("Big-Ring",), "isles": ()}
    assert neighbours(("hole", "isles")) == {"hole": (), "isles": ()}


def test_neighbours_share_a_border_or_a_corner_and_a_place_on_it_is_the_first_ones(tmp_path: Path) -> None:
    zones = geojson(
        tmp_path / "z.geojson",
        feature("d", square(1, 1)),
        feature("c", square(0, 1)),
        feature("b", square(1, 0)),
        feature("a", square(0, 0)),
        feature("e", square(5, 0)),
    )
    names, _, neighbours = zoned(zones, (0.5, 1.0), (1.0, 1.0), (1.5, 1.0), (1.0, 1.5))
    assert names == ["a", "a", "c", "b"]
    found = neighbours(("a", "b", "c", "d", "e"))
    check_symmetric(found)
    assert found["a"] == ("b", "c", "d")
    assert found["e"] == ()
    by_centres = Zones(by="polygons", polygons=zones.polygons, neighbours="delaunay")
    _, _, neighbours = zoned(by_centres, (0.5, 0.5), (0.5, 5.5))
    assert neighbours(("a", "e")) == {"a": ("e",), "e": ("a",)}


def test_a_property_that_is_a_number_and_another_key(tmp_path: Path) -> None:
    path = tmp_path / "z.geojson"
    geojson(path, feature(7, square(0, 0), key="county"))
    names, _, _ = zoned(Zones(by="polygons", polygons=str(path), property="county"), (0.5, 0.5))
    assert names == ["7"]


def test_a_ring_that_crosses_itself_is_mended(tmp_path: Path) -> None:
    bow = [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]
    names, notes, _ = zoned(geojson(tmp_path / "z.geojson", feature("bow", bow)), (1, 1.8), (1, 0.2), (1.8, 1))
    assert names == ["bow", "bow"]
    assert notes == ["1 of 3 samples left out: outside every polygon of z.geojson"]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([feature("a", [0, 0], "Point")], "feature 0 of .* is 'Point': a zone is a Polygon"),
        ([feature("a", square(0, 0)), {"properties": {"name": "b"}, "geometry": None}], "feature 1 of .* is None"),
        ([feature("a", [[[0, 0], [1, 1]]])], "feature 0 of .* is no Polygon"),
        ([feature("a", "nonsense")], "feature 0 of .* is no Polygon"),
        ([feature("a", [[[0, 0], [1, 1], [2, 2], [0, 0]]])], "feature 0 of .* without an area"),
        (
            [feature("a", square(0, 0), key="county")],
            "no name in its property 'name': its properties are 'county', 'code'",
        ),
        ([feature(None, square(0, 0))], "feature 0 of .* has no name"),
        ([{"geometry": feature("a", square(0, 0))["geometry"]}], "its properties are none"),
        ([feature("a b", square(0, 0)), feature("a-b", square(1, 0))], "would both be 'a-b'"),
        ([], "has no features: give a GeoJSON FeatureCollection"),
        (["nonsense"], "has no features"),
    ],
)
def test_a_feature_that_is_no_zone_is_named(tmp_path: Path, features: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        zoned(geojson(tmp_path / "z.geojson", *features), (0.5, 0.5))


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read: No such file"), ("{", "is not JSON"), ("3", "has no features")]
)
def test_a_file_that_is_no_geojson_is_named(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "z.geojson"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=message):
        zoned(Zones(by="polygons", polygons=str(path)), (0.5, 0.5))
