"""Samples from Parquet and CSV files."""

import csv
import datetime as dt
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from device.sources.grouped import GroupedSource
from device.sources.lines import line_of
from device.sources.table import Options, open_source
from sgfusion.errors import DataError, RunFileError
from sgfusion.runfile import Data, Zones

KEYS = {"device": "user", "zone": "county", "label": "delay", "features": ["far", "high"]}

NOWHERE = (
    "have no place on the globe (latitude within ±90, longitude within ±180): they count, but not for the zones'"
    " neighbours"
)


def opened(path: Path, zones: Zones | None = None, **keys: Any) -> GroupedSource:
    """As a run file would open it: lists come as lists."""
    given = {"path": str(path), **KEYS, **keys}
    data = Data.model_validate({"source": "table", **{key: value for key, value in given.items() if value is not None}})
    return open_source(data.options_as("data", Options), zones or Zones(), 1)


def written(folder: Path, columns: dict[str, Any], kind: str = "parquet") -> Path:
    path = folder / f"t.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.table(columns), path)
    else:
        rows = zip(*columns.values(), strict=True)
        lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
        path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


def content(count: int = 6) -> dict[str, Any]:
    return {
        "user": ["u", "v"] * (count // 2),
        "county": ["Oslo"] * (count // 2) + ["Sogn og Fjordane"] * (count // 2),
        "delay": list(range(count)),
        "far": [10.5 * i for i in range(count)],
        "high": [100 + i for i in range(count)],
        "when": list(range(count))[::-1],
        "lat": [60.0] * (count // 2) + [61.0] * (count // 2),
        "lon": [10.0] * count,
        "note": ["text"] * count,
    }


def everything(source: GroupedSource) -> dict[tuple[str, str], list[float]]:
    return {
        (zone, device): np.concatenate([d.train.y, d.validation.y, d.test.y]).tolist()
        for zone in source.zones()
        for device in source.devices(zone)
        for d in [source.data(zone, device)]
    }


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_row_is_a_sample_of_its_device_in_its_zone(tmp_path: Path, kind: str) -> None:
    source = opened(written(tmp_path, content(), kind))
    assert everything(source) == {
        ("Oslo", "u"): [0, 2],
        ("Oslo", "v"): [1],
        ("Sogn-og-Fjordane", "u"): [4],
        ("Sogn-og-Fjordane", "v"): [3, 5],
    }
    assert source.data("Oslo", "v").train.x.tolist() == [[10.5, 101]]
    assert source.scaled
    assert source.notes == ()
    assert source.neighbours() == {}


def test_places_give_a_columns_zones_their_neighbours(tmp_path: Path) -> None:
    source = opened(written(tmp_path, content()), latitude="lat", longitude="lon")
    assert source.neighbours() == {"Oslo": ("Sogn-og-Fjordane",), "Sogn-og-Fjordane": ("Oslo",)}
    assert source.places() == {"Oslo": (((60.0, 10.0),),), "Sogn-og-Fjordane": (((61.0, 10.0),),)}


def test_places_that_are_none_are_noted_where_a_column_names_the_zones(tmp_path: Path) -> None:
    path = written(tmp_path, {**content(), "lat": [60.0, None, 95.0, 61.0, 61.0, 61.0]})
    source = opened(path, latitude="lat", longitude="lon")
    assert source.notes == (f"2 of 6 samples {NOWHERE}",)
    assert len(list(chain(*everything(source).values()))) == 6
    west = {**content(), "lon": [-100.0] * 6}
    source = opened(written(tmp_path, west), latitude="lon", longitude="lat")
    assert source.notes == (f"6 of 6 samples {NOWHERE}; are latitude and longitude swapped?",)
    assert source.neighbours() == {"Oslo": (), "Sogn-og-Fjordane": ()}


def test_places_are_zones_by_h3_with_a_zone_column_or_without(tmp_path: Path) -> None:
    path = written(tmp_path, content())
    for zone in ("county", None):
        source = opened(path, Zones(by="h3", resolution=4), latitude="lat", longitude="lon", zone=zone)
        assert len(source.zones()) == 2
        assert all(len(name) == 15 for name in source.zones())


def test_public_constants_scale_the_features_they_name(tmp_path: Path) -> None:
    source = opened(written(tmp_path, content()), scale={"high": [100, 0.5]})
    assert source.data("Oslo", "v").train.x.tolist() == [[10.5, 2]]
    assert source.data("Oslo", "v").train.y.tolist() == [1]
    assert source.scaled


DAY = dt.datetime(2024, 5, 1, 12)  # noqa: DTZ001 (a time without an offset is what is tested)
TIMES = {
    "integers beyond a float's": [2**60 + i for i in (2, 0, 1)],
    "floats": [0.3, 0.1, 0.2],
    "timestamps": [DAY + dt.timedelta(microseconds=i) for i in (2, 0, 1)],
    "dates": [dt.date(2024, 5, i) for i in (3, 1, 2)],
    "ISO text": ["2024-05-01T09:30:00-02:00", "2024-05-01T10:00:00", "2024-05-01T11:00:00Z"],
    "ISO text in two forms": ["2024-05-03", "2024-05-01 10:00", "20240502T100000"],
}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES.keys())
def test_time_orders_a_devices_samples(tmp_path: Path, times: list[Any], kind: str) -> None:
    columns = {"user": ["u"] * 3, "county": ["a"] * 3, "delay": [2, 0, 1], "far": [0] * 3, "high": [0] * 3, "t": times}
    path = written(tmp_path, columns, kind)
    assert everything(opened(path)) == {("a", "u"): [2, 0, 1]}
    assert everything(opened(path, time="t")) == {("a", "u"): [0, 1, 2]}


def test_time_that_is_none_is_named_and_missing_time_left_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"time column 'note' of .* has 'text': give numbers, timestamps, or ISO form"):
        opened(written(tmp_path, content()), time="note")
    for times in (
        [3, None, 1, 2, 5, 4],
        [3.0, None, 1, 2, 5, 4],
        ["2024-05-01", None, "", *["2024-05-02"] * 3],
        [None] * 5 + [1],
    ):
        source = opened(written(tmp_path, {**content(), "when": times}), time="when")
        left_out = sum(time in (None, "") for time in times)
        first = f"{'first ' if left_out > 1 else ''}in row {[time in (None, '') for time in times].index(True) + 1}"
        assert source.notes == (f"{left_out} of 6 samples left out: no time in 'when', {first}",)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_wrong_column_is_named_with_those_that_there_are(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, content(), kind)
    there = "Its columns: user, county, delay, far, high, when, lat, lon, note"
    for keys, message in (
        ({"zone": "country"}, r"data.zone: .* has no column 'country', did you mean 'county'\? " + there),
        ({"features": ["far", "xyz"]}, r"data.features: .* has no column 'xyz'\. " + there),
        ({"device": "users"}, r"data.device: .* did you mean 'user'\?"),
        ({"device": "USER"}, r"data.device: .* did you mean 'user'\?"),
        ({"label": "late"}, "data.label: .* has no column 'late'"),
        ({"time": "then"}, "data.time: .* has no column 'then'"),
        ({"latitude": "la", "longitude": "lon"}, r"data.latitude: .* did you mean 'lat'\?"),
    ):
        with pytest.raises(DataError, match=message):
            opened(path, **keys)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_with_something_missing_are_left_out_and_counted_once(tmp_path: Path, kind: str) -> None:
    columns = content(10)
    columns["user"][0] = None
    columns["far"][0] = None  # a second fault of the same row
    columns["county"][1] = None
    columns["delay"][2] = None
    columns["far"][3] = float("nan")
    columns["far"][4] = float("inf")
    columns["far"][5] = 1e300  # beyond float32
    columns["high"][6] = None
    source = opened(written(tmp_path, columns, kind))
    assert source.notes == (
        f"1 of 10 samples left out: no device in 'user', in {where(kind, 1)}",
        f"1 of 10 samples left out: no number in 'delay', in {where(kind, 3)}",
        f"3 of 10 samples left out: no number in 'far', first in {where(kind, 4)}",  # the first row is counted above
        f"1 of 10 samples left out: no number in 'high', in {where(kind, 7)}",
        f"1 of 10 samples left out: no zone, in {where(kind, 2)}",
    )
    assert sorted(chain(*everything(source).values())) == [7, 8, 9]


def test_a_file_of_which_nothing_is_left_is_refused_with_the_reasons(tmp_path: Path) -> None:
    columns = {**content(), "far": [float("nan")] * 6}
    with pytest.raises(
        DataError, match="has no sample to use: 6 of 6 samples left out: no number in 'far', first in row 1"
    ):
        opened(written(tmp_path, columns))
    empty = {name: pa.array([], pa.string() if name in ("user", "county") else pa.float64()) for name in content()}
    with pytest.raises(DataError, match="has no sample to use: it has none at all"):
        opened(written(tmp_path, empty))


def where(kind: str, row: int) -> str:
    """As who opens the file finds it: the first row of a CSV file is below its heading."""
    return f"line {row + 1}" if kind == "csv" else f"row {row}"


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\ufeffuser,county,delay,far\n\nu,Oslo,1,2.5\r\n\n\nv,Oslo,2,oops\n", "utf-8")
    with pytest.raises(DataError, match=r"such as 'oops' in line 6: give numbers$"):
        opened(path, features=["far"])
    path.write_text("user,county,delay,far\n\nu,Oslo,1,2.5\n\n\nv,Oslo,2,\n", "utf-8")
    assert opened(path, features=["far"]).notes == ("1 of 2 samples left out: no number in 'far', in line 6",)
    path.write_text('a,b\n"x\ny",1\nz,2\n')
    assert [line_of(str(path), row) for row in (1, 2)] == [2, 4], "a quoted value may have lines of its own"


@pytest.fixture
def short_fields() -> Iterator[None]:
    """Python's own limit of a field, which is the whole process's: reverse_geocoder, for one, lifts it."""
    before = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("short_fields")
def test_a_field_that_python_does_not_read_costs_the_line_and_not_the_message(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"user,county,delay,far,note\nu,Oslo,1,2.5,{'x' * 200_000}\nv,Oslo,2,oops,y\n")
    with pytest.raises(DataError, match=r"such as 'oops' in row 2: give numbers$"):
        opened(path, features=["far"])


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_text_where_numbers_should_be_is_named_with_an_example(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, content(), kind)
    with pytest.raises(
        DataError, match=rf"feature column 'note' of .* type string, such as 'text' in {where(kind, 1)}: give numbers$"
    ):
        opened(path, features=["far", "note"])
    with pytest.raises(DataError, match=r"label column 'note' .* give numbers, classes as 0, 1, 2"):
        opened(path, label="note")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("texts", "example"),
    [
        (["-2.45", " 1e3 ", "NA", "", "broken", "worse"], ("'broken'", 5, "give numbers")),
        ([None, "2", "true", "3", "4", "5"], ("'true'", 3, "give numbers")),
        (["1.5", "2", "3", "4", "5", "1_000"], ("'1_000'", 6, "give numbers")),
        (["1.5", '"34,4"', '"3,5"', "4", "5", "6"], ("'34,4'", 2, "give numbers, with a decimal point")),
    ],
)
def test_of_texts_and_numbers_the_first_text_is_the_example(
    tmp_path: Path, kind: str, texts: list[str | None], example: tuple[str, int, str]
) -> None:
    value, row, advice = example
    said = f"{value} in {where(kind, row)}: {advice}$"
    unquoted = texts if kind == "csv" else [text and text.strip('"') for text in texts]
    with pytest.raises(DataError, match=f"feature column 'far' of .* type string, such as {said}"):
        opened(written(tmp_path, {**content(), "far": unquoted}, kind))


def test_numbers_written_as_text_are_an_example_too(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"type string, such as '1' in row 2: give numbers$"):
        opened(written(tmp_path, {**content(), "far": [None, "1", "2", "3", "4", "5"]}))
    with pytest.raises(DataError, match=r"type string: give numbers$"):
        opened(written(tmp_path, {**content(), "far": pa.array([None] * 6, pa.string())}))
    with pytest.raises(
        DataError, match=r"type date32\[day\], such as datetime.date\(2024, 5, 1\) in row 1: give numbers$"
    ):
        opened(written(tmp_path, {**content(), "far": [dt.date(2024, 5, 1)] * 6}))


def test_numbers_of_every_kind_are_numbers(tmp_path: Path) -> None:
    columns = {**content(), "far": [True, False] * 3, "high": pa.array([1, 2, 3, 4, 5, 6], pa.decimal128(5, 2))}
    source = opened(written(tmp_path, columns))
    assert source.data("Oslo", "v").train.x.tolist() == [[0, 2]]


def test_devices_and_zones_are_text_as_it_stands(tmp_path: Path) -> None:
    columns = {**content(), "user": ["007", "7", "10", "9", "9", "9"], "county": ["NA"] * 6}
    assert opened(written(tmp_path, columns, "csv")).devices("NA") == ("007", "10", "7", "9")
    columns["user"], columns["county"] = [1, 2, 10, 9, 9, None], [4.0, 4.0, 4.0, 4.0, float("nan"), 4.0]
    source = opened(written(tmp_path, columns))
    assert source.zones() == ("4",)
    assert source.devices("4") == ("1", "10", "2", "9")
    assert source.notes == (
        "1 of 6 samples left out: no device in 'user', in row 6",
        "1 of 6 samples left out: no zone, in row 5",
    )
    categories = pa.array(["b", None, "a", "a", "a", "a"]).dictionary_encode()
    assert opened(written(tmp_path, {**content(), "county": categories})).zones() == ("a", "b")
    with pytest.raises(DataError, match=r"column 'user' of .* has values of type list"):
        opened(written(tmp_path, {**content(), "user": [[1]] * 6}))


def test_one_device_zones_and_single_samples_are_kept_unless_more_is_asked_for(tmp_path: Path) -> None:
    columns = {**content(), "county": ["a", "b", "a", "a", "a", "a"]}
    path = written(tmp_path, columns)
    source = opened(path)
    assert source.devices("b") == ("v",)
    assert len(source.data("b", "v").train) == 1
    assert len(source.data("b", "v").test) == 0
    fewer = opened(path, Zones(min_devices=2))
    assert fewer.zones() == ("a",)
    assert fewer.notes == ("1 of 2 zones left out: fewer than 2 devices or 1 samples",)
    with pytest.raises(DataError, match=r"zone 'c' of zones\.names has no data"):
        opened(path, Zones(names=("c",)))


def test_zones_by_column_need_the_column(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"needs a zone for each sample: name its column with data\.zone, or give places"
    ):
        opened(written(tmp_path, content()), zone=None)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"t\.csv': there is no such file"):
        opened(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"t\.xlsx': give a \.parquet or a \.csv file"):
        opened(tmp_path / "t.xlsx")
    for name, text in (("t.parquet", b"nonsense"), ("t.csv", b""), ("e.csv", b"user,county\n1\n1,2,3\n")):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(DataError, match=f"{name}' cannot be read"):
            opened(tmp_path / name)
    (tmp_path / "twice.csv").write_text("user,county,delay,far,high,far\nu,a,1,2,3,4\n")
    with pytest.raises(DataError, match=r"data\.features: .* has 2 columns 'far': rename one"):
        opened(tmp_path / "twice.csv")


@pytest.mark.parametrize("row", ["u;a;1;2;3", "u;a;1,5;2,5;3,5"])
def test_a_file_that_is_separated_by_semicolons_is_told_so(tmp_path: Path, row: str) -> None:
    (tmp_path / "t.csv").write_text(f"user;county;delay;far;high\n{row}\n")
    with pytest.raises(DataError, match=r"t\.csv' is separated by ';': save it with commas"):
        opened(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "text",
    [
        "user,county,delay,far,high\nu,Østfold,1,2,3\n",  # in a column of text
        "user,county,delay,far,high\nu,a,1,2,Ø\n",  # in one of numbers
        "user,county,delay,far,high,Ø\nu,a,1,2,3,4\n",  # in the first line
    ],
)
def test_a_file_that_is_not_utf_8_is_told_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text, "latin-1")
    with pytest.raises(DataError, match=r"t\.csv.*: save (it|the file) as UTF-8$"):
        opened(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"scale": {"delay": [0, 1]}}, r"^data\.scale has 'delay', which is not among data\.features: far, high$"),
        ({"scale": {"hihg": [0, 1]}}, r"^data\.scale: .*t\.csv has no column 'hihg', did you mean 'high'\?"),
        (
            {"features": ["far", "highh"], "scale": {"high": [0, 1]}},
            r"^data\.features: .*t\.csv has no column 'highh', did you mean 'high'\?",
        ),
    ],
)
def test_of_two_spellings_the_file_tells_which_is_right(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    (tmp_path / "t.csv").write_text("user,county,delay,far,high\nu,a,1,2,3\n", "utf-8")
    with pytest.raises(DataError, match=message):
        opened(tmp_path / "t.csv", **keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"latitude": "lat"}, "latitude and longitude go together"),
        ({"features": []}, r"data\.features"),
        ({"features": ["far", "far"]}, "features has 'far' twice"),
        ({"features": ["far", "delay"]}, "label = 'delay' is among the features"),
        ({"scale": {"far": [0, 0]}}, r"data\.scale\.far"),
        ({"scale": {"far": [0]}}, r"data\.scale\.far"),
        ({"labels": "county"}, r"data\.labels = 'county': unknown key, did you mean label\?"),
        ({"label": 3}, r"data\.label = 3"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(RunFileError, match=message):
        opened(tmp_path / "t.csv", **keys)
