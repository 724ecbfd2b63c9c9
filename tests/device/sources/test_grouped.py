"""Samples grouped by zone and device: nothing is lost, and every device's are in order of time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.samples import Samples
from device.sources.grouped import GroupedSource, zone_names
from sgfusion.errors import DataError
from sgfusion.runfile import Zones

arange: Any = np.arange
ones: Any = np.ones  # samples take any numbers, and have them as float32

Row = tuple[str, str, int]
rows = st.lists(
    st.tuples(st.sampled_from(["Oslo", "Lesser Poland", "Ø.1"]), st.sampled_from(["9", "10", "u"]), st.integers(0, 3)),
    min_size=1,
    max_size=60,
)


def grouped(content: list[Row], zones: Zones | None = None, *, ordered: bool = True) -> GroupedSource:
    """Sample `i` has label `i`."""
    samples = Samples(arange(len(content))[:, None], arange(len(content)))
    order = np.array([row[2] for row in content]) if ordered else None
    zone, device = [row[0] for row in content], [row[1] for row in content]
    return GroupedSource(samples, zone, device, order, zones or Zones(), scaled=True)


def labels(source: GroupedSource, zone: str, device: str) -> list[int]:
    data = source.data(zone, device)
    return [int(label) for part in (data.train, data.validation, data.test) for label in part.y]


@given(rows)
def test_grouping_loses_nothing_and_splits_are_disjoint_and_in_order_of_time(content: list[Row]) -> None:
    source = grouped(content)
    found = []
    for zone in source.zones():
        for device in source.devices(zone):
            data = source.data(zone, device)
            for part in (data.train, data.validation, data.test):
                assert part.x[:, 0].tolist() == part.y.tolist()
            its = labels(source, zone, device)
            assert [content[i][2] for i in its] == sorted(content[i][2] for i in its)
            assert {(content[i][0].replace(" ", "-"), content[i][1]) for i in its} == {(zone, device)}
            found += its
    assert sorted(found) == list(range(len(content)))


@given(rows)
def test_samples_of_one_time_and_those_without_any_stay_as_they_come(content: list[Row]) -> None:
    source = grouped(content, ordered=False)
    assert all(labels(source, z, d) == sorted(labels(source, z, d)) for z in source.zones() for d in source.devices(z))
    at_once = grouped([(zone, device, 0) for zone, device, _ in content])
    assert all(labels(at_once, z, d) == labels(source, z, d) for z in source.zones() for d in source.devices(z))


def test_zones_and_devices_are_in_order_of_their_names_as_text() -> None:
    source = grouped([("b", "9", 0), ("a", "9", 0), ("b", "10", 0)])
    assert source.zones() == ("a", "b")
    assert source.devices("b") == ("10", "9")
    assert source.notes == ()
    assert source.neighbours() == {}


def test_a_run_names_its_zones_in_its_own_order() -> None:
    source = grouped([("b", "u", 0), ("a", "u", 0), ("c", "u", 0)], Zones(names=("c", "a")))
    assert source.zones() == ("c", "a")


def test_a_device_that_roams_has_data_in_each_of_its_zones() -> None:
    source = grouped([("a", "u", 1), ("b", "u", 0), ("a", "u", 0)])
    assert labels(source, "a", "u") == [2, 0]
    assert labels(source, "b", "u") == [1]


def test_a_device_with_one_sample_trains_on_it() -> None:
    data = grouped([("a", "u", 0)]).data("a", "u")
    assert (len(data.train), len(data.validation), len(data.test)) == (1, 0, 0)


def test_a_zone_of_one_device_is_kept_unless_more_are_asked_for() -> None:
    content = [("a", "u", 0), ("a", "u", 1), ("b", "u", 0), ("b", "v", 0)]
    assert grouped(content).zones() == ("a", "b")
    source = grouped(content, Zones(min_devices=2))
    assert source.zones() == ("b",)
    assert source.notes == ("1 of 2 zones left out: fewer than 2 devices or 1 samples",)
    assert grouped([*content, ("b", "v", 1)], Zones(min_samples=3)).zones() == ("b",)
    with pytest.raises(DataError, match="no zone is left: all 2 have fewer than 3 devices"):
        grouped(content, Zones(min_devices=3))
    with pytest.raises(DataError, match=r"zone 'a' of zones\.names has 1 devices and 2 samples"):
        grouped(content, Zones(names=("a",), min_devices=2))


def test_an_empty_zone_is_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"zone 'c' of zones\.names has no data: the source has 'a'"):
        grouped([("a", "u", 0)], Zones(names=("a", "c")))
    with pytest.raises(DataError, match="there are no samples at all"):
        grouped([])
    source = grouped([("a", "u", 0)])
    with pytest.raises(DataError, match="zone 'c' has no data: there are 'a'"):
        source.devices("c")
    with pytest.raises(DataError, match="zone 'a' has no device 'v': it has 'u'"):
        source.data("a", "v")


def test_a_zone_device_or_time_for_each_sample() -> None:
    with pytest.raises(DataError, match="1 zones for 2 samples"):
        GroupedSource(Samples(ones((2, 1)), ones(2)), ["a"], ["u", "u"], None, Zones(), scaled=True)
    with pytest.raises(DataError, match="3 order for 2 samples"):
        GroupedSource(Samples(ones((2, 1)), ones(2)), ["a"] * 2, ["u"] * 2, ones(3), Zones(), scaled=True)


def test_a_context_goes_with_its_sample() -> None:
    context = arange(5).reshape(5, 1, 1)
    samples = Samples(ones((5, 1, 1)), arange(5), context)
    source = GroupedSource(samples, ["a"] * 5, ["u"] * 5, arange(5)[::-1], Zones(), scaled=False)
    data = source.data("a", "u")
    assert data.train.context is not None
    assert data.train.context.ravel().tolist() == data.train.y.tolist() == [4, 3, 2]
    assert not source.scaled


def test_neighbours_are_asked_for_among_the_zones_that_are_kept() -> None:
    source = GroupedSource(
        Samples(ones((3, 1)), ones(3)),
        ["a", "b", "b"],
        ["u", "u", "v"],
        None,
        Zones(min_devices=2),
        scaled=True,
        neighbours=lambda zones: dict.fromkeys(zones, ("x",)),
    )
    assert source.neighbours() == {"b": ("x",)}


def test_zone_names_are_fit_for_file_names() -> None:
    assert zone_names(["Lesser Poland", "a/b", "Östergötland", "Lesser Poland", "..x-"]).tolist() == [
        "Lesser-Poland",
        "a-b",
        "Östergötland",
        "Lesser-Poland",
        "x",
    ]
    with pytest.raises(DataError, match="zones 'a b' and 'a/b' would both be 'a-b'"):
        zone_names(["a/b", "a b"])
    with pytest.raises(DataError, match="zone ' - ': a zone's name has a letter or a digit"):
        zone_names(["a", " - "])
    assert len(zone_names([])) == 0


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_a_zone_name_is_one_that_a_run_file_may_name(names: list[str]) -> None:
    try:
        clean = zone_names(names).tolist()
    except DataError:
        return
    assert Zones(names=tuple(dict.fromkeys(clean))).names
    assert zone_names(clean).tolist() == clean
