"""Rounds to a target (method 9): how soon each entry is as good as training without sharing ever becomes."""

import math
from collections.abc import Mapping

from console.formats import file_stem, listed, number
from console.report.curves import curve, evaluated, rounds_differ
from console.report.measure import Measure
from console.report.suite_results import SuiteResults
from console.report.tables import Cell, Column, Table

NO_SHARING = "sgeofl"
NEVER = "never"

Values = Mapping[int, float]
"""The pooled validation value after each evaluated round, in the mean over the seeds."""


def target_table(results: SuiteResults, data: str) -> Table | None:
    """Entries in the suite's order, the fewest rounds in bold. None where rounds say nothing: entries have different
    numbers of them, as their price differs; or there are no validation labels, which set the target.

    Values are averaged over the seeds before they are compared with the target, as the learning curves are: an entry
    that reaches it with some seeds only has no mean of rounds.
    """
    measure, entries = results.suite.measure, results.entries(data)
    if rounds_differ(results, data):
        return None
    curves = {entry.name: _values(results, data, entry.name) for entry in entries}
    best = {name: min(values, key=lambda t: measure.cost(values[t])) for name, values in curves.items()}
    reached = {name: curves[name][round] for name, round in best.items() if math.isfinite(curves[name][round])}
    if not reached:
        return None
    alone = [entry for entry in entries if entry.method == NO_SHARING and entry.name in reached]
    if alone:
        target = min((reached[entry.name] for entry in alone), key=measure.cost)
        whose = f"the best that {listed([entry.title for entry in alone])} reaches, which shares nothing"
    else:
        target = max(reached.values(), key=measure.cost)
        whose = "the best of the entry whose best is the worst, as no complete entry trains without sharing"
    rounds = {name: rounds_to(target, values, measure) for name, values in curves.items()}
    fewest = min(t for t in rounds.values() if t is not None)  # whoever set the target has reached it
    rows = tuple(
        (
            Cell(entry.title, (entry.name, entry.method)),
            _rounds(rounds[entry.name], fewest),
            Cell(number(reached.get(entry.name)), (reached.get(entry.name),)),
            Cell(str(best[entry.name]), (best[entry.name],)) if entry.name in reached else Cell(number(None), (None,)),
            Cell("", (results.suite.shown(data), target)),
        )
        for entry in entries
    )
    columns = (
        Column("entry", ("entry", "method"), left=True),
        Column("rounds to the target", ("rounds", "reached")),
        Column("best validation, pooled", ("best",)),
        Column("at round", ("best_round",)),
        Column("", ("data", "target")),
    )
    title = f"{results.suite.shown(data)}: rounds to a pooled validation {measure.label} of {number(target)}"
    averaged = " in the mean over the seeds" if len(results.suite.seeds) > 1 else ""
    note = (
        f"The target is {whose}. Rounds to it: the first evaluated round whose pooled value on the validation split,"
        f" never the test split, is at least as good{averaged}; bold: the fewest."
    )
    return Table(file_stem("rounds-to-target", data), title, columns, rows, (note,))


def rounds_to(target: float, values: Values, measure: Measure) -> int | None:
    """The first round whose value is at least as good as the target, None if there is none."""
    return next((t for t in sorted(values) if measure.cost(values[t]) <= measure.cost(target)), None)


def _values(results: SuiteResults, data: str, entry: str) -> Values:
    rounds = evaluated(results, data, entry)
    middle, _, _ = curve(results, data, entry, rounds, "validation")
    return dict(zip(rounds, middle, strict=True))


def _rounds(rounds: int | None, fewest: int) -> Cell:
    """In the CSV, `rounds` stays a column of numbers: empty for never, which `reached` tells."""
    if rounds is None:
        return Cell(NEVER, (None, False))
    return Cell(str(rounds), (rounds, True), bold=rounds == fewest)
