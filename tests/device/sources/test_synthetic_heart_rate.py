"""Synthetic heart rates: the Table's counts, purity, and knobs that do what they say."""

from typing import Any

import numpy as np
import pytest

from device.samples import DeviceData, Samples, joined
from device.sources.source import open_source as open_by_name
from device.sources.synthetic_countries import COUNTRIES, COUNTRY_NAMES, CountryName
from device.sources.synthetic_heart_rate import Options, SyntheticHeartRate, apportion, open_source
from device.sources.synthetic_workouts import ZoneTraits, workouts, zone_traits
from sgfusion.errors import DataError, RunFileError
from sgfusion.runfile import Zones, parse_run_file
from sgfusion.streams import raw_stream
from tests.run_files import BASE

TABLE = {  # method 10: devices, samples, zones
    "norway": (48, 5_902, 13),
    "spain": (110, 9_609, 13),
    "us": (99, 14_774, 32),
    "thailand": (105, 10_970, 23),
    "france": (67, 8_094, 18),
    "poland": (205, 16_907, 16),
}
VOIVODESHIPS = (
    "dolnoslaskie",
    "kujawsko-pomorskie",
    "lodzkie",
    "lubelskie",
    "lubuskie",
    "malopolskie",
    "mazowieckie",
    "opolskie",
    "podkarpackie",
    "podlaskie",
    "pomorskie",
    "slaskie",
    "swietokrzyskie",
    "warminsko-mazurskie",
    "wielkopolskie",
    "zachodniopomorskie",
)
BOXES: dict[CountryName, tuple[int, int, int, int]] = {  # south, north, west, east
    "norway": (57, 72, 4, 32),
    "spain": (36, 44, -10, 4),
    "us": (24, 50, -125, -66),
    "thailand": (5, 21, 97, 106),
    "france": (42, 52, -5, 9),
    "poland": (49, 55, 14, 25),
}


def synthetic(
    country: CountryName = "norway", seed: int = 1, names: tuple[str, ...] = (), **options: Any
) -> SyntheticHeartRate:
    return open_source(Options(country=country, **options), Zones(names=names), seed)


def held(data: DeviceData) -> Samples:
    return joined([data.train, data.validation, data.test])


def zone_samples(source: SyntheticHeartRate, zone: str) -> Samples:
    return joined(held(source.data(zone, device)) for device in source.devices(zone))


def same(a: Samples, b: Samples) -> bool:
    assert a.context is not None
    assert b.context is not None
    return np.array_equal(a.x, b.x) and np.array_equal(a.y, b.y) and np.array_equal(a.context, b.context)


@pytest.mark.parametrize("country", COUNTRY_NAMES)
@pytest.mark.parametrize("seed", [0, 7])
def test_counts_are_exactly_those_of_the_table(country: CountryName, seed: int) -> None:
    source = synthetic(country, seed, length=2)
    devices, samples, zones = TABLE[country]
    data = [source.data(zone, device) for zone in source.zones() for device in source.devices(zone)]
    assert len(source.zones()) == zones
    assert len(data) == len({one.device for one in data}) == devices
    assert sum(len(held(one)) for one in data) == samples
    assert all(len(one.test) and len(one.validation) for one in data)
    assert min(len(source.devices(zone)) for zone in source.zones()) >= 1
    assert all(device.startswith("synthetic-") for zone in source.zones() for device in source.devices(zone))


def test_polands_zones_are_its_voivodeships() -> None:
    assert synthetic("poland").zones() == VOIVODESHIPS


@pytest.mark.parametrize("country", COUNTRY_NAMES)
def test_neighbours_are_symmetric(country: CountryName) -> None:
    source = synthetic(country)
    neighbours = source.neighbours()
    assert set(neighbours) == set(source.zones())
    assert all(neighbours[zone] for zone in neighbours)
    assert all(zone in neighbours[other] and other != zone for zone in neighbours for other in neighbours[zone])


def test_neighbours_are_near() -> None:
    neighbours = synthetic("poland").neighbours()
    assert {"mazowieckie", "podkarpackie", "swietokrzyskie"} <= set(neighbours["lubelskie"])
    assert "lubuskie" not in neighbours["lubelskie"]


def test_zones_are_at_the_middles_of_their_regions() -> None:
    assert synthetic("poland", names=("podlaskie", "lubelskie")).places() == {
        "podlaskie": (((53.3, 22.9),),),
        "lubelskie": (((51.2, 22.9),),),
    }


def test_places_lie_in_their_country() -> None:
    for name, (south, north, west, east) in BOXES.items():
        zones = COUNTRIES[name].zones
        assert list(zones) == sorted(zones)
        assert all(south < lat < north and west < lon < east for lat, lon in zones.values())


def test_a_device_alone_has_what_it_has_among_all() -> None:
    source = synthetic()
    whole = {
        (zone, device): held(source.data(zone, device)) for zone in source.zones() for device in source.devices(zone)
    }
    zone = source.zones()[4]
    device = source.devices(zone)[-1]
    alone = synthetic(names=(zone,))
    assert alone.zones() == (zone,)
    assert alone.devices(zone) == source.devices(zone)
    assert same(held(alone.data(zone, device)), whole[zone, device])
    assert len({samples.x.tobytes() for samples in whole.values()}) == len(whole)
    first, other = whole[zone, source.devices(zone)[0]], synthetic(seed=2)
    assert not np.array_equal(held(other.data(zone, other.devices(zone)[0])).y[:5], first.y[:5])


def test_heart_rates_and_features_are_plausible() -> None:
    source = synthetic(names=("oslo", "troms", "hedmark", "telemark"))
    samples = joined(zone_samples(source, zone) for zone in source.zones())
    assert samples.x.shape[1:] == (50, 3)
    assert samples.y.shape[1:] == (50,)
    assert 120 < samples.y.mean() < 160
    assert 12 < samples.y.std() < 28
    assert samples.y.min() >= 60
    assert samples.y.max() <= 200
    distance, altitude, elapsed = np.moveaxis(samples.x, 2, 0)
    assert not distance[:, 0].any()
    assert (np.diff(distance, axis=1) > 0).all()
    assert altitude.min() >= 0
    assert not elapsed[:, 0].any()
    assert (elapsed[:, -1] >= 10).all()
    assert 5 < (60 * distance[:, -1] / elapsed[:, -1]).mean() < 15
    assert not source.scaled
    assert "synthetic" in source.notes[0]


def test_the_context_is_the_workout_before() -> None:
    source = synthetic()
    zone = source.zones()[0]
    samples = held(source.data(zone, source.devices(zone)[0]))
    assert samples.context is not None
    assert samples.context.shape[1:] == (50, 5)
    assert not samples.context[0].any()
    assert np.array_equal(samples.context[1:, :, :3], samples.x[:-1])
    assert np.array_equal(samples.context[1:, :, 4], samples.y[:-1])
    since = samples.context[1:, :, 3]
    assert (since == since[:, :1]).all()
    assert (since[:, 0] > samples.x[:-1, -1, 2] / 60).all()  # hours: later than the end of the workout before
    without = held(synthetic(context=False).data(zone, source.devices(zone)[0]))
    assert without.context is None
    assert np.array_equal(without.x, samples.x)


def test_a_share_keeps_the_first_workouts_and_enough_to_split() -> None:
    source, tenth, least = synthetic(), synthetic(share=0.1), synthetic(share=1e-9)
    for zone in source.zones():
        assert tenth.devices(zone) == source.devices(zone)
        device = source.devices(zone)[0]
        whole, part = held(source.data(zone, device)), held(tenth.data(zone, device))
        assert len(part) == max(5, round(0.1 * len(whole)))
        assert same(part, whole.part(0, len(part)))
        assert len(held(least.data(zone, device))) == 5
        assert len(least.data(zone, device).test) == 1
    assert least.notes[1] == f"{5 * 48} of 5902 samples kept: share = 1e-09"


def test_without_difference_zones_have_the_same_traits() -> None:
    random = [np.random.Generator(raw_stream(1, "traits")) for _ in range(2)]
    alike = zone_traits(random[0], 13, difference=0.0, alike=0.5)
    assert {(zone.hardness, zone.efficiency, zone.altitude) for zone in alike} == {(0.0, 0.0, 150.0)}
    source = synthetic(difference=0.0)
    # The traits are the same, the runners are not: their first workouts take each its own time.
    assert len({float(source.data(zone, source.devices(zone)[0]).train.x[0, -1, 2]) for zone in source.zones()}) == 13
    usual = zone_traits(random[1], 13, difference=1.0, alike=0.5)
    assert len({zone.hardness for zone in usual}) == 13
    spread = {
        difference: np.std([zone_samples(source, zone).y.mean() for zone in source.zones()])
        for difference in (0.0, 1.0, 2.0)
        for source in [synthetic("poland", difference=difference, share=0.1, length=10)]
    }
    assert 2 * spread[0.0] < spread[1.0] < spread[2.0]


def test_labels_follow_from_habits_and_features_from_the_law() -> None:
    apart, along = synthetic(alike=0.0), synthetic(alike=1.0)
    for zone in apart.zones()[:3]:
        device = apart.devices(zone)[0]
        one, other = held(apart.data(zone, device)), held(along.data(zone, device))
        assert np.array_equal(one.y, other.y)
        assert not np.allclose(one.x[..., 0], other.x[..., 0], rtol=0.01)


def test_each_part_of_the_law_changes_the_speed_and_not_the_heart_rate() -> None:
    def made(**traits: float) -> tuple[np.ndarray, np.ndarray]:
        zone = ZoneTraits(**{**dict.fromkeys(ZoneTraits.__annotations__, 0.0), "altitude": 500.0, **traits})
        x, _, y = workouts(np.random.Generator(raw_stream(1, "workouts")), zone, 4, 20)
        return x, y

    x, y = made()
    for traits in ({"efficiency": 1.0}, {"climbing": 1.0}, {"fatigue": 1.0}):
        other_x, other_y = made(**traits)
        assert np.array_equal(other_y, y)
        assert not np.allclose(other_x[:, 1:, 0], x[:, 1:, 0], rtol=0.001)
    assert np.allclose(made(efficiency=1.0)[0][..., 0], np.exp(0.15) * x[..., 0])
    assert (made(fatigue=1.0)[0][:, 1:, 0] < x[:, 1:, 0]).all()
    for traits in ({"hardness": 1.0}, {"unevenness": 1.0}, {"hills": 1.0}):
        assert not np.allclose(made(**traits)[1], y, atol=1)
    assert made(hardness=1.0)[1].mean() > y.mean() + 3
    assert np.allclose(made(duration=1.0)[0][..., 2], np.exp(0.25) * x[..., 2])


def test_alike_is_how_much_of_the_law_goes_along_with_the_habits() -> None:
    def shares(alike: float) -> list[float]:
        random = np.random.Generator(raw_stream(1, "traits"))
        zones = zone_traits(random, 20_000, difference=1.0, alike=alike)
        habits = [(zone.hardness, -zone.hills, -zone.duration) for zone in zones]
        laws = [(zone.efficiency, zone.climbing, zone.fatigue) for zone in zones]
        assert np.allclose(np.var(laws, axis=0), 1, atol=0.05)
        both = zip(np.transpose(habits), np.transpose(laws), strict=True)
        return [float(np.corrcoef(habit, law)[0, 1] ** 2) for habit, law in both]

    assert np.allclose(shares(1.0), 1)
    assert np.allclose(shares(0.0), 0, atol=0.02)
    assert np.allclose(shares(0.5), 0.5, atol=0.02)


def test_apportioned_parts_are_exact() -> None:
    assert apportion(10, np.array([1.0, 1.0, 1.0]), 1).tolist() == [4, 3, 3]
    assert apportion(10, np.array([6.0, 1.0, 0.0]), 1).tolist() == [7, 2, 1]
    assert apportion(5, np.array([1.6, 3.4]), 0).tolist() == [2, 3]
    assert apportion(6, np.array([5.0, 1.0, 1.0]), 2).tolist() == [2, 2, 2]


def test_refusals_name_the_value() -> None:
    with pytest.raises(DataError, match=r"'oz' of zones\.names has no data: the source has 'akershus'"):
        synthetic(names=("oz",))
    with pytest.raises(DataError, match="zone 'oz' has no data: there are 'akershus'"):
        synthetic().devices("oz")
    with pytest.raises(DataError, match="zone 'oslo' has no device 'u1': it has 'synthetic-"):
        synthetic().data("oslo", "u1")
    with pytest.raises(DataError, match=r"zones\.by = 'h3': the zones of synthetic_heart_rate are regions"):
        open_source(Options(country="norway"), Zones(by="h3"), 1)
    with pytest.raises(DataError, match=r"no zone is left: all 13 have fewer than 1000 devices"):
        open_source(Options(country="norway"), Zones(min_devices=1000), 1)


def test_small_zones_can_be_left_out() -> None:
    source = open_source(Options(country="us"), Zones(min_devices=3), 1)
    few = 32 - len(source.zones())
    assert 0 < few < 32
    assert all(len(source.devices(zone)) >= 3 for zone in source.zones())
    assert source.notes[1] == f"{few} of 32 zones left out: fewer than 3 devices or 1 samples"
    assert set(source.neighbours()) == set(source.zones())


def test_a_run_file_names_it() -> None:
    overrides = ["data.source=synthetic_heart_rate", "data.country=poland"]
    source = open_by_name(parse_run_file(BASE, overrides))
    assert len(source.zones()) == 16
    with pytest.raises(RunFileError, match=r"data\.country"):
        open_by_name(parse_run_file(BASE, [*overrides, "data.country=atlantis"]))
