"""Made-up zones: pure in (seed, zone, device), of hidden kinds, on a ring."""

from typing import Any

import numpy as np
import pytest

from device.samples import DeviceData, joined
from device.sources.generated_zones import GeneratedZones, Options, open_source
from device.sources.source import known_places
from device.sources.source import open_source as open_by_name
from sgfusion.errors import DataError
from sgfusion.runfile import Zones, parse_run_file
from tests.run_files import BASE

NAMES = ("north", "east", "south", "west")


GIVEN = {"devices": 3, "samples": 20, "features": 4, "kinds": 2, "contrast": 1.0, "difference": 0.3, "noise": 0.5}


def generated(seed: int = 3, names: tuple[str, ...] = NAMES, **options: Any) -> GeneratedZones:
    return open_source(Options(**{**GIVEN, **options}), Zones(names=names), seed)


def arrays(data: DeviceData) -> list[bytes]:
    return [part.tobytes() for held in (data.train, data.validation, data.test) for part in (held.x, held.y)]


def fitted(source: GeneratedZones, zone: str) -> np.ndarray:
    """The zone's law, by least squares."""
    held = joined(source.data(zone, device).train for device in source.devices(zone))
    law: np.ndarray = np.linalg.lstsq(held.x, held.y, rcond=None)[0]
    return law


def test_each_device_has_samples_to_train_on_and_others_held_out() -> None:
    source = generated(devices=11, validation=7, test=9)
    assert source.zones() == NAMES
    assert source.devices("east") == ("d0", "d1", "d10", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9")
    data = source.data("east", "d10")
    assert (data.zone, data.device) == ("east", "d10")
    assert (len(data.train), len(data.validation), len(data.test)) == (20, 7, 9)
    assert data.train.x.shape == (20, 4)
    assert data.train.y.shape == (20,)
    assert source.scaled
    assert source.notes == ()


def test_data_are_a_pure_function_of_seed_zone_and_device() -> None:
    source = generated()
    whole = {(zone, device): source.data(zone, device) for zone in NAMES for device in source.devices(zone)}
    alone = generated(devices=9).data("south", "d1")
    assert arrays(alone) == arrays(whole["south", "d1"]) == arrays(source.data("south", "d1"))
    assert len({arrays(data)[0] for data in whole.values()}) == len(whole)
    assert arrays(generated(seed=4).data("south", "d1")) != arrays(alone)
    assert arrays(generated(names=("a", "b", "c")).data("c", "d1")) == arrays(alone)


def test_zones_of_a_kind_have_the_same_law_but_for_the_difference() -> None:
    source = generated(samples=200, difference=0.0, noise=0.01)
    laws = {zone: fitted(source, zone) for zone in NAMES}
    assert np.allclose(laws["north"], laws["south"], atol=0.01)
    assert np.linalg.norm(laws["north"] - laws["east"]) > 0.3
    differing = generated(samples=200, difference=0.5, noise=0.01)
    assert np.linalg.norm(fitted(differing, "north") - fitted(differing, "south")) > 0.2
    alike = generated(samples=200, contrast=0.0, difference=0.0, noise=0.01)
    assert np.allclose(fitted(alike, "north"), fitted(alike, "east"), atol=0.01)


def test_kinds_differ_in_their_labels() -> None:
    source = generated(samples=400, difference=0.0)
    means = {zone: joined(source.data(zone, d).train for d in source.devices(zone)).y.mean() for zone in NAMES}
    assert abs(means["north"] - means["south"]) < 0.5
    assert abs(means["north"] - means["east"]) > 1


def test_labels_can_be_classes() -> None:
    source = generated(classes=3, samples=300)
    shares = {}
    for zone in NAMES:
        held = joined(source.data(zone, device).train for device in source.devices(zone))
        assert set(held.y.tolist()) == {0, 1, 2}
        shares[zone] = np.mean(held.y == 0)
    assert abs(shares["north"] - shares["east"]) > 0.2 > abs(shares["north"] - shares["south"])


def test_zones_lie_on_a_ring() -> None:
    assert generated().neighbours() == {
        "north": ("east", "west"),
        "east": ("north", "south"),
        "south": ("east", "west"),
        "west": ("north", "south"),
    }
    assert generated(names=("a", "b")).neighbours() == {"a": ("b",), "b": ("a",)}
    assert generated(names=("a",)).neighbours() == {"a": ()}
    assert known_places(generated()) == {}  # a ring is no place on the globe


def test_refusals_name_the_value() -> None:
    with pytest.raises(DataError, match=r"zones\.names is empty: .* name some"):
        generated(names=())
    with pytest.raises(DataError, match="zone 'x' has no data: there are 'north', 'east'"):
        generated().devices("x")
    with pytest.raises(DataError, match="zone 'east' has no device 'd3': it has 'd0', 'd1', 'd2'"):
        generated().data("east", "d3")
    options = Options.model_validate(GIVEN)
    with pytest.raises(DataError, match=r"'a' of zones\.names has 3 devices and 210 samples, fewer than 4 devices"):
        open_source(options, Zones(names=("a",), min_devices=4), 1)
    with pytest.raises(DataError, match=r"zones\.by = 'h3'"):
        open_source(options, Zones(names=("a",), by="h3"), 1)
    with pytest.raises(DataError, match=r"zones\.neighbours = 'delaunay': the zones of generated_zones have no places"):
        open_source(options, Zones(names=("a",), neighbours="delaunay"), 1)


def test_a_run_file_names_it() -> None:
    overrides = ["data.source=generated_zones", 'zones.names=["north","east"]', "seed=3"]
    source = open_by_name(parse_run_file(BASE, [*overrides, *(f"data.{key}={value}" for key, value in GIVEN.items())]))
    assert arrays(source.data("east", "d2")) == arrays(generated().data("east", "d2"))
