"""pydantic's findings in a run file, in words a user can act on: the key, its value, and what is allowed."""

from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sgfusion.arrays import shown


def explain(error: ValidationError, model: type[BaseModel], source: str, section: tuple[str, ...]) -> str:
    """All findings, a line each; `section` is where in the file the `model` stands."""
    findings = [_finding(detail, model, section) for detail in error.errors()]
    if len(findings) == 1:
        return f"{source}: {findings[0]}"
    return f"{source}: {len(findings)} things to mend\n" + "\n".join(f"  {finding}" for finding in findings)


def _finding(detail: ErrorDetails, model: type[BaseModel], section: tuple[str, ...]) -> str:
    place = [str(part) for part in detail["loc"]]
    key = ".".join((*section, *place)) or "the file"
    if detail["type"] == "extra_forbidden":
        return f"{key} = {shown(detail['input'])}: {_unknown(place, model)}"
    if detail["type"] == "missing":
        return f"{key} is missing: it has no default"
    if detail["type"] == "value_error":  # one of our own sentences: it says what is allowed
        sentence = str(detail["ctx"]["error"])
        return (
            f"{key}: {sentence}"
            if isinstance(detail["input"], dict)
            else f"{key} = {shown(detail['input'])}: {sentence}"
        )
    if detail["type"] in ("model_type", "model_attributes_type"):
        return f"{key} = {shown(detail['input'])}: should be a section, [{key}]"
    message = detail["msg"].removeprefix("Input should be ").replace("'", '"')
    return f"{key} = {shown(detail['input'])}: should be {message}"


def _unknown(place: list[str], model: type[BaseModel]) -> str:
    """What the keys are where an unknown one was found, the likely one first."""
    for name in place[:-1]:
        if name in model.model_fields:  # else it is the number of an item in a list of sections
            model = _section(model.model_fields[name].annotation) or model
    keys = [field.alias or name for name, field in model.model_fields.items()]
    close = get_close_matches(place[-1], keys, n=1)
    return "unknown key" + (f", did you mean {close[0]}?" if close else ".") + f" Allowed: {', '.join(keys)}"


def _section(annotation: Any) -> type[BaseModel] | None:
    """The section that an annotation such as `Hrg`, `Scale | None` or `tuple[Layer, ...]` speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section(part)) is not None), None)
