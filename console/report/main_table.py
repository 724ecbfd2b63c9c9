"""The main table of a data set: every entry's value, and what it cost."""

import math
import statistics
from collections.abc import Callable, Sequence

from console.formats import counted, deviation, file_stem, listed, mean, number, size, spread, whole
from console.report.measure import Measure
from console.report.runs import Run, Split
from console.report.suite_results import Entry, SuiteResults
from console.report.tables import Cell, Column, Table

MARK = "†"
CLOSE = 0.15
"""By how much budgets may differ and still count as one: they come in whole rounds, and draws are chance."""


def zone_mean(run: Run, measure: Measure, zones: Sequence[str], split: Split = "test") -> float:
    """The mean of the zones' values, of those with labels: every zone counts the same, as in the method's goal."""
    labelled = [zone for zone in zones if run.kept(zone, split).count]
    return mean(run.values(measure, labelled, split))


def zone_median(run: Run, measure: Measure, zones: Sequence[str]) -> float:
    """The middle one of the zones' test values: what a few zones that ran away cannot move."""
    values = run.values(measure, [zone for zone in zones if run.kept(zone, "test").count], "test")
    return statistics.median(values) if values else math.nan


def main_table(results: SuiteResults, data: str) -> Table:
    """Entries in the suite's order; the best values in bold, entries with jobs that diverged marked."""
    measure, zones, name = results.suite.measure, results.zones(data), results.suite.shown(data)
    entries = results.entries(data)
    runs = {entry.name: results.runs[data, entry.name] for entry in entries}
    means = {e.name: [zone_mean(run, measure, zones) for run in runs[e.name]] for e in entries}
    medians = {e.name: [zone_median(run, measure, zones) for run in runs[e.name]] for e in entries}
    pooled = {e.name: [run.pooled(measure, zones) for run in runs[e.name]] for e in entries}
    validation = {e.name: [zone_mean(run, measure, zones, "validation") for run in runs[e.name]] for e in entries}
    rows = []
    for entry in entries:
        here = runs[entry.name]
        diverged = sum(len(run.diverged) for run in here)
        rows.append(
            (
                Cell(f"{entry.title} {MARK}" if diverged else entry.title, (entry.name, entry.method)),
                _values(means, entry, measure),
                _values(medians, entry, measure),
                _values(pooled, entry, measure),
                _values(validation, entry, measure, bold=False),
                _over_seeds([float(run.device_gradients) for run in here], whole),
                _over_seeds([float(run.bytes_sent) for run in here], size),
                _over_seeds([run.drawn for run in here], number),
                _over_seeds([run.homophily for run in here], number),
                _over_seeds([run.chosen for run in here], lambda rounds: f"{rounds:.0f}"),
                Cell("", (diverged, len(here), " ".join(f"{k}={v}" for k, v in sorted(entry.settings.items())), name)),
            )
        )
    label = measure.label
    columns = (
        Column("entry", ("entry", "method"), left=True),
        Column(f"{label}, mean over zones", ("mean", "mean_deviation")),
        Column("median zone", ("median", "median_deviation"), detail=True),
        Column(f"{label}, pooled", ("pooled", "pooled_deviation")),
        Column("validation, mean over zones", ("validation", "validation_deviation")),
        Column("device gradients", ("device_gradients",), detail=True),
        Column("sent", ("bytes_sent",), detail=True),
        Column("zones drawn", ("zones_drawn",)),
        Column("homophily", ("homophily",), detail=True),
        Column("round kept", ("round_kept",), detail=True),
        Column("", ("diverged_jobs", "seeds", "settings", "data")),
    )
    title = f"{name}: {label} on the test split of {counted(len(zones), 'zone')}"
    notes = (_budget(results, data), *_divergence(results, data))
    return Table(file_stem("main", data), title, columns, tuple(rows), notes)


def _values(values: dict[str, list[float]], entry: Entry, measure: Measure, *, bold: bool = True) -> Cell:
    """A value over the seeds, bold if no other entry's mean is better."""
    costs = {name: measure.cost(mean(over_seeds)) for name, over_seeds in values.items()}
    mine = values[entry.name]
    best = bold and costs[entry.name] == min(costs.values())
    return Cell(spread(mine), (mean(mine), deviation(mine)), bold=best)


def _over_seeds(values: Sequence[float | None], text: Callable[[float], str]) -> Cell:
    known = [value for value in values if value is not None]
    return Cell(text(mean(known)), (mean(known),)) if known else Cell(number(None), (None,))


def _budget(results: SuiteResults, data: str) -> str:
    """What the entries had in common, rounds or gradients (method 9); of a job that ended early it is not known."""
    entries = results.entries(data)
    whole_runs = [run for e in entries for run in results.runs[data, e.name] if not run.diverged]
    rounds = sorted({outcome.rounds for run in whole_runs for outcome in run.outcomes})
    if len(rounds) <= 1:
        here = f", here {rounds[0]}" if rounds else ""
        return (
            f"The same budget means the same rounds{here}; the device gradients that a round takes differ by method,"
            " which is why the report has a column of them."
        )
    spent = [mean([float(run.device_gradients) for run in results.runs[data, e.name]]) for e in entries]
    most = f"Entries have {listed([str(count) for count in rounds])} rounds"
    if max(spent) <= (1 + CLOSE) * min(spent):
        return f"{most}, for the same budget of device gradients: the most is {max(spent) / min(spent) - 1:.0%} more."
    return f"{most}, and device gradients from {whole(min(spent))} to {whole(max(spent))}: the budget is not the same."


def _divergence(results: SuiteResults, data: str) -> list[str]:
    """One note for each entry that has jobs which ended before their last round."""
    notes = []
    for entry in results.entries(data):
        ended = [(run.seed, outcome) for run in results.runs[data, entry.name] for outcome in run.diverged]
        if ended:
            jobs = sum(len(run.outcomes) for run in results.runs[data, entry.name])
            seed, first = ended[0]
            where = f"zone {first.zone}, seed {seed}" if first.zone is not None else f"seed {seed}"
            notes.append(
                f"{MARK} {entry.title}: {len(ended)} of {counted(jobs, 'job')} ended before the last round; the models"
                f" are those of before. The first: {where}: {first.diverged}"
            )
    return notes
