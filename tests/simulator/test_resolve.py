"""A run file with its zones filled in means the same run, whatever its source."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from sgfusion.errors import RunFileError
from sgfusion.runfile import RunFile, parse_run_file
from sgfusion.same_run import without_places
from simulator.resolve import devices_of, places_of, resolved
from simulator.world import World, load_world
from tests.device.sources.test_fitrec import BERGEN, OSLO, START, TRONDHEIM, workout
from tests.simulator.tiny import NAMES, Tiny, tiny


class OneWay(Tiny):
    """A source that has its second zone next to its first, and not the other way round."""

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        first, second, *_ = self.zones()
        return {first: (second,)}


class Swapped(Tiny):
    """A source that has longitudes where latitudes should be."""

    def places(self) -> Mapping[str, object]:
        return dict.fromkeys(self.zones()[1:2], (((120.0, 50.0),),))


COUNT = 60
ZONES = np.array(["Lesser Poland", "b", "c", "a"])[np.arange(COUNT) % 4]
"""In an order that is not that of their names."""
DEVICES = np.array([f"u{number % 5}" for number in range(COUNT)])
LATITUDE = np.array([50.0, 51.5, 53.0, 50.2])[np.arange(COUNT) % 4] + 0.01 * (np.arange(COUNT) % 3)
LONGITUDE = np.array([20.0, 21.0, 19.0, 23.0])[np.arange(COUNT) % 4]


def linear(**data: object) -> RunFile:
    return run_of({"name": "linear", "low": -3.0, "high": 3.0, "bins": 6}, data)


def heart_rate(**data: object) -> RunFile:
    return run_of({"name": "heart_rate", "size": "small"}, data)


def run_of(task: dict[str, object], data: dict[str, object]) -> RunFile:
    zones = data.pop("zones", {})
    document = {"name": "x", "seed": 3, "rounds": 1, "task": task, "data": data, "zones": zones}
    return RunFile.model_validate(document)


def table(folder: Path, **zones: object) -> RunFile:
    draw = np.random.Generator(np.random.Philox(key=2)).normal(size=(COUNT, 3)).round(3)
    rows = [",".join(map(str, row)) for row in zip(ZONES, DEVICES, LATITUDE, LONGITUDE, *draw.T, strict=True)]
    path = folder / "t.csv"
    path.write_text("\n".join(["county,user,lat,lon,y,p,q", *rows]) + "\n")
    places = {"latitude": "lat", "longitude": "lon"}
    columns = {"zone": "county", "device": "user", "label": "y", "features": ["p", "q"]}
    return linear(source="table", path=str(path), zones=zones, **columns, **places)


def polygons(folder: Path) -> RunFile:
    def box(name: str, west: float, east: float) -> dict[str, object]:
        ring = [[west, 49.0], [east, 49.0], [east, 54.0], [west, 54.0], [west, 49.0]]
        shape = {"type": "Polygon", "coordinates": [ring]}
        return {"type": "Feature", "properties": {"name": name}, "geometry": shape}

    boxes = [box("west", 18.0, 20.5), box("middle", 20.5, 22.0), box("far east", 22.0, 24.0), box("sea", 24.0, 25.0)]
    path = folder / "p.json"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": boxes}))
    return table(folder, by="polygons", polygons=str(path))


def sequences(folder: Path) -> RunFile:
    draw = np.random.Generator(np.random.Philox(key=1)).normal
    x, context, y = draw(size=(COUNT, 4, 3)), draw(size=(COUNT, 4, 5)), 120 + draw(size=(COUNT, 4))
    np.savez(folder / "s.npz", zone=ZONES, device=DEVICES, x=x, context=context, y=y)
    return heart_rate(source="sequences", path=str(folder / "s.npz"))


def fitrec(folder: Path) -> RunFile:
    places = (TRONDHEIM, OSLO, BERGEN, OSLO, BERGEN, TRONDHEIM)  # users roam
    lines = [
        workout(user=user, place=place, start=START + 7200 * (10 * user + i), points=20)
        for user in (1, 2, 3)
        for i, place in enumerate(places)
    ]
    path = folder / "endomondoHR.json"
    path.write_text("".join(f"{line}\n" for line in lines))
    return heart_rate(source="fitrec", path=str(path), country="NO", length=10)


GENERATED = {"devices": 11, "samples": 4, "features": 3, "kinds": 2, "contrast": 1.0, "difference": 0.1, "noise": 0.5}
SOURCES: dict[str, Callable[[Path], RunFile]] = {
    "tiny": lambda _: tiny(),
    "tiny-nowhere": lambda _: tiny("data.borders=[]"),
    "tiny-lonely": lambda _: tiny("data.borders=[['fir', 'ash'], ['birch', 'fir']]"),
    "generated_zones": lambda _: linear(source="generated_zones", zones={"names": ["m", "c", "x", "a"]}, **GENERATED),
    "synthetic_heart_rate": lambda _: heart_rate(
        source="synthetic_heart_rate", country="norway", length=4, share=0.02, zones={"min_devices": 2}
    ),
    "synthetic_named": lambda _: heart_rate(
        source="synthetic_heart_rate", country="norway", length=4, share=0.02, zones={"names": ["oslo", "hedmark"]}
    ),
    "flights": lambda _: run_of({"name": "flights"}, {"source": "flights", "aircraft": 2, "min_flights": 6000}),
    "table": lambda folder: table(folder, min_samples=15),
    "table-h3": lambda folder: table(folder, by="h3", resolution=3),
    "table-polygons": polygons,
    "sequences": sequences,
    "fitrec": fitrec,
}


def same(one: World, other: World) -> None:
    """The same zones, numbers, data, neighbours, histograms and tree, to the bit."""
    assert one.zones == other.zones
    assert one.data.neighbours == other.data.neighbours
    for ours, theirs in zip(one.data.zones, other.data.zones, strict=True):
        assert [device.device for device in ours.devices] == [device.device for device in theirs.devices]
        for a, b in zip(ours.devices, theirs.devices, strict=True):
            for split in ("train", "validation", "test"):
                for array in ("x", "y", "context"):
                    x, y = getattr(getattr(a, split), array), getattr(getattr(b, split), array)
                    assert (x is None) == (y is None)
                    assert x is None or (x.shape == y.shape and x.tobytes() == y.tobytes())
    assert one.histograms.tobytes() == other.histograms.tobytes()
    assert one.tree.to_json() == other.tree.to_json()
    assert one.theta.tobytes() == other.theta.tobytes()


@pytest.mark.parametrize("source", SOURCES)
def test_a_resolved_run_is_the_same_world(source: str, tmp_path: Path) -> None:
    run = SOURCES[source](tmp_path)
    found, world = resolved(run), load_world(run)
    assert found.zones.names == world.zones
    if world.data.neighbours is not None:
        near = {world.zones[z]: tuple(world.zones[o] for o in others) for z, others in enumerate(world.data.neighbours)}
        said = found.zones.adjacent or {}
        assert {zone: tuple(sorted(others, key=world.number)) for zone, others in said.items()} == near
    assert found.zones.places == (world.data.places or None)
    same(load_world(found), world)
    same(load_world(parse_run_file(found.to_toml())), world)
    assert resolved(found) == found
    for kept in RunFile.model_fields.keys() - {"zones"}:
        assert getattr(found, kept) == getattr(run, kept)


@pytest.mark.parametrize("source", SOURCES)
def test_devices_are_those_of_the_world_in_its_order(source: str, tmp_path: Path) -> None:
    run = SOURCES[source](tmp_path)
    expected = {zone.name: tuple(device.device for device in zone.devices) for zone in load_world(run).data.zones}
    for found in (devices_of(run), devices_of(resolved(run))):
        assert found == expected
        assert list(found) == list(expected)


def test_what_is_said_by_hand_stays() -> None:
    said = resolved(tiny("zones.adjacent={ash=['fir'], fir=['ash']}")).zones
    assert (said.names, said.adjacent) == (NAMES, {"ash": ("fir",), "fir": ("ash",)})
    assert resolved(tiny("data.borders=[]")).zones.adjacent is None
    assert resolved(tiny()).zones.adjacent == {
        "ash": ("birch",),
        "birch": ("ash", "cedar"),
        "cedar": ("birch", "elm"),
        "elm": ("cedar", "fir"),
        "fir": ("elm",),
    }


def test_data_that_changes_is_looked_at_again(tmp_path: Path) -> None:
    run = table(tmp_path)
    assert list(devices_of(run)) == ["Lesser-Poland", "a", "b", "c"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("c,")) + "\n")
    assert list(devices_of(run)) == ["Lesser-Poland", "a", "b"]


PLACES = {
    "generated_zones": None,
    "tiny": None,
    "synthetic_named": {"oslo": (((59.95, 10.75),),), "hedmark": (((61.4, 11.3),),)},
    "table": {
        "Lesser-Poland": (((50.01, 20.0),),),
        "a": (((50.21, 23.0),),),
        "b": (((51.51, 21.0),),),
        "c": (((53.01, 19.0),),),
    },
    "table-polygons": {
        "far-east": (((49.0, 22.0), (49.0, 24.0), (54.0, 24.0), (54.0, 22.0)),),
        "middle": (((49.0, 20.5), (49.0, 22.0), (54.0, 22.0), (54.0, 20.5)),),
        "west": (((49.0, 18.0), (49.0, 20.5), (54.0, 20.5), (54.0, 18.0)),),
    },
    "sequences": None,
}


@pytest.mark.parametrize("source", PLACES)
def test_zones_are_where_their_data_says(source: str, tmp_path: Path) -> None:
    run = SOURCES[source](tmp_path)
    assert resolved(run).zones.places == PLACES[source]
    assert places_of(run) == places_of(resolved(run)) == (PLACES[source] or {})


def test_places_by_hand_stay_also_those_of_zones_that_may_join(tmp_path: Path) -> None:
    by_hand = {"a": [[[1.0, 2.0]]], "nowhere": [[[3.0, 4.0]]]}
    run = table(tmp_path, places=by_hand)
    kept = {"a": (((1.0, 2.0),),), "nowhere": (((3.0, 4.0),),)}
    assert resolved(run).zones.places == places_of(run) == kept
    assert resolved(resolved(run)) == resolved(run)
    assert resolved(table(tmp_path, places={})).zones.places == {}
    assert places_of(table(tmp_path, places={})) == {}


def test_without_the_data_cells_and_polygons_still_have_their_places(tmp_path: Path) -> None:
    runs = [table(tmp_path, by="h3", resolution=3), polygons(tmp_path), table(tmp_path)]
    here = [places_of(run) for run in runs]
    named = [
        run.model_copy(update={"zones": run.zones.model_copy(update={"names": tuple(found)})})
        for run, found in zip(runs, here, strict=True)
    ]
    (tmp_path / "t.csv").unlink()
    cells, boxes, means = [places_of(run) for run in named]
    assert len(cells) > 1
    assert (cells, boxes, means) == (*here[:2], {})
    assert [places_of(run) for run in runs] == [{}, {}, {}]  # without the data nobody knows which zones there are
    (tmp_path / "p.json").unlink()
    assert places_of(named[1]) == {}
    assert places_of(tiny("data.source=no_such_module:open_source")) == {}


def test_a_source_whose_places_are_none_is_told_so_and_a_map_does_without() -> None:
    run = tiny("data.source=tests.simulator.test_resolve:Swapped")
    with pytest.raises(RunFileError, match=r"zones\.places\.birch\.0\.0 = \(120\.0, 50\.0\): a place is \[latitude, "):
        resolved(run)
    assert places_of(run) == {}


def test_a_run_of_115_cells_is_a_small_file(tmp_path: Path) -> None:
    h3 = pytest.importorskip("h3")
    disk = sorted(h3.grid_disk(h3.latlng_to_cell(52.2, 21.0, 5), 6))[:115]
    rows = [
        f"{device},{lat},{lon},1.0,2.0" for cell in disk for lat, lon in [h3.cell_to_latlng(cell)] for device in "uv"
    ]
    (tmp_path / "t.csv").write_text("\n".join(["user,lat,lon,y,p", *rows]) + "\n")
    columns = {"device": "user", "label": "y", "features": ["p"], "latitude": "lat", "longitude": "lon"}
    run = linear(source="table", path=str(tmp_path / "t.csv"), zones={"by": "h3"}, **columns)
    found = resolved(run)
    places = found.zones.places
    assert places is not None
    assert [len(rings) for rings in places.values()] == [1] * 115
    assert {len(ring) for rings in places.values() for ring in rings} == {6}
    with_places, without = (len(text.encode()) for text in (found.to_toml(), without_places(found).to_toml()))
    assert with_places - without < 16_000
    assert with_places < 45_000  # with the neighbours of all: it travels to every edge


def test_a_source_whose_neighbours_are_not_mutual_is_told_so() -> None:
    run = tiny("data.source=tests.simulator.test_resolve:OneWay")
    with pytest.raises(RunFileError, match="run 'tiny', with its zones filled in: zones: adjacent has 'birch' next to"):
        resolved(run)
