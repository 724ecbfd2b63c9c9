"""`sgfusion export`: a zone's model as files that other programs load, with a card that says what it is."""

from pathlib import Path

from rich.console import Console

from console.model_card import model_card
from console.trained_model import TrainedModel
from device.export import Format, model_of, named_weights, program
from sgfusion.durable import replace_file

SUFFIX = {"torchscript": ".pt", "torch.export": ".pt2"}


def export(model: TrainedModel, folder: Path, form: Format, screen: Console) -> None:
    """Write the named weights, the program if one is asked for, and the card."""
    setting = model.setting
    module = model_of(setting.task, setting.like, model.theta)
    steps, file = None, f"{model.zone}.safetensors"
    replace_file(folder / file, named_weights(module))
    written = [file]
    if form != "safetensors":
        made = program(module, setting.like, form)
        steps, file = made.steps, f"{model.zone}{SUFFIX[form]}"
        replace_file(folder / file, made.content)
        written.append(file)
    shapes = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    replace_file(folder / "MODEL_CARD.md", model_card(model, form, file, shapes, steps).encode())
    written.append("MODEL_CARD.md")
    fixed = f" It takes sequences of {steps} steps alone: torchscript takes any." if steps is not None else ""
    screen.print(
        f"{folder}: {', '.join(written)}: round {model.round} of zone {model.zone}.{fixed}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
