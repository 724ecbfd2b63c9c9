"""What one device holds of one zone, checked and scaled for its task."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from device.local_data import device_data
from device.samples import DeviceData, Samples
from device.tasks import linear
from sgfusion.errors import DataError


def numbers(count: int) -> Samples:
    return Samples(np.ones((count, 2), np.float32), np.ones(count, np.float32))


class OneDevice:
    """A source with one device, which has nothing to validate on."""

    notes: tuple[str, ...] = ()

    def __init__(self, *, scaled: bool) -> None:
        self.scaled = scaled

    def zones(self) -> tuple[str, ...]:
        return ("ash",)

    def devices(self, zone: str) -> tuple[str, ...]:
        return ("u1",) if zone == "ash" else ()

    def data(self, zone: str, device: str) -> DeviceData:
        return DeviceData(zone, device, numbers(3), numbers(0), numbers(2))

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        return {}


def doubled(samples: Samples) -> Samples:
    return Samples(2 * samples.x, samples.y)


def test_raw_samples_are_scaled_by_the_task_and_scaled_ones_are_left() -> None:
    task = replace(linear.make_task(linear.Options()), scale=doubled)
    for scaled, value in ((False, 2.0), (True, 1.0)):
        data = device_data(task, OneDevice(scaled=scaled), "ash", "u1")
        assert (data.zone, data.device) == ("ash", "u1")
        assert [len(part) for part in (data.train, data.validation, data.test)] == [3, 0, 2]
        assert np.unique(data.train.x).tolist() == np.unique(data.test.x).tolist() == [value]


def test_samples_that_are_not_the_tasks_are_refused_with_their_place() -> None:
    def check(samples: Samples) -> None:
        assert len(samples)  # those who have none are not asked
        raise DataError("labels are whole numbers")

    task = replace(linear.make_task(linear.Options()), check=check)
    with pytest.raises(DataError, match="zone 'ash', device 'u1': labels are whole numbers"):
        device_data(task, OneDevice(scaled=True), "ash", "u1")
