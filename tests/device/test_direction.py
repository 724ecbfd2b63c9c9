"""What a device returns for requested weights (method 6)."""

import numpy as np
import pytest

from device.batch import batch_of
from device.direction import device_direction, direction_and_loss, passes_of
from device.learner import Learner
from device.samples import Samples
from device.tasks import linear
from sgfusion.runfile import Update

SAMPLES = Samples(np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]], np.float32), np.array([1, 2, 3], np.float32))
THETA = np.array([0.3, -0.2], np.float32)
UPDATES = [
    (Update(), 1),
    (Update(kind="delta", epochs=1, rate=0.1), 1),
    (Update(kind="delta", epochs=2, rate=0.1, batch=2), 4),
    (Update(kind="delta", epochs=3, rate=0.1, batch=9), 3),
]


@pytest.mark.parametrize(("update", "passes"), UPDATES)
def test_a_device_returns_what_the_run_asks_for_and_its_loss_changes_no_bit(update: Update, passes: int) -> None:
    learner, batch = Learner(linear.make_task(linear.Options()), SAMPLES), batch_of(SAMPLES)
    of_kind = learner.gradient(THETA, batch) if update.kind == "gradient" else learner.delta(THETA, batch, update)
    direction, loss = direction_and_loss(learner, THETA, batch, update)
    assert direction.tobytes() == device_direction(learner, THETA, batch, update).tobytes() == of_kind.tobytes()
    assert loss > 0
    assert passes_of(batch, update) == passes
