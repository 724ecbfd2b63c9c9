"""The suite file: which methods, seeds and data an experiment compares.

::

    name = "flights"
    run = "flights.toml"     # the base run file, from this file's folder
    seeds = [1, 2, 3]
    reference = "sgfusion"   # what the others are compared with; the first entry by default
    methods = ["sgfusion", "fedavg"]   # entries that only name a method; or, and further ones:
    [entries]
    "top-3" = { method = "top-k-sgfusion", set = { "sampler.k" = 3 } }
    [data]                   # variants of the data; one named after the run by default
    norway = { "data.country" = "norway" }

Every run of it is resolved before anything starts, so a wrong key is found at once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field, model_validator

from sgfusion.errors import RunFileError
from sgfusion.runfile import Name, RunFile, Section, checked
from sgfusion.runfile_document import load_document, override
from simulator.methods.method import ZoneMethod
from simulator.methods.registry import METHODS
from simulator.methods.top_k_sgfusion import K

Document = Mapping[str, Any]
Key = tuple[str, str, int]
"""Of a run in a suite: data, entry, seed."""
Chosen = TypeVar("Chosen", str, int)

NOWHERE = {"seed": "the suite's seeds say it", "sampler.kind": "the entry's method says it"}
"""Keys of a run file that no override of a suite may set, and why."""
IN_DATA_ALONE = ("data", "zones")
"""Sections that entries leave alone: all are compared on the same zones."""


class EntrySection(Section):
    """One line of the comparison: a method (by default the one of the entry's name) and settings of its own."""

    method: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)


class SuiteFile(Section):
    """The suite file as it is written."""

    name: Name
    run: str
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(strict=False, min_length=1)]
    reference: str | None = None
    methods: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    data: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    entries: dict[Name, EntrySection] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _unique(self) -> Self:
        for name in (*self.methods, *self.entries):
            if (*self.methods, *self.entries).count(name) > 1:
                raise ValueError(f"entry {name!r} is there twice: names are unique")
        for seed in self.seeds:
            if self.seeds.count(seed) > 1:
                raise ValueError(f"seed {seed} is there twice: it would count twice")
        if not self.methods and not self.entries:
            raise ValueError("it compares nothing: give methods or [entries]")
        return self


@dataclass(frozen=True)
class Entry:
    """One line of the comparison."""

    name: str
    method: str
    set: Mapping[str, Any]

    @property
    def title(self) -> str:
        """What tables call it: the method's own name, unless the entry has another."""
        return METHODS[self.method].title if self.name == self.method else self.name


@dataclass(frozen=True)
class Suite:
    """A suite with every run resolved. Invariant: `runs` has all of data × entries × seeds, all of one task."""

    name: str
    data: tuple[str, ...]
    entries: tuple[Entry, ...]
    seeds: tuple[int, ...]
    reference: str
    runs: Mapping[Key, RunFile]
    notes: tuple[str, ...] = ()
    """On overrides that some of its own settings come after."""

    @property
    def task(self) -> str:
        """The task of all runs."""
        return next(iter(self.runs.values())).task.name

    def method(self, key: Key) -> str:
        """The method of a run."""
        return next(entry.method for entry in self.entries if entry.name == key[1])


def load_suite(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    seeds: Sequence[int] = (),
    entries: Sequence[str] = (),
    data: Sequence[str] = (),
) -> Suite:
    """The suite at `path`, or a part of it: the named seeds, entries and data only.

    `overrides` are of the base run, so of every entry; the suite's own settings come after them.
    """
    path = Path(path)
    document = load_document(path, what="a suite file")
    if {"rounds", "task"} <= document.keys():
        raise RunFileError(f"{path} is a run file: give it to sgfusion simulate, or give a suite file that names it")
    file = checked(SuiteFile, document, str(path))
    for said in overrides:
        _refuse(said.partition("=")[0].strip(), f"--set {said!r}")
    base = load_document(path.parent / file.run, overrides)
    variants = file.data or {str(base.get("name")): {}}
    all_entries = {name: _entry(str(path), name, EntrySection()) for name in file.methods}
    all_entries |= {name: _entry(str(path), name, section) for name, section in file.entries.items()}
    if file.reference is not None:
        _known(file.reference, all_entries, f"{path}: reference")
    runs = dict(_runs(path, base, variants, all_entries.values(), file.seeds))
    kept = tuple(all_entries[name] for name in _part(entries, all_entries, "--entries"))
    names, numbers = _part(data, variants, "--data"), _part(seeds, file.seeds, "--seeds")
    reference = file.reference or next(iter(all_entries))
    layers: dict[str, dict[str, Document]] = {
        "entries": {entry.name: entry.set for entry in kept},
        "data": {name: _flat(variants[name], f"{path}, data {name!r}") for name in names},
    }
    return Suite(
        name=file.name,
        data=names,
        entries=kept,
        seeds=numbers,
        reference=reference if any(entry.name == reference for entry in kept) else kept[0].name,
        runs={key: runs[key] for key in ((d, entry.name, s) for d in names for entry in kept for s in numbers)},
        notes=tuple(note for said in overrides for note in _unheard(said, layers, path)),
    )


def _unheard(said: str, layers: Mapping[str, Mapping[str, Document]], path: Path) -> Iterator[str]:
    """Refuse an override that all entries, or all data, set again; a note if some do. They come after it."""
    key = said.partition("=")[0].strip()
    for section, layer in layers.items():
        setting = [name for name, settings in layer.items() if key in settings]
        if setting and len(setting) == len(layer):
            raise RunFileError(
                f"--set {said!r} has no effect: in {path} {', '.join(setting)} (in {section}) set {key} to their own."
                f" Change it there, or choose others with --{section}"
            )
        if setting:
            yield f"--set {said!r} does not reach {', '.join(setting)} (in {section}), with a {key} of their own"


def run_by_method(document: Document, method: str, settings: Document, source: str, folder: Path) -> RunFile:
    """The run file of a document whose sampler is the method's, with `settings` set on top.

    The document's own sampler keys stay if they belong to the method's kind of sampler and are dropped otherwise: they
    are of the method that the file was written for.
    """
    _known(method, METHODS, f"{source}: method")
    chosen = METHODS[method]
    kind = chosen.sampler_kind if isinstance(chosen, ZoneMethod) else None
    given = document.get("sampler")
    sampler = dict(given) if kind is not None and isinstance(given, dict) else {}
    for key, owner in (("k", "top-k"), ("chi", "chi")):
        if kind != owner:
            sampler.pop(key, None)
    if kind is not None:
        sampler = ({"k": K} if kind == "top-k" else {}) | sampler | {"kind": kind}
    changed = {**document, "sampler": sampler}
    return checked(RunFile, override(changed, settings, source, folder), source)


def _runs(
    path: Path, base: Document, variants: Mapping[str, Document], entries: Collection[Entry], seeds: Sequence[int]
) -> Iterator[tuple[Key, RunFile]]:
    """All runs of the suite, also of a part that is not run now: a wrong key is wrong today."""
    task: object = None
    for name, variant in variants.items():
        said = f"{path}, data {name!r}"
        of_data = override(base, _flat(variant, said), said, path.parent)
        for entry in entries:
            source = f"{path}, entry {entry.name!r}" + (f", data {name!r}" if len(variants) > 1 else "")
            for seed in seeds:
                run = run_by_method({**of_data, "seed": seed}, entry.method, entry.set, source, path.parent)
                task = task or run.task.name
                if run.task.name != task:
                    raise RunFileError(
                        f"{source}: task.name = {run.task.name!r}, elsewhere {task!r}: a suite has one task"
                    )
                yield (name, entry.name, seed), run


def _entry(suite: str, name: str, section: EntrySection) -> Entry:
    source = f"{suite}, entry {name!r}"
    method = name if section.method is None else section.method
    _known(method, METHODS, f"{source}: method")
    settings = _flat(section.set, source)
    for key in settings:
        if key.partition(".")[0] in IN_DATA_ALONE:
            raise RunFileError(
                f"{source}: {key} cannot be set here: entries have the same data, [data] has its variants"
            )
    return Entry(name, method, settings)


def _flat(settings: Document, source: str, above: str = "") -> dict[str, Any]:
    """Settings by their dotted keys, whether they were written so or as tables within tables."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        whole = above + key
        _refuse(whole, source)
        flat |= _flat(value, source, f"{whole}.") if isinstance(value, dict) and value else {whole: value}
    return flat


def _refuse(key: str, source: str) -> None:
    if key in NOWHERE:
        raise RunFileError(f"{source}: {key} cannot be set here: {NOWHERE[key]}")


def _part(wanted: Sequence[Chosen], of: Collection[Chosen], option: str) -> tuple[Chosen, ...]:
    """Those that are wanted, in the order of the suite; all by default."""
    for name in wanted:
        _known(name, of, option)
    return tuple(name for name in of if not wanted or name in wanted)


def _known(name: str | int, names: Collection[str] | Collection[int], source: str) -> None:
    if name not in names:
        close = get_close_matches(str(name), list(map(str, names)), n=1)
        hint = f"unknown, did you mean {close[0]}?" if close else "unknown."
        raise RunFileError(f"{source} = {name!r}: {hint} There are: {', '.join(map(str, names))}")
