"""A run file as it is written: read, its paths resolved, keys overridden, nothing checked yet."""

import copy
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgfusion.errors import RunFileError

PATHS = (("hrg", "from"), ("data", "path"), ("zones", "polygons"))
"""The keys that hold paths."""
QUOTES = "; is the = missing? A key with other than letters, digits, - and _ needs quotes"


def load_document(path: str | Path, overrides: Sequence[str] = (), what: str = "a run file") -> dict[str, Any]:
    """The file at `path` with its paths resolved and nothing checked yet: further `override`s may come first."""
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise RunFileError(f"{path} cannot be read: {error.strerror}. Give the path of {what}") from error
    except UnicodeDecodeError as error:
        raise RunFileError(f"{path} is not {what}: {error}") from error
    return parsed(text, overrides, str(path), path.parent)


def override(document: Mapping[str, Any], settings: Mapping[str, Any], source: str, folder: Path) -> dict[str, Any]:
    """A copy of an unchecked document with each `section.key` of `settings` set; relative paths are from `folder`.

    Unchecked, because a default that was filled in for one choice may not fit the choice that an override makes.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    for key, value in settings.items():
        names = tuple(part.strip() for part in key.split("."))
        if not all(names):
            raise RunFileError(f"{source}: {key!r}: write section.key, such as hrg.schedule")
        _put(changed, names, copy.deepcopy(value), f"{source}: {key!r}")
    _locate(changed, folder)
    return changed


def parsed(text: str, overrides: Sequence[str], source: str, folder: Path) -> dict[str, Any]:
    """The document in `text` with overrides as `--set` has them; `source` is what errors call it."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunFileError(f"{source} is not TOML: {error}{QUOTES if 'after a key' in str(error) else ''}") from error
    _locate(document, folder)
    for said in overrides:
        _apply(document, said)
    _locate(document, Path())
    return document


def _locate(document: Mapping[str, Any], folder: Path) -> None:
    """Make relative paths absolute: the resolved run file is read from another folder later."""
    for name, key in PATHS:
        section = document.get(name)
        if isinstance(section, dict) and isinstance(section.get(key), str) and section[key]:
            section[key] = str((folder / section[key]).absolute())


def _apply(document: dict[str, Any], said: str) -> None:
    """Set one key of the document, as `--set section.key=value` says; a value that is not TOML is a plain string."""
    key, equals, text = said.partition("=")
    names = tuple(part.strip() for part in key.split("."))
    if not equals or not all(names) or "\n" in text:
        raise RunFileError(f"--set {said!r}: write section.key=value, such as hrg.schedule=paper")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()
    _put(document, names, value, f"--set {said!r}")


def _put(document: dict[str, Any], names: tuple[str, ...], value: object, said: str) -> None:
    for name in names[:-1]:
        document = document.setdefault(name, {})
        if not isinstance(document, dict):
            raise RunFileError(f"{said}: {name} is a value in the run file, not a section")
    document[names[-1]] = value
