"""Learning curves: the pooled value by round, on both splits."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from console.figures import drawn
from console.report.looks import Look, looks
from console.report.measure import Measure
from console.report.runs import SPLITS, Split
from console.report.suite_results import SuiteResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = tuple[list[float], list[float], list[float]]
"""Mean, least and greatest over the seeds, by round."""

MANY = 14
"""Entries, beyond which bands would hide each other: then the reference alone has one."""


def learning_curves(results: SuiteResults, data: str) -> dict[str, bytes]:
    """Test and validation side by side: a line a mean over seeds, its band from the worst seed to the best."""
    entries = results.entries(data)
    rounds = sorted({t for entry in entries for run in results.runs[data, entry.name] for t in run.rounds})
    style = looks(results.suite.entries, results.suite.reference)
    height = max(4.2, 0.155 * len(entries) + 1.2)
    banded = {e.name for e in entries if len(entries) <= MANY or e.name == results.suite.reference.name}

    def draw(figure: "Figure") -> None:
        for axes, split in zip(figure.subplots(1, 2), SPLITS, strict=True):
            curves = {entry.name: curve(results, data, entry.name, rounds, split) for entry in entries}
            axes.set_title(f"{results.suite.shown(data)}, {split}")
            axes.set_xlabel("round")
            axes.set_ylabel(f"pooled {results.suite.measure.label}")
            axes.grid(axis="y")
            for name, (middle, least, most) in reversed(curves.items()):  # the first entries on top
                axes.plot(rounds, middle, color=style[name].colour, ls=style[name].stroke, lw=style[name].width)
                if name in banded:
                    axes.fill_between(rounds, least, most, color=style[name].colour, alpha=0.1, lw=0)
            low, high = window(list(curves.values()), results.suite.measure)
            axes.set_ylim(low, high)
            axes.set_xlim(rounds[0], max(rounds[-1], rounds[0] + 1))
            titles = {entry.name: entry.title for entry in entries}
            _label_ends(
                axes, {titles[name]: (middle[-1], style[name]) for name, (middle, _, _) in curves.items()}, height - 1
            )

    return drawn(11, height, draw, "png", "svg")


def curve(results: SuiteResults, data: str, entry: str, rounds: Sequence[int], split: Split) -> Curve:
    """An entry's pooled value by round, over its seeds."""
    measure, zones = results.suite.measure, results.zones(data)
    seeds = np.array([run.curve(measure, zones, rounds, split) for run in results.runs[data, entry]])
    return seeds.mean(axis=0).tolist(), seeds.min(axis=0).tolist(), seeds.max(axis=0).tolist()


def window(curves: Sequence[Curve], measure: Measure) -> tuple[float, float]:
    """The stretch of values worth seeing: from the best ever to a little beyond where most curves end.

    The first rounds are far off, and a method that failed may be: both may leave the picture, for the rest to show.
    """
    sign = 1 if measure.lower_is_better else -1
    ends = sorted(sign * middle[-1] for middle, _, _ in curves if math.isfinite(middle[-1]))
    best = min((sign * v for _, least, most in curves for v in (*least, *most) if math.isfinite(v)), default=0.0)
    if not ends:
        return (0.0, 1.0)
    usual = ends[len(ends) // 2] - best
    worst = max(end for end in ends if end - best <= 6 * usual or end == ends[0])
    reach = max(worst - best, 1e-3 * abs(best), 1e-9)
    low, high = best - 0.08 * reach, worst + 0.6 * reach
    return (low, high) if sign == 1 else (-high, -low)


def spaced(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels: as near as can be to those wanted, in the same order, at least `gap` apart, within bounds."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    gap = min(gap, (high - low) / max(1, len(places) - 1))
    groups: list[tuple[float, int]] = []  # the centre of each run of labels that touch, and how many
    for i in order:
        centre, count = min(max(places[i], low), high), 1
        while True:
            half = gap * (count - 1) / 2
            centre = min(max(centre, low + half), high - half)
            if not groups or groups[-1][0] + gap * (groups[-1][1] - 1) / 2 + gap <= centre - half + 1e-12 * gap:
                break
            before, several = groups.pop()
            centre = (before * several + centre * count) / (several + count)
            count += several
        groups.append((centre, count))
    found = [0.0] * len(places)
    spots = [centre + gap * (j - (count - 1) / 2) for centre, count in groups for j in range(count)]
    for i, spot in zip(order, spots, strict=True):
        found[i] = spot
    return found


def _label_ends(axes: "Axes", ends: dict[str, tuple[float, Look]], inches: float) -> None:
    """Each line's name at its end, drawn apart where ends are close; an arrow for lines that end out of sight."""
    low, high = axes.get_ylim()
    heights = [(value - low) / (high - low) if math.isfinite(value) else 2.0 for value, _ in ends.values()]
    inside = [min(max(height, 0.0), 1.0) for height in heights]
    spots = spaced(inside, 10.5 / (72 * inches), 0.0, 1.0)
    for (title, (_, look)), at, end, spot in zip(ends.items(), heights, inside, spots, strict=True):
        axes.plot(
            (1.0, 1.02, 1.075, 1.085),
            (end, end, spot, spot),
            transform=axes.transAxes,
            clip_on=False,
            color=look.colour,
            lw=0.6,
            solid_capstyle="butt",
        )
        axes.annotate(
            title + (" ↑" if at > 1 else " ↓" if at < 0 else ""),
            xy=(1.095, spot),
            xycoords="axes fraction",
            va="center",
            fontsize=8,
            color=look.colour,
            fontweight="bold" if look.width > 2 else "normal",
            annotation_clip=False,
        )
