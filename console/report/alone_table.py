"""A trained run zone by zone, beside zones that train alone: what `sgfusion up` ends with. Made from `summary.json`."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import rich.table
from rich.text import Text

from console.formats import NOTHING, counted, number
from console.lone_devices import asks_for_names
from console.report.main_table import MARK
from console.report.measure import Measure
from sgfusion.runfile import RunFile

Entry = Mapping[str, Any]

KEPT = "round\nkept"
"""Of the model that the zone keeps: not the last round, which the live tables and the page call its round."""

BY_CHANCES = ("sgfusion", "chi-sgfusion")
"""Methods that draw the more alike more often."""
MISLED = (*BY_CHANCES, "top-k-sgfusion")
"""Methods that go by labels alone in whom they ask."""


def alone_table(summary: Mapping[str, Any]) -> rich.table.Table:
    """Test values before training, alone and with the method, and the round of the model that is kept; all zones pooled
    come last. Without "alone", the gain is over the weights before.
    """
    measure = Measure.of(summary["metric"])
    has_alone = "alone" in summary["pooled"]
    table = rich.table.Table(title=Text(f"{measure.label} on the test split"), title_justify="left")
    table.add_column("zone", overflow="fold", max_width=28)
    compared = "alone" if has_alone else "before"
    gain = f"gain over\n{compared}"
    values = ("before", *(["alone"] if has_alone else []), f"with\n{summary['title']}")
    for heading in (*values, gain, KEPT, "drawn"):
        width = max(map(len, heading.splitlines()))
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    zones: Mapping[str, Entry] = summary["zones"]
    for zone, entry in zones.items():
        name = f"{zone} {MARK}" if entry["diverged"] else zone
        table.add_row(name, *_values(measure, entry, compared, f"{entry['round']}", entry["drawn"]))
    table.add_section()
    rounds = sum(entry["round"] for entry in zones.values()) / len(zones)
    table.add_row("pooled", *_values(measure, summary["pooled"], compared, f"{rounds:.0f}", summary["drawn"]))
    if ended := [entry["diverged"] for entry in zones.values() if entry["diverged"]]:
        table.caption = Text(f"{MARK} ended early; the first: {ended[0]}")
        table.caption_justify = "left"
    return table


def verdict(summary: Mapping[str, Any]) -> str:
    """Whether sharing was worth it, plainly; empty if nobody trained alone."""
    if not _compared(summary):
        return ""
    measure, title = Measure.of(summary["metric"]), summary["title"]
    pooled, gains = _gains(summary)
    won, lost = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    how = "beats" if pooled > 0 else "does not beat" if pooled < 0 else "is level with"
    return (
        f"{title} {how} training alone: pooled {measure.label} {number(summary['pooled']['test'])} against"
        f" {number(summary['pooled']['alone'])} ({pooled:+.1%}); better in {won} of {counted(len(gains), 'zone')},"
        f" worse in {lost}."
    )


def remedies(summary: Mapping[str, Any], run: RunFile) -> Iterator[str]:
    """What to try where sharing made it worse, a line each, beside what the run has; docs/faq.md has the same.

    The last is for a reason against which no setting helps but not to share.
    """
    if not _compared(summary) or summary["method"] not in MISLED:
        return
    pooled, gains = _gains(summary)
    # One zone with large errors may gain so much that all pooled do, though most are worse off.
    if pooled >= 0 and sum(gain < 0 for gain in gains) <= sum(gain > 0 for gain in gains):
        return
    yield "To try, in the run file or by --set:"
    if asks_for_names(summary["notes"]):
        yield "- mend the names that the notes below ask about: others draw a misspelt zone, and learn from it, as any"
    if kept := _most_kept_the_last(summary, run, "round"):
        yield f"- more rounds (now {run.rounds}): {kept} kept that of the last one"
    if summary["method"] in BY_CHANCES:
        yield f'- sampler.kind = "top-k" with a sampler.k: the nearest zones every round (now "{run.sampler.kind}")'
        yield f"- a larger hrg.sharpness (now {run.hrg.sharpness:g}): the unlike are drawn less often"
    if run.histogram.epsilon != "off":
        yield (
            f"- a larger histogram.epsilon (now {run.histogram.epsilon:g}), which is less private: where devices have"
            " few samples, noise hides which zones are alike"
        )
    yield (
        '- sampler.kind = "none", each zone alone: zones count as alike by how often each label occurs, which does not'
        " help where alike labels come about in different ways (docs/results.md of the repository, What to make of it)"
    )


def unfinished(summary: Mapping[str, Any], run: RunFile) -> str:
    """That most zones, alone or with the method, were still learning when it ended; empty if not: a gain over one that
    only needs more rounds is speed, and may be gone with them.
    """
    if not _compared(summary):
        return ""
    alone = _most_kept_the_last(summary, run, "alone_round")
    shared = _most_kept_the_last(summary, run, "round")
    if not alone and (not shared or any(remedies(summary, run))):  # which say so themselves
        return ""
    who = [*([f"of {alone} alone"] if alone else []), *([f"of {shared} with {summary['title']}"] if shared else [])]
    pooled, _ = _gains(summary)
    if alone and pooled > 0:
        so = "part of this gain may only be speed, and more rounds tell how much remains"
    else:
        so = "with more rounds this may come out differently"
    # A rate that falls to zero calms every zone by the last round: that it is the best one then says little.
    falling = run.optimiser.schedule == "cosine"
    why = "that is usual with a rate that falls until then, but" if falling else "they had not stopped learning, so"
    return f"note: the best round {' and '.join(who)} was the last one, {run.rounds}: {why} {so}"


def _most_kept_the_last(summary: Mapping[str, Any], run: RunFile, key: str) -> str:
    """How many zones kept the model of the last round, as `3 of 5 zones`; empty if that is not most of them."""
    entries = summary["zones"].values()
    # One that has no validation samples keeps the last round whatever it is worth.
    chose = [entry[key] for entry in entries if entry["validation"] is not None and entry.get(key) is not None]
    last = chose.count(run.rounds)
    return f"{last} of {counted(len(chose), 'zone')}" if 2 * last > len(chose) else ""


def _compared(summary: Mapping[str, Any]) -> bool:
    return summary["pooled"].get("alone") is not None and summary["pooled"]["test"] is not None


def _gains(summary: Mapping[str, Any]) -> tuple[float, list[float]]:
    """Over training alone: of all zones pooled, and of each that can be judged."""
    measure = Measure.of(summary["metric"])
    gains = [_gain(measure, entry["test"], entry["alone"]) for entry in summary["zones"].values()]
    pooled = _gain(measure, summary["pooled"]["test"], summary["pooled"]["alone"])
    return pooled, [gain for gain in gains if not math.isnan(gain)]


def _values(measure: Measure, entry: Entry, base: str, chosen: str, drawn: float | None) -> list[str | Text]:
    gain = _gain(measure, entry["test"], entry[base])
    shown = ("before", *(["alone"] if base == "alone" else []), "test")
    return [
        *(number(entry[key]) for key in shown),
        Text(NOTHING if math.isnan(gain) else f"{gain:+.1%}", "green" if gain > 0 else "red" if gain < 0 else ""),
        chosen,
        NOTHING if drawn is None else f"{drawn:.1f}",
    ]


def _gain(measure: Measure, value: float | None, base: float | None) -> float:
    return math.nan if value is None or base is None else measure.gain(value, base)
