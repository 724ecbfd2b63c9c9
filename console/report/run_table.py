"""One run of one method, zone by zone: what `sgfusion simulate` prints."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import rich.table
from rich.text import Text

from console.formats import NOTHING, number, whole
from console.report.alone_table import KEPT
from console.report.main_table import MARK
from console.report.measure import NO_LABELS, Measure, pool
from console.report.runs import Run
from simulator.outcome import Outcome, Score


def run_table(outcomes: Sequence[Outcome], zones: Sequence[str], metric: Mapping[str, Any]) -> rich.table.Table:
    """Test values before training and by the models that were kept, with their round; all zones pooled come last.

    `outcomes` is one for each zone, or the one of a method whose zones do not train apart.
    """
    measure = Measure.of(metric)
    run = Run(outcomes[0].seed, tuple(outcomes))
    table = rich.table.Table(title=Text(f"{measure.label} on the test split"), title_justify="left")
    table.add_column("zone", overflow="fold", max_width=28)
    for heading in ("before", "kept", "gain over\nbefore", KEPT, "labels", "drawn"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=max(map(len, heading.splitlines())))
    before, kept = [], []
    for zone in zones:
        outcome = run.outcome_of(zone)
        before.append(_before(outcome, zone))
        kept.append(run.kept(zone, "test"))
        name = f"{zone} {MARK}" if outcome.diverged else zone
        table.add_row(name, *_values(measure, before[-1], kept[-1], float(outcome.chosen), outcome.drawn))
    table.add_section()
    table.add_row("pooled", *_values(measure, pool(before), pool(kept), run.chosen, run.drawn))
    ended = [outcome for outcome in outcomes if outcome.diverged is not None]
    if ended:
        table.caption = Text(f"{MARK} ended early; the first: {ended[0].diverged}")
        table.caption_justify = "left"
    return table


def _values(measure: Measure, before: Score, kept: Score, chosen: float, drawn: float | None) -> list[str | Text]:
    gain = measure.gain(measure.value(kept), measure.value(before))
    return [
        number(measure.value(before)),
        number(measure.value(kept)),
        Text(NOTHING if math.isnan(gain) else f"{gain:+.1%}", "green" if gain > 0 else "red" if gain < 0 else ""),
        f"{chosen:.0f}",
        whole(kept.count),
        NOTHING if drawn is None else f"{drawn:.1f}",
    ]


def _before(outcome: Outcome, zone: str) -> Score:
    """The scores before training; none, if they were not evaluated."""
    first = outcome.points[0]
    return first.test.get(zone, NO_LABELS) if first.round == 0 else NO_LABELS
