"""Packages that only some sources need."""

import importlib
from typing import Any

from sgfusion.errors import MissingDependencyError, brought_by


def optional(module: str) -> Any:
    """The module, imported when it is first needed; an error says which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{module.partition('.')[0]} is not installed ({error}): {brought_by('experiments')}"
        ) from error
