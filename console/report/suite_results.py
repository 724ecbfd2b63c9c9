"""A suite's results folder, read: what it was, what is finished, and what is missing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from console.formats import listed
from console.report.measure import Measure
from console.report.runs import Run
from console.report.world import World, read_world
from sgfusion.errors import DataError
from simulator.outcome import Outcome


@dataclass(frozen=True)
class Entry:
    """One row of the comparison: a method with its settings."""

    name: str
    method: str
    title: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Suite:
    """What `suite.json` says."""

    name: str
    task: str
    measure: Measure
    data: tuple[str, ...]
    seeds: tuple[int, ...]
    entries: tuple[Entry, ...]
    reference: Entry
    notes: Mapping[str, tuple[str, ...]]
    synthetic: frozenset[str]
    """The data sets that are generated, not measured."""
    command: str

    def shown(self, data: str) -> str:
        """The data set's name as every table, figure and sentence has it: one cut out of its report is still honest.

        A name that is no data set's is that of all together.
        """
        of = {data} if data in self.data else {*self.data}
        made_up = of & self.synthetic
        if not made_up or "synthetic" in data.lower():
            return data
        return f"{data} (synthetic)" if made_up == of else f"{data} (partly synthetic)"


@dataclass(frozen=True, eq=False)
class SuiteResults:
    """A suite with what is finished of it; `runs` has the complete (data, entry) pairs alone, a run for each seed."""

    suite: Suite
    worlds: Mapping[tuple[str, int], World]
    runs: Mapping[tuple[str, str], tuple[Run, ...]]
    missing: tuple[str, ...]

    def entries(self, data: str) -> list[Entry]:
        """The entries that are complete on the data set, in the suite's order."""
        return [entry for entry in self.suite.entries if (data, entry.name) in self.runs]

    @property
    def data(self) -> list[str]:
        """The data sets on which any entry is complete."""
        return [data for data in self.suite.data if self.entries(data)]

    def world(self, data: str) -> World:
        """The world of the first seed, for what is shown of one seed only."""
        return self.worlds[data, self.suite.seeds[0]]

    def zones(self, data: str) -> tuple[str, ...]:
        """The zones that entries are compared on: those with test labels, whatever the entry and the seed."""
        return self._split_zones[data][0]

    def zones_left_out(self, data: str) -> tuple[str, ...]:
        """The zones that no comparison takes part of, for want of test labels."""
        return self._split_zones[data][1]

    @cached_property
    def _split_zones(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        split = {}
        for data in self.data:
            names = dict.fromkeys(zone for seed in self.suite.seeds for zone in self.worlds[data, seed].zones)
            runs = [run for entry in self.entries(data) for run in self.runs[data, entry.name]]
            has = {
                zone: all(zone in self.worlds[data, run.seed].zones and run.kept(zone, "test").count for run in runs)
                for zone in names
            }
            split[data] = tuple(z for z in names if has[z]), tuple(z for z in names if not has[z])
        return split


def read_results(folder: Path) -> SuiteResults:
    """The results folder of a suite, finished or not."""
    suite = read_suite(folder / "suite.json")
    worlds: dict[tuple[str, int], World] = {}
    runs: dict[tuple[str, str], tuple[Run, ...]] = {}
    missing: list[str] = []
    for data in suite.data:
        for seed in suite.seeds:
            world = read_world(folder / "worlds" / data / f"{seed}.json")
            if world is None:
                missing.append(f"{data}, seed {seed}: its world")
            else:
                worlds[data, seed] = world
        for entry in suite.entries:
            found = [
                _read_run(folder / "jobs" / data / entry.name / str(seed), seed, worlds.get((data, seed)))
                for seed in suite.seeds
            ]
            whole = [run for run in found if isinstance(run, Run)]
            if len(whole) == len(suite.seeds):
                runs[data, entry.name] = tuple(whole)
            for seed, run in zip(suite.seeds, found, strict=True):
                if isinstance(run, str):
                    missing.append(f"{data}, {entry.title}, seed {seed}: {run}")
    return SuiteResults(suite, worlds, runs, tuple(missing))


def read_suite(path: Path) -> Suite:
    """The suite that `suite.json` describes."""
    try:
        document = json.loads(path.read_bytes())
        entries = tuple(
            Entry(e["name"], e["method"], e.get("title") or e["name"], e.get("set") or {}) for e in document["entries"]
        )
        reference = document["reference"]
        # A reference is an entry's name; the name of a method stands for the first entry of it.
        named = [e for e in entries if e.name == reference] + [e for e in entries if e.method == reference]
        if not named or not document["seeds"]:
            raise DataError(
                f"{path}: reference = {reference!r}, seeds = {document['seeds']!r}:"
                f" name one of the entries {listed([e.name for e in entries])}, and at least one seed"
            )
        return Suite(
            name=document["name"],
            task=document["task"],
            measure=Measure.of(document["metric"]),
            data=tuple(document["data"]),
            seeds=tuple(document["seeds"]),
            entries=entries,
            reference=named[0],
            notes={data: tuple(notes) for data, notes in (document.get("notes") or {}).items()},
            synthetic=frozenset(document.get("synthetic") or ()),
            command=document.get("command") or "",
        )
    except FileNotFoundError as error:
        raise DataError(f"{path} is not there: give the results folder of a suite") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a suite's description: {error!r}. Run the suite again to write it") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path} is not JSON: {error}. Run the suite again to write it") from error


def _read_run(folder: Path, seed: int, world: World | None) -> Run | str:
    """The run in the folder, or what it lacks. A job is known by the zone within its file, not by the file's name."""
    if world is None:
        return "its world"
    found = {outcome.zone: outcome for outcome in map(_read_outcome, sorted(folder.glob("*.json")))}
    if None in found:
        return Run(seed, (found[None],))
    strange = sorted(zone for zone in found if zone is not None and zone not in world.zones)
    if strange:
        raise DataError(
            f"{folder} has a job of zone {strange[0]!r}, which is none of the world's {listed(world.zones)}:"
            " remove the jobs of an earlier suite"
        )
    lacking = [zone for zone in world.zones if zone not in found]
    if lacking:
        return f"{len(lacking)} of {len(world.zones)} zones ({listed(lacking)})" if found else "all of it"
    return Run(seed, tuple(found[zone] for zone in world.zones))


def _read_outcome(path: Path) -> Outcome:
    try:
        outcome = Outcome.from_json(path.read_bytes())
    except (DataError, AttributeError) as error:
        raise DataError(f"{path}: {error}") from error
    if outcome.chosen not in {point.round for point in outcome.points}:
        raise DataError(
            f"{path} kept the models of round {outcome.chosen}, which it did not evaluate."
            " Remove the file, and the job is done again"
        )
    return outcome
