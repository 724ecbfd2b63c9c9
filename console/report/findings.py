"""What a suite found, in sentences: who is first, and what the controls say."""

import math

from console.formats import listed, mean, number, p_value, percent, spread
from console.report.comparison import compare
from console.report.control import control_of
from console.report.main_table import zone_mean
from console.report.suite_results import Entry, SuiteResults

CONTROLS = {
    "random": ("the control", "random draws at other settings"),
    "shuffled": ("the control of likeness", "shuffled chances at other settings"),
}
"""What each is called where it has the reference's settings, and where it has others."""


def findings(results: SuiteResults) -> list[str]:
    """For each data set, the good and the bad; last, what the control is for."""
    controls = against_controls(results)
    sentences = [s for data in results.data for s in (*standing(results, data), *controls.get(data, ()))]
    return [*sentences, *how_to_read(results), *what_likeness_is(results)] if controls else sentences


def standing(results: SuiteResults, data: str) -> list[str]:
    """Whether the reference is first, said plainly, for the mean over zones and for the pooled value."""
    suite, zones, reference = results.suite, results.zones(data), results.suite.reference
    name = suite.shown(data)
    if (data, reference.name) not in results.runs:
        return [f"{name}: {reference.title}, the reference, is not finished; nothing is compared with it."]
    sentences = []
    for what, of in (
        ("mean over zones", lambda run: zone_mean(run, suite.measure, zones)),
        ("pooled", lambda run: run.pooled(suite.measure, zones)),
    ):
        values = {entry.name: [of(run) for run in results.runs[data, entry.name]] for entry in results.entries(data)}
        if math.isnan(mean(values[reference.name])):
            return [f"{name}: no zone has labels in the test split, so nothing is compared."]
        ranked = sorted(results.entries(data), key=lambda entry: suite.measure.cost(mean(values[entry.name])))
        cost = {name: suite.measure.cost(mean(value)) for name, value in values.items()}
        place = 1 + sum(cost[entry.name] < cost[reference.name] for entry in ranked)
        unit = f" {suite.measure.unit}" if suite.measure.unit else ""
        ours = f"{spread(values[reference.name])}{unit}"
        if len(ranked) == 1:
            sentences.append(f"{name}, {what}: {reference.title} has {ours}; no other entry is finished.")
        elif place == 1:
            second = next(entry for entry in ranked if entry is not reference)
            level = "level with" if cost[second.name] == cost[reference.name] else "before"
            sentences.append(
                f"{name}, {what}: {reference.title} is first of {len(ranked)} with {ours}, {level} {second.title}"
                f" with {spread(values[second.name])}{unit}."
            )
        else:
            gain = suite.measure.gain(mean(values[ranked[0].name]), mean(values[reference.name]))
            sentences.append(
                f"{name}, {what}: {reference.title} is not first but {_ordinal(place)} of {len(ranked)} with {ours};"
                f" {ranked[0].title} is first with {spread(values[ranked[0].name])}{unit} ({gain:.2%} better)."
            )
    return sentences


def against_controls(results: SuiteResults) -> dict[str, list[str]]:
    """By data set, the reference against the controls: without these, no gain is the dendrogram's (method 9)."""
    suite = results.suite
    entries = {entry.name: entry for entry in suite.entries if entry.method in CONTROLS}
    matched = {method: control_of(suite.entries, suite.reference, method) for method in CONTROLS}
    found: dict[str, list[str]] = {}
    for other, by_data in compare(results, suite.reference).items():
        for data in (data for data in by_data if data in results.data and other in entries):
            comparison, entry = by_data[data], entries[other]
            if not comparison.ours:  # no zone has labels to compare by
                continue
            test = comparison.test(suite.measure)
            against = CONTROLS[entry.method][0 if entry is matched[entry.method] else 1]
            chance = (
                "too few zones to test"
                if test.wilcoxon is None
                else f"Wilcoxon p = {p_value(test.wilcoxon)}, uncorrected"
            )
            found.setdefault(data, []).append(
                f"{suite.shown(data)}, against {against}: zones won {suite.reference.title} : {entry.title} ="
                f" {comparison.won(suite.measure)}, mean gain {percent(comparison.gain(suite.measure))} ({chance})."
            )
    return found


def how_to_read(results: SuiteResults) -> list[str]:
    """What being close to the control means, for who sees it the first time; it is a control of SGFusion alone.

    Without one that draws as many zones, how many each drew: no equality is claimed.
    """
    ours = results.suite.reference
    others = [e for e in results.suite.entries if e.method == "random" and _shared(results, ours, e)]
    if ours.method != "sgfusion" or not others:
        return []
    control = control_of(others, ours)
    if control is not None:
        return [
            f"{control.title} is the control: it draws as many zones as {ours.title}, but any. Where the two are close,"
            " what is gained over training alone comes from sharing at all, and not from the choice of alike zones."
        ]
    drew = []
    for other in others:
        both = _shared(results, ours, other)
        theirs, own = _drawn(results, other, both), _drawn(results, ours, both)
        drew.append(f"{other.title} drew {theirs} zones a round where {ours.title} drew {own}")
    return [
        f"No entry of Random has the settings of {ours.title}, so none is an exact control:"
        f" {listed(drew)}. What differs may come from the number of zones as well as from the choice of alike ones."
    ]


def what_likeness_is(results: SuiteResults) -> list[str]:
    """What being close to Shuffled means."""
    ours = results.suite.reference
    control = control_of(results.suite.entries, ours, "shuffled")
    if ours.method != "sgfusion" or control is None or not _shared(results, ours, control):
        return []
    return [
        f"{control.title} has the chances of {ours.title}, dealt to other zones: it draws as many, and the same few as"
        f" often, but not those that are alike. What {ours.title} gains over it is what likeness is worth."
    ]


def _shared(results: SuiteResults, ours: Entry, other: Entry) -> list[str]:
    """The data sets on which both are complete."""
    return [data for data in results.data if {(data, ours.name), (data, other.name)} <= results.runs.keys()]


def _drawn(results: SuiteResults, entry: Entry, data: list[str]) -> str:
    """Zones drawn a round, in the mean over data sets and seeds."""
    return number(mean([run.drawn for d in data for run in results.runs[d, entry.name] if run.drawn is not None]))


def _ordinal(place: int) -> str:
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"
