"""`sgfusion predict`: a zone's model on samples of yours, or on the zone's own test samples."""

import csv
import io
import math
from pathlib import Path

import numpy as np
from rich.console import Console

from console.formats import number
from console.trained_model import TrainedModel
from device.batch import batch_of
from device.export import model_of, predicted
from device.inputs import read_samples
from device.learner import Learner
from device.local_data import device_data
from device.samples import Array, Samples, joined
from sgfusion.durable import replace_file
from sgfusion.errors import DataError

SHOWN = 10
"""Lines that are printed where no file is asked for."""


def predict(model: TrainedModel, given: Path | None, out: Path | None, screen: Console) -> None:
    """Predictions as CSV, in the task's units; without samples, the metric on the zone's test samples too."""
    setting = model.setting
    if given is None:
        samples = _test_samples(model, screen)
    else:
        samples = read_samples(given, setting.run, setting.task, setting.like, scaled=setting.source.scaled)
    text = as_csv(predicted(model_of(setting.task, setting.like, model.theta), samples), samples)
    lines = text.splitlines()
    if out is not None:
        replace_file(out, text.encode())
        screen.print(f"{out}: {len(lines) - 1:,} predictions", highlight=False, markup=False, soft_wrap=True)
        return
    if given is None:
        return
    shown = (
        lines if len(lines) <= SHOWN + 1 else [*lines[: SHOWN + 1], f"… {len(lines) - SHOWN - 1:,} more: give --out"]
    )
    screen.print("\n".join(shown), highlight=False, markup=False, soft_wrap=True)


def as_csv(output: Array, samples: Samples) -> str:
    """A line a label: of a sequence each step, of a class the one with the highest score and all scores."""
    rows: list[list[object]] = []
    steps = samples.x.shape[1] if samples.x.ndim == 3 else None
    if output.ndim == 1:
        head = ["sample", "prediction"]
        rows = [[i, _short(value)] for i, value in enumerate(output)]
    elif output.shape[1] == steps:
        head = ["sample", "step", "prediction"]
        rows = [[i, t, _short(value)] for i, row in enumerate(output) for t, value in enumerate(row)]
    else:
        head = ["sample", "class", *(f"score_{c}" for c in range(output.shape[1]))]
        rows = [[i, int(np.argmax(row)), *map(_short, row)] for i, row in enumerate(output)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([head, *rows])
    return text.getvalue()


def _test_samples(model: TrainedModel, screen: Console) -> Samples:
    """The zone's own, and what the model comes to on them: that of the table it is from."""
    setting, metric = model.setting, model.setting.task.metric
    source = setting.source
    if model.zone not in source.zones():
        raise DataError(
            f"the samples of zone {model.zone!r} are not in this run's data as it is here: give --input FILE"
        )
    parts = [device_data(setting.task, source, model.zone, device).test for device in source.devices(model.zone)]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise DataError(f"zone {model.zone!r} has no test samples: give --input FILE")
    learner = Learner(setting.task, setting.like)
    scores = [learner.evaluate(model.theta, batch_of(part)) for part in parts]  # device by device, as a cluster does
    value = metric.value(math.fsum(total for total, _ in scores), sum(count for _, count in scores))
    unit = f" {metric.unit}" if metric.unit else ""
    samples = joined(parts)
    said = model.values.get("test")
    beside = "" if said is None else f"; the results say {number(said)}{unit}"
    screen.print(
        f"{metric.name} {number(value)}{unit} on the {len(samples):,} test samples of zone {model.zone}{beside}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    return samples


def _short(value: np.float32) -> str:
    """As few digits as tell this float32 from any other."""
    return str(value)
