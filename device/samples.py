"""A device's samples, and how they are split in order of time."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgfusion.errors import DataError

Array = npt.NDArray[np.float32]

HELD_OUT = 5
"""One in so many samples is for the validation, and one in so many for the test."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples in order of time. Invariant: all arrays have one row a sample, and are finite.

    `x` is `[N, F]`, or `[N, T, F]` for sequences; `y` is `[N]`, or `[N, T]` for a label at each step; `context` is
    `[N, T, C]` where a task has one.
    """

    x: Array
    y: Array
    context: Array | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y", "context"):
            array = getattr(self, name)
            if array is None:
                continue
            array = np.ascontiguousarray(array, np.float32)
            if len(array) != len(self.x):
                raise DataError(f"{name} has {len(array)} rows and x has {len(self.x)}: give one for each sample")
            if not np.isfinite(array).all():
                raise DataError(f"{name}: sample {int(np.argwhere(~np.isfinite(array))[0][0])} is not finite")
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int) -> "Samples":
        """Samples `start` to `stop`."""
        context = None if self.context is None else self.context[start:stop]
        return Samples(self.x[start:stop], self.y[start:stop], context)


def joined(parts: Iterable[Samples]) -> Samples:
    """All samples of the parts, in their order."""
    parts = list(parts)
    contexts = [part.context for part in parts if part.context is not None]
    if contexts and len(contexts) != len(parts):
        raise DataError("some samples have a context and some have none: give one to all or to none")
    return Samples(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate(contexts) if contexts else None,
    )


@dataclass(frozen=True, eq=False)
class DeviceData:
    """What one device holds of one zone. A device that roams has one of these for each zone that it attends."""

    zone: str
    device: str
    train: Samples
    validation: Samples
    test: Samples

    def __len__(self) -> int:
        return len(self.train) + len(self.validation) + len(self.test)


def split(zone: str, device: str, samples: Samples) -> DeviceData:
    """Split in order of time: the first three fifths to train on, the next to choose models by, the last to test.

    Short histories are shared out too, or most devices that are seldom seen would never be tested: three samples are
    one of each, two are one to train on and one to test, a single one is to train on.
    """
    count = len(samples)
    if not count:
        raise DataError(f"zone {zone!r}, device {device!r} has no samples: leave it out")
    test = max(1, count // HELD_OUT) if count > 1 else 0
    validation = max(1, count // HELD_OUT) if count > 2 else 0
    first, second = count - test - validation, count - test
    return DeviceData(zone, device, samples.part(0, first), samples.part(first, second), samples.part(second, count))
