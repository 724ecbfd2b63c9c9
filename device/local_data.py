"""What one device holds of one zone, checked and scaled for its task: on a device, and in the simulator."""

from dataclasses import replace

from device.samples import DeviceData
from device.sources.source import Source
from device.tasks.task import Task
from sgfusion.errors import DataError


def device_data(task: Task, source: Source, zone: str, device: str) -> DeviceData:
    """The device's samples in the model's units; an error names the zone and the device."""
    data = source.data(zone, device)
    try:
        for part in (data.train, data.validation, data.test):
            if len(part):
                task.check(part)
    except DataError as error:
        raise DataError(f"zone {zone!r}, device {device!r}: {error}", shows=error.shows) from error
    if source.scaled:
        return data
    train, validation, test = map(task.scale, (data.train, data.validation, data.test))
    return replace(data, train=train, validation=validation, test=test)
