"""Sequences from `.npz` files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device.sources.grouped import GroupedSource
from device.sources.sequences import Options, open_source
from sgfusion.errors import DataError, RunFileError
from sgfusion.runfile import Data, Zones

COUNT, STEPS = 6, 4


def content(**changes: Any) -> dict[str, Any]:
    """Sample `i` has label `i` at every step."""
    arrays = {
        "x": np.arange(COUNT * STEPS * 3, dtype=np.float64).reshape(COUNT, STEPS, 3),
        "context": np.ones((COUNT, STEPS, 5)),
        "y": np.repeat(np.arange(COUNT)[:, None], STEPS, axis=1),
        "device": np.array([9, 10, 9, 9, 10, 9]),
        "zone": np.array(["a b", "a b", "a b", "c", "c", "c"]),
        "order": np.array([5, 4, 3, 2, 1, 0]),
        "lat": np.array([60.0, 60, 60, 61, 61, 61]),
        "lon": np.full(COUNT, 10.0),
        **changes,
    }
    return {key: array for key, array in arrays.items() if array is not None}


def opened(folder: Path, arrays: dict[str, Any], zones: Zones | None = None, **keys: Any) -> GroupedSource:
    np.savez(folder / "s.npz", **arrays)
    return of_file(folder / "s.npz", zones, **keys)


def of_file(path: Path, zones: Zones | None = None, **keys: Any) -> GroupedSource:
    data = Data.model_validate({"source": "sequences", "path": str(path), **keys})
    return open_source(data.options_as("data", Options), zones or Zones(), 1)


def samples(source: GroupedSource) -> dict[tuple[str, str], list[float]]:
    """Which samples each device has, by their labels."""
    return {
        (zone, device): [float(np.ravel(label)[0]) for part in (d.train, d.validation, d.test) for label in part.y]
        for zone in source.zones()
        for device in source.devices(zone)
        for d in [source.data(zone, device)]
    }


def test_samples_are_those_of_their_device_and_zone_in_order(tmp_path: Path) -> None:
    source = opened(tmp_path, content())
    assert samples(source) == {("a-b", "10"): [1], ("a-b", "9"): [2, 0], ("c", "10"): [4], ("c", "9"): [5, 3]}
    data = source.data("c", "10").train
    assert data.x.tolist() == content()["x"][4:5].tolist()
    assert data.y.shape == (1, STEPS)
    assert data.context is not None
    assert data.context.shape == (1, STEPS, 5)
    assert source.scaled
    assert source.notes == ()
    assert source.neighbours() == {"a-b": ("c",), "c": ("a-b",)}


def test_what_is_optional_may_be_left_out(tmp_path: Path) -> None:
    source = opened(tmp_path, content(context=None, order=None, lat=None, lon=None, y=np.arange(COUNT)))
    assert samples(source)["a-b", "9"] == [0, 2]
    assert source.data("a-b", "9").train.context is None
    assert source.data("a-b", "9").train.y.shape == (1,)
    assert source.neighbours() == {}


def test_places_are_zones_by_h3_without_a_zone(tmp_path: Path) -> None:
    source = opened(tmp_path, content(zone=None), Zones(by="h3", resolution=4))
    assert len(source.zones()) == 2
    with pytest.raises(
        DataError, match=r"has no 'zone'\. It has: .*lat.* Or let lat and lon say .* zones\.by = \"h3\""
    ):
        opened(tmp_path, content(zone=None))
    with pytest.raises(DataError, match=r"has no 'zone', did you mean 'zones'\? .* Or let lat and lon say the zones"):
        opened(tmp_path, {**content(zone=None), "zones": content()["zone"]})
    with pytest.raises(DataError, match=r"has no 'zone'\. It has: context, device, order, x, y$"):
        opened(tmp_path, content(zone=None, lat=None, lon=None))
    with pytest.raises(DataError, match="has no 'lat'"):
        opened(tmp_path, content(lat=None, lon=None), Zones(by="h3"))
    with pytest.raises(DataError, match="has no 'lon'"):
        opened(tmp_path, content(lon=None))


def test_public_constants_scale_each_feature(tmp_path: Path) -> None:
    scale = {"x": [[0, 1], [1, 2], [-1, 0.5]], "context": [[0.5, 0.25]] * 5}
    data = opened(tmp_path, content(), scale=scale).data("c", "10").train
    first = content()["x"][4, 0]
    assert data.x[0, 0].tolist() == [first[0], (first[1] - 1) / 2, (first[2] + 1) / 0.5]
    assert data.context is not None
    assert set(data.context.ravel().tolist()) == {2.0}
    assert set(data.y.ravel().tolist()) == {4.0}
    only = opened(tmp_path, content(), scale={"x": [[0, 1]] * 3}).data("c", "10").train
    assert only.context is not None
    assert set(only.context.ravel().tolist()) == {1.0}


@pytest.mark.parametrize(
    ("scale", "changes", "message"),
    [
        ({"x": [[0, 1]]}, {}, r"data\.scale\.x has 1 pairs of constants and x has shape \(6, 4, 3\): give 3"),
        ({"context": [[0, 1]] * 4}, {}, r"data\.scale\.context has 4 pairs"),
        ({"context": [[0, 1]] * 5}, {"context": None}, "has no 'context'"),
    ],
)
def test_constants_fit_the_features(tmp_path: Path, scale: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        opened(tmp_path, content(**changes), scale=scale)


def test_a_deviation_is_positive(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"data\.scale\.x\.0\.1 = 0"):
        opened(tmp_path, content(), scale={"x": [[0, 0]] * 3})


def test_samples_with_something_missing_are_left_out_and_counted_once(tmp_path: Path) -> None:
    arrays = content(
        y=np.repeat(np.arange(COUNT, dtype=float)[:, None], STEPS, axis=1), order=np.arange(COUNT, dtype=float)
    )
    arrays["x"][0, 2, 1] = np.nan
    arrays["y"][0, 0] = np.nan  # a second fault of the same sample
    arrays["context"][1, 0, 0] = np.inf
    arrays["y"][2, 3] = np.nan
    arrays["order"][3] = np.nan
    arrays["zone"][4] = ""
    source = opened(tmp_path, arrays)
    assert source.notes == (
        "1 of 6 samples left out: NaN in x",
        "1 of 6 samples left out: NaN in context",
        "1 of 6 samples left out: NaN in y",
        "1 of 6 samples left out: no order",
        "1 of 6 samples left out: no zone",
    )
    assert samples(source) == {("c", "9"): [5]}
    arrays["x"][:] = np.nan
    with pytest.raises(DataError, match="has no sample to use: 6 of 6 samples left out: NaN in x"):
        opened(tmp_path, arrays)


def test_numbers_beyond_float32_are_left_out(tmp_path: Path) -> None:
    arrays = content()
    arrays["x"][0, 0, 0] = 1e300
    assert opened(tmp_path, arrays).notes == ("1 of 6 samples left out: NaN in x",)


@pytest.mark.parametrize("key", ["x", "y", "device"])
def test_a_missing_key_is_named_with_those_there_are(tmp_path: Path, key: str) -> None:
    arrays = content()
    arrays[f"{key}s"] = arrays.pop(key)
    with pytest.raises(DataError, match=f"s.npz has no '{key}'.* It has: .*{key}s"):
        opened(tmp_path, arrays)
    with pytest.raises(DataError, match=r"has no 'device', did you mean 'devices'\?"):
        opened(tmp_path, {**{k: v for k, v in content().items() if k != "device"}, "devices": np.ones(COUNT, int)})


@pytest.mark.parametrize("key", ["x", "y"])
def test_a_key_in_another_case_is_the_one_that_was_meant(tmp_path: Path, key: str) -> None:
    arrays = content()
    arrays[key.upper()] = arrays.pop(key)
    with pytest.raises(DataError, match=rf"s\.npz has no '{key}', did you mean '{key.upper()}'\?"):
        opened(tmp_path, arrays)


def test_features_that_nobody_scaled_are_noted(tmp_path: Path) -> None:
    arrays = content(context=np.full((COUNT, STEPS, 5), -3.0))
    assert opened(tmp_path, arrays).notes == ()
    arrays["x"][2, 1, 1], arrays["context"][0, 0, 4] = 850.0, -200.0
    of_x, of_context = opened(tmp_path, arrays).notes
    assert of_x.startswith("x is taken as scaled, but feature 1 of 0 to 2 has values as large as 850: give a mean and")
    assert "data.scale.context" in of_context
    assert opened(tmp_path, arrays, scale={"x": [[0, 1]] * 3}).notes == (of_context,)
    assert opened(tmp_path, arrays, scaled=False).notes == ()
    arrays["y"] = np.array([0, 1, np.nan, 3, 4, 5])  # the sample is left out, and with it what looked odd
    assert opened(tmp_path, arrays).notes == ("1 of 6 samples left out: NaN in y", of_context)


def test_a_key_that_is_not_read_is_noted(tmp_path: Path) -> None:
    source = opened(tmp_path, {**content(context=None), "contxt": np.ones(3)})
    assert source.notes == ("not read: contxt of the file",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.ones((COUNT, 3))}, r"x of .* has shape \(6, 3\): give \[N, T, F\]"),
        ({"y": np.ones((COUNT, STEPS, 1))}, r"y of .* has shape \(6, 4, 1\): give \[N, T\] or \[N\]"),
        ({"y": np.ones((COUNT, 5))}, r"y of .* has shape \(6, 5\), so T = 5, but x has T = 4"),
        ({"y": np.ones(5)}, r"y of .* has shape \(5,\), so N = 5, but x has N = 6"),
        ({"context": np.ones((COUNT, 5, 5))}, r"context of .* so T = 5, but x has T = 4"),
        ({"device": np.ones((COUNT, 1), int)}, r"device of .* has shape \(6, 1\): give \[N\]"),
        ({"zone": np.array(["a"] * 7)}, r"zone of .* so N = 7"),
        ({"lat": np.float64(3)}, r"lat of .* has shape \(\): give \[N\]"),
        ({"x": np.ones((COUNT, STEPS, 0))}, r"x of .* has shape \(6, 4, 0\): there is nothing in it"),
        ({"x": np.ones((0, STEPS, 3))}, r"x of .* has shape \(0, 4, 3\): there is nothing in it"),
        ({"x": np.full((COUNT, STEPS, 3), "a")}, "x of .* is of type <U1: give numbers"),
        ({"y": np.ones(COUNT, complex)}, "y of .* is of type complex128: give numbers"),
        ({"device": np.ones(COUNT)}, "device of .* is of type float64: give text or whole numbers"),
        ({"lon": np.full(COUNT, "10")}, "lon of .* is of type <U2: give numbers"),
        ({"order": np.full(COUNT, "soon")}, "order of .* has 'soon': give numbers, timestamps, or ISO form"),
    ],
)
def test_a_wrong_shape_or_type_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        opened(tmp_path, content(**changes))


@pytest.mark.parametrize(
    "order",
    [
        np.array(["2024-01-03", "NaT", "2024-01-01", "2024-01-01", "2024-01-01", "2024-01-02"], "datetime64[D]"),
        np.array(["2024-01-03", "", "2024-01-01", "2024-01-01", "2024-01-01", "2024-01-02T12:00:00Z"]),
        np.array([3, np.nan, 1, 1, 1, 2]),
    ],
)
def test_order_may_be_times(tmp_path: Path, order: Any) -> None:
    source = opened(tmp_path, content(order=order, zone=np.full(COUNT, b"\xc3\x98st")))
    assert samples(source) == {("Øst", "10"): [4], ("Øst", "9"): [2, 3, 5, 0]}
    assert source.notes == ("1 of 6 samples left out: no order",)


def test_pickles_are_never_read(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    with pytest.raises(DataError, match=r"device of .* Python objects .* np\.asarray\(device, str\)"):
        opened(tmp_path, content(device=np.array([Trap()] * COUNT, object)))
    assert not (tmp_path / "ran").exists()


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"s\.npz': there is no such file"):
        of_file(tmp_path / "s.npz")
    np.savez(tmp_path / "whole.npz", **content())
    whole = (tmp_path / "whole.npz").read_bytes()
    flipped = bytearray(whole)
    flipped[whole.index(content()["x"].tobytes())] ^= 1
    for bad in (b"", b"nonsense", whole[: len(whole) // 2], bytes(flipped)):
        (tmp_path / "s.npz").write_bytes(bad)
        with pytest.raises(DataError, match=r"s\.npz' is not an \.npz of np\.savez, or is damaged"):
            of_file(tmp_path / "s.npz")
    np.save(tmp_path / "s.npy", np.ones(3))
    with pytest.raises(DataError, match="is a single array"):
        of_file(tmp_path / "s.npy")


def test_raw_sequences_are_left_to_the_task(tmp_path: Path) -> None:
    assert opened(tmp_path, content()).scaled
    assert not opened(tmp_path, content(), scaled=False).scaled
    with pytest.raises(RunFileError, match="leave out scale"):
        opened(tmp_path, content(), scaled=False, scale={"x": [[0, 1], [0, 1], [0, 1]]})
