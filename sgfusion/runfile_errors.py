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
        if section and not place:  # `[data]: ` stands before it
            return sentence
        is_section = _model_at(place, model) is not None  # then the sentence names the keys and values it speaks of
        return f"{key}: {sentence}" if is_section else f"{key} = {shown(detail['input'])}: {sentence}"
    if detail["type"] in ("model_type", "model_attributes_type"):
        return f"{key} = {shown(detail['input'])}: should be a section, [{key}]"
    message = detail["msg"].removeprefix("Input should be ").replace("'", '"')
    message = message.replace("valid tuple", "list").replace("valid dictionary", "table")
    return f"{key} = {shown(detail['input'])}: should be {message}"


def _unknown(place: list[str], model: type[BaseModel]) -> str:
    """What the keys are where an unknown one was found, the likely one first."""
    keys = list(_fields(_model_at(place[:-1], model)))
    close = get_close_matches(place[-1], keys, n=1)
    if len(place) == 1:  # a key of a section, without the section
        close += [f"{name}.{place[0]}" for name in keys if place[0] in _fields(_model_at([name], model))]
    return "unknown key" + (f", did you mean {close[0]}?" if close else ".") + f" Allowed: {', '.join(keys)}"


def _model_at(place: list[str], model: type[BaseModel]) -> type[BaseModel] | None:
    """The section at a place, None if a value stands there."""
    found: type[BaseModel] | None = model
    for name in place:
        if name in _fields(found):  # else it is the number of an item in a list of sections
            found = _section(_fields(found)[name])
    return found


def _fields(model: type[BaseModel] | None) -> dict[str, Any]:
    """The keys of a section and their annotations."""
    fields = {} if model is None else model.model_fields
    return {field.alias or name: field.annotation for name, field in fields.items()}


def _section(annotation: Any) -> type[BaseModel] | None:
    """The section that an annotation such as `Hrg`, `Scale | None` or `tuple[Layer, ...]` speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section(part)) is not None), None)
