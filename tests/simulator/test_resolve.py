"""A run file with its zones filled in means the same run, whatever its source."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from sgfusion.errors import RunFileError
from sgfusion.runfile import RunFile, parse_run_file
from simulator.resolve import devices_of, resolved
from simulator.world import World, load_world
from tests.device.sources.test_fitrec import BERGEN, OSLO, START, TRONDHEIM, workout
from tests.simulator.tiny import NAMES, Tiny, tiny


class OneWay(Tiny):
    """A source that has its second zone next to its first, and not the other way round."""

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        first, second, *_ = self.zones()
        return {first: (second,)}


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


def test_a_source_whose_neighbours_are_not_mutual_is_told_so() -> None:
    run = tiny("data.source=tests.simulator.test_resolve:OneWay")
    with pytest.raises(RunFileError, match="run 'tiny', with its zones filled in: zones: adjacent has 'birch' next to"):
        resolved(run)
