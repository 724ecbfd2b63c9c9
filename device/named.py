"""How a run file names a task or a source: one of ours by its name, or one of yours as `module:name`."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from device.sources.did_you_mean import did_you_mean
from sgfusion.errors import InputError
from sgfusion.runfile import Section


@dataclass(frozen=True)
class Kind:
    """Things that the run file's `key` names; `ours` are modules of `package`, each with `function` and `Options`."""

    key: str
    package: str
    ours: Sequence[str]
    function: str
    error: type[InputError]
    """Raised for a name that stands for nothing."""

    def find(self, name: str) -> tuple[Any, type[Section]]:
        """What makes the thing of that name (a task may be the thing itself), and the type of its options."""
        if name in self.ours:
            module = importlib.import_module(f"{self.package}.{name}")
            return getattr(module, self.function), module.Options
        own = self._referred(name)
        return own, getattr(own, "options", Section)

    def _referred(self, name: str) -> Any:
        """What `module:name` stands for; an error says which part of it is not there."""
        said = f"{self.key} = {name!r}"
        module_name, colon, attribute = name.partition(":")
        if not colon:
            meant = did_you_mean(name, self.ours)
            raise self.error(f"{said}{meant} Choose {', '.join(map(repr, self.ours))}, or your own as module:name")
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise self.error(f"{said}: {module_name} cannot be imported: {error}") from error
        if not hasattr(module, attribute):
            raise self.error(f"{said}: {module_name} has no {attribute}")
        return getattr(module, attribute)
