"""`MODEL_CARD.md` beside an exported model: what it is, what it was trained on, and what is promised of privacy."""

import platform
from collections.abc import Iterator
from importlib.metadata import version

from console.formats import number
from console.trained_model import Setting, TrainedModel
from device.inputs import columns_of
from device.sources import sequences, table
from device.tasks.task import TASKS

LOAD = {
    "safetensors": """from safetensors.torch import load_file

weights = load_file("{file}")  # a state dict: parameters by name""",
    "torchscript": """import torch

model = torch.jit.load("{file}")
output = model({arguments})  # scaled as below""",
    "torch.export": """import torch

model = torch.export.load("{file}").module(check_guards=False)
output = model({arguments})  # scaled as below""",
}


def model_card(model: TrainedModel, form: str, file: str, shapes: dict[str, tuple[int, ...]], steps: int | None) -> str:
    """The card, in Markdown."""
    return "\n".join(_lines(model, form, file, shapes, steps)) + "\n"


def _lines(
    model: TrainedModel, form: str, file: str, shapes: dict[str, tuple[int, ...]], steps: int | None
) -> Iterator[str]:
    setting, run = model.setting, model.setting.run
    metric = setting.task.metric
    made_up = "**made up (synthetic)**: it says nothing of real people" if setting.synthetic else "not synthetic"
    kept = "the best on the validation samples" if model.kind == "best" else "the last, whether or not it was the best"
    yield f"# {run.name}: the model of zone {model.zone}"
    yield ""
    yield f"Task `{setting.task.name}`, trained by {model.title} in a federation of geographical zones."
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| data | `{run.data.source}`, {made_up} |"
    devices = model.devices
    if devices is None and model.zone in setting.source.zones():
        devices = len(setting.source.devices(model.zone))
    yield f"| zone | {model.zone}, " + (
        "whose data was not here when this was written |" if devices is None else f"{devices} devices of its own |"
    )
    yield f"| rounds | {run.rounds}; these weights are those of round {model.round}, {kept} |"
    unit = f" ({metric.unit})" if metric.unit else ""
    for key, said in (
        ("before", "test samples, before training"),
        ("alone", "test samples, trained alone"),
        ("test", "test samples, these weights"),
        ("validation", "validation samples, these weights"),
    ):
        if model.values.get(key) is not None:
            yield f"| {metric.name}{unit}, {said} | {number(model.values[key])} |"
    yield f"| seed | {run.seed} |"
    yield f"| run file | SHA-256 `{model.digest}` |"
    versions = f"sgfusion {version('sgfusion')}, torch {version('torch')}, Python {platform.python_version()}"
    yield f"| made with | {versions} |"
    yield ""
    yield "## Privacy"
    yield ""
    yield from _privacy(model)
    yield ""
    yield "## Load it"
    yield ""
    yield "```python"
    sequences = setting.like.x.ndim == 3
    arguments = "x" if setting.like.context is None else "x, context"
    yield LOAD[form].format(file=file, arguments=arguments)
    yield "```"
    yield ""
    time = f"T = {steps}" if steps is not None else "T steps, any number"
    dims = f"N samples, {time}" if sequences else "N samples"
    x = ["N", *(["T"] if sequences else []), str(setting.like.x.shape[-1])]
    yield f"`x` is float32 `[{', '.join(x)}]` ({dims})" + (
        "." if setting.like.context is None else f", `context` float32 `[N, T, {setting.like.context.shape[-1]}]`."
    )
    yield from _columns(setting)
    yield ""
    yield "## Parameters"
    yield ""
    yield "| name | shape |"
    yield "|---|---|"
    for name, shape in shapes.items():
        yield f"| `{name}` | {list(shape)} |"


def _privacy(model: TrainedModel) -> Iterator[str]:
    histogram = model.setting.run.histogram
    if histogram.epsilon == "off":
        yield 'Devices released their label histograms **without noise** (`histogram.epsilon = "off"`).'
    elif model.simulated:
        yield (
            f"Trained by the simulator: histograms had noise of the law of ε = {histogram.epsilon:g}, from a seed."
            " That is for experiments and **protects nobody**."
        )
    else:
        unit = "replacing one sample" if histogram.adjacency == "replace" else "adding or removing one sample"
        yield (
            f"Each device's label histogram was released once, ε = {histogram.epsilon:g}-differentially private for"
            f" {unit} of that device (Laplace mechanism, on the device, entered in its ledger)."
        )
    yield (
        "That covers the **histograms alone**. Gradients and scores that devices sent to their edge are not noised, so"
        " ε says nothing of what these, or the weights made from them, reveal of the training samples."
    )


def _columns(setting: Setting) -> Iterator[str]:
    """What a stranger fills `x` with, and what comes out."""
    run, task = setting.run, setting.task
    if run.data.source == "table":
        options = run.data.options_as("data", table.Options)
        yield (
            "Its columns, in this order, are columns of the run's table. Where there are a mean and a spread (those of"
            " `[data.scale]`), the model takes `(value - mean) / spread`."
        )
        yield ""
        yield "| column of `x` | feature | mean | spread |"
        yield "|---|---|---|---|"
        for column, name in enumerate(options.features):
            mean, spread = options.scale.get(name, ("as it is", ""))
            cell = name.replace("|", r"\|")
            yield f"| {column} | `{cell}` | {mean} | {spread} |"
        yield ""
        yield f"{_output(setting, options.label)} `sgfusion predict` does all of it."
        return
    names, context = columns_of(run, setting.like)
    if names[0] != "x0" and len(names) == setting.like.x.shape[-1]:  # flights have sines and cosines of some
        behind = f"; those of `context`: {', '.join(context)}" if context else ""
        yield f"Columns of `x`, in this order: {', '.join(names)}{behind}."
    own = run.data.options_as("data", sequences.Options).scale if run.data.source == "sequences" else sequences.Scale()
    constants = [
        f"`{name}` by {[list(pair) for pair in pairs]}"
        for name, pairs in (("x", own.x), ("context", own.context))
        if pairs
    ]
    scaled = (
        f"scaled by `[data.scale]`, mean and spread of each column, `(value - mean) / spread`: {', '.join(constants)}"
        if constants
        else "already scaled in the run's data: scale yours alike"
        if setting.source.scaled
        else f"scaled by the public constants of the task (`device/tasks/{task.name}.py`)"
    )
    yield f"Inputs are {scaled}; outputs are in the task's units. `sgfusion predict` does all of it."


def _output(setting: Setting, label: str) -> str:
    """What the model says of a table's label; of a task that is not ours, only what is known."""
    name, unit = setting.run.task.name, setting.task.metric.unit
    if name not in TASKS:
        said = f"; its {setting.task.metric.name} is in {unit}" if unit else ""
        return f"The output is that of the task `{name}`, whose labels are the column `{label}`{said}."
    if name == "activity":
        last = len(setting.task.edges) - 2
        return (
            f"The output is `[N, {last + 1}]`, a score for each value of `{label}` from 0 to {last}: the highest"
            " is the answer."
        )
    return f"The output is `[N]`, `{label}` of each sample, in the unit of that column{unit and f' ({unit})'}."
