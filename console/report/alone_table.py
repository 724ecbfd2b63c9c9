"""A trained run zone by zone, beside zones that train alone: what `sgfusion up` ends with. Made from `summary.json`."""

import math
from collections.abc import Mapping
from typing import Any

import rich.table
from rich.text import Text

from console.report.formats import NOTHING, counted, number
from console.report.main_table import MARK
from console.report.measure import Measure

Entry = Mapping[str, Any]

KEPT = "round\nkept"
"""Of the model that the zone keeps: not the last round, which the live tables and the page call its round."""

TRY = (
    'To try: sampler.kind = "top-k" with a sampler.k, or a sharper hrg.sharpness; where devices have few samples and'
    " noise hides which zones are alike, a larger histogram.epsilon, which is less private."
)
"""Where sharing made it worse; docs/faq.md has the same."""
BY_CHANCES = ("sgfusion", "chi-sgfusion")
"""Methods to which that is something else than they do."""
BY_LABELS = (
    "Zones count as alike by how often each label occurs, whatever features have to do with it: where alike labels"
    ' come about in different ways, sampler.kind = "none" trains each zone alone (docs/results.md of the repository,'
    " What to make of it)."
)
"""A second reason, for which none of these settings is a remedy."""
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
    """Whether sharing was worth it, plainly, and what to try if not; empty if nobody trained alone."""
    if summary["pooled"].get("alone") is None or summary["pooled"]["test"] is None:
        return ""
    measure, title = Measure.of(summary["metric"]), summary["title"]
    gains = [_gain(measure, entry["test"], entry["alone"]) for entry in summary["zones"].values()]
    judged = [gain for gain in gains if not math.isnan(gain)]
    won, lost = sum(gain > 0 for gain in judged), sum(gain < 0 for gain in judged)
    pooled = _gain(measure, summary["pooled"]["test"], summary["pooled"]["alone"])
    how = "beats" if pooled > 0 else "does not beat" if pooled < 0 else "is level with"
    # One zone with large errors may gain so much that all pooled do, though most are worse off.
    hints = ((TRY, BY_CHANCES), (BY_LABELS, MISLED)) if pooled < 0 or lost > won else ()
    further = "".join(f" {hint}" for hint, methods in hints if summary["method"] in methods)
    return (
        f"{title} {how} training alone: pooled {measure.label} {number(summary['pooled']['test'])} against"
        f" {number(summary['pooled']['alone'])} ({pooled:+.1%}); better in {won} of {counted(len(judged), 'zone')},"
        f" worse in {lost}.{further}"
    )


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
