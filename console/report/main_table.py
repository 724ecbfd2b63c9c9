"""The main table of a data set: every entry's value, and what it cost. And, in words, who is first."""

from collections.abc import Callable, Sequence

from console.report.formats import deviation, file_stem, mean, number, size, spread, whole
from console.report.measure import Measure
from console.report.runs import Run, Split
from console.report.suite_results import Entry, SuiteResults
from console.report.tables import Cell, Column, Table

MARK = "†"


def zone_mean(run: Run, measure: Measure, zones: Sequence[str], split: Split = "test") -> float:
    """The mean of the zones' values, of those with labels: every zone counts the same, as in the method's goal."""
    labelled = [zone for zone in zones if run.kept(zone, split).count]
    return mean(run.values(measure, labelled, split))


def main_table(results: SuiteResults, data: str) -> Table:
    """Entries in the suite's order; the best values in bold, entries with jobs that diverged marked."""
    measure, zones = results.suite.measure, results.zones(data)
    entries = results.entries(data)
    runs = {entry.name: results.runs[data, entry.name] for entry in entries}
    means = {e.name: [zone_mean(run, measure, zones) for run in runs[e.name]] for e in entries}
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
                _values(pooled, entry, measure),
                _values(validation, entry, measure, bold=False),
                _over_seeds([float(run.device_gradients) for run in here], whole),
                _over_seeds([float(run.bytes_sent) for run in here], size),
                _over_seeds([run.drawn for run in here], number),
                _over_seeds([run.homophily for run in here], number),
                _over_seeds([run.chosen for run in here], lambda rounds: f"{rounds:.0f}"),
                Cell("", (diverged, len(here), " ".join(f"{k}={v}" for k, v in sorted(entry.settings.items())))),
            )
        )
    label = measure.label
    columns = (
        Column("entry", ("entry", "method"), left=True),
        Column(f"{label}, mean over zones", ("mean", "mean_deviation")),
        Column(f"{label}, pooled", ("pooled", "pooled_deviation")),
        Column("validation, mean over zones", ("validation", "validation_deviation"), detail=True),
        Column("device gradients", ("device_gradients",), detail=True),
        Column("sent", ("bytes_sent",)),
        Column("zones drawn", ("zones_drawn",)),
        Column("homophily", ("homophily",)),
        Column("round kept", ("round_kept",), detail=True),
        Column("", ("diverged_jobs", "seeds", "settings")),
    )
    title = f"{data}: {label} on the test split of {len(zones)} zones"
    return Table(file_stem("main", data), title, columns, tuple(rows), tuple(_divergence(results, data)))


def standing(results: SuiteResults, data: str) -> list[str]:
    """Whether the reference is first, said plainly, for the mean over zones and for the pooled value."""
    suite, zones, reference = results.suite, results.zones(data), results.suite.reference
    if (data, reference.name) not in results.runs:
        return [f"{data}: {reference.title}, the reference, is not finished; nothing is compared with it."]
    sentences = []
    for what, of in (
        ("mean over zones", lambda run: zone_mean(run, suite.measure, zones)),
        ("pooled", lambda run: run.pooled(suite.measure, zones)),
    ):
        values = {entry.name: [of(run) for run in results.runs[data, entry.name]] for entry in results.entries(data)}
        ranked = sorted(results.entries(data), key=lambda entry: suite.measure.cost(mean(values[entry.name])))
        cost = {name: suite.measure.cost(mean(value)) for name, value in values.items()}
        place = 1 + sum(cost[entry.name] < cost[reference.name] for entry in ranked)
        unit = f" {suite.measure.unit}" if suite.measure.unit else ""
        ours = f"{spread(values[reference.name])}{unit}"
        if len(ranked) == 1:
            sentences.append(f"{data}, {what}: {reference.title} has {ours}; no other entry is finished.")
        elif place == 1:
            second = next(entry for entry in ranked if entry is not reference)
            level = "level with" if cost[second.name] == cost[reference.name] else "before"
            sentences.append(
                f"{data}, {what}: {reference.title} is first of {len(ranked)} with {ours}, {level} {second.title}"
                f" with {spread(values[second.name])}{unit}."
            )
        else:
            gain = suite.measure.gain(mean(values[reference.name]), mean(values[ranked[0].name]))
            sentences.append(
                f"{data}, {what}: {reference.title} is not first but {_ordinal(place)} of {len(ranked)} with {ours};"
                f" {ranked[0].title} is first with {spread(values[ranked[0].name])}{unit} ({abs(gain):.2%} better)."
            )
    return sentences


def _values(values: dict[str, list[float]], entry: Entry, measure: Measure, *, bold: bool = True) -> Cell:
    """A value over the seeds, bold if no other entry's mean is better."""
    costs = {name: measure.cost(mean(over_seeds)) for name, over_seeds in values.items()}
    mine = values[entry.name]
    best = bold and costs[entry.name] == min(costs.values())
    return Cell(spread(mine), (mean(mine), deviation(mine)), bold=best)


def _over_seeds(values: Sequence[float | None], text: Callable[[float], str]) -> Cell:
    known = [value for value in values if value is not None]
    return Cell(text(mean(known)), (mean(known),)) if known else Cell(number(None), (None,))


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
                f"{MARK} {entry.title}: {len(ended)} of {jobs} jobs ended before their last round; their models are"
                f" those of before. The first: {where}: {first.diverged}"
            )
    return notes


def _ordinal(place: int) -> str:
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"
