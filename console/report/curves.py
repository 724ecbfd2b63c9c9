"""Learning curves: the pooled value by round, on both splits."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from console.figures import drawn
from console.formats import listed
from console.report.control import control_of
from console.report.line_ends import label_ends
from console.report.looks import looks
from console.report.measure import Measure
from console.report.runs import SPLITS, Split
from console.report.suite_results import Entry, SuiteResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = tuple[list[float], list[float], list[float]]
"""Mean, least and greatest over the seeds, by round."""

FEW = 3
"""Entries whose bands can all be told apart; of more, only those have one that the comparison turns on."""
SHORT = 4
"""Evaluated rounds of a line that is shown whole, with its points: cut to where it ends, nothing would be left."""


def banded(results: SuiteResults, data: str) -> list[Entry]:
    """The entries with a band: all of a few, else the reference and its control of random draws."""
    entries, reference = results.entries(data), results.suite.reference
    if len(results.suite.seeds) == 1:
        return []
    control = control_of(entries, reference)
    return [e for e in entries if len(entries) <= FEW or e is reference or e is control]


def learning_curves(results: SuiteResults, data: str) -> dict[str, bytes]:
    """Test and validation side by side: a line a mean over seeds, its band from the worst seed to the best.

    By round; where entries have different numbers of rounds, to spend as many gradients, by those.
    """
    entries, measure = results.entries(data), results.suite.measure
    by_gradients = rounds_differ(results, data)
    style = looks(results.suite.entries, results.suite.reference)
    titles = {entry.name: entry.title for entry in entries}
    height = max(4.2, 0.155 * len(entries) + 1.2)
    with_band = {entry.name for entry in banded(results, data)}
    rounds = {entry.name: evaluated(results, data, entry.name) for entry in entries}
    places = {
        name: [t * gradients_a_round(results, data, name) for t in ts] if by_gradients else list(map(float, ts))
        for name, ts in rounds.items()
    }

    def shown(name: str, split: Split) -> Curve:
        whole = curve(results, data, name, rounds[name], split)
        return whole if name in with_band else (whole[0],) * 3

    curves = {split: {entry.name: shown(entry.name, split) for entry in entries} for split in SPLITS}
    short = max(map(len, rounds.values())) <= SHORT
    windows = {
        split: (full_window(list(curves[split].values())) if short else window(list(curves[split].values()), measure))
        for split in SPLITS
    }
    first = min(
        first_seen([(places[name], line) for name, line in curves[split].items()], *windows[split]) for split in SPLITS
    )
    last = max(xs[-1] for xs in places.values())

    def draw(figure: "Figure") -> None:
        for axes, split in zip(figure.subplots(1, 2), SPLITS, strict=True):
            axes.set_title(f"{results.suite.shown(data)}, {split}")
            axes.set_xlabel("device gradients" if by_gradients else "round")
            axes.set_ylabel(f"pooled {measure.label}")
            axes.grid(axis="y")
            for name, (middle, least, most) in reversed(curves[split].items()):  # the first on top, and the boldest
                look, xs = style[name], places[name]
                line = {"color": look.colour, "ls": look.stroke, "lw": look.width, "zorder": 2 + look.width / 10}
                axes.plot(xs, middle, marker="o" if short else None, ms=3, **line)
                if name in with_band:
                    axes.fill_between(xs, least, most, color=look.colour, alpha=0.15, lw=0, zorder=1)
            axes.set_ylim(*windows[split])
            axes.set_xlim(first, max(last, first + 1))
            if by_gradients:
                axes.xaxis.set_major_formatter("{x:,.0f}")
                axes.xaxis.get_major_locator().set_params(nbins=4)  # millions are long words
            else:
                axes.xaxis.get_major_locator().set_params(integer=True)  # no half rounds
            ends = {titles[name]: (middle[-1], style[name]) for name, (middle, _, _) in curves[split].items()}
            label_ends(axes, ends, height - 1)

    return drawn(11, height, draw, "png", "svg")


def evaluated(results: SuiteResults, data: str, entry: str) -> list[int]:
    """The rounds at which any of an entry's models was evaluated, whatever the seed."""
    return sorted({t for run in results.runs[data, entry] for t in run.rounds})


def rounds_differ(results: SuiteResults, data: str) -> bool:
    """Whether entries were given different numbers of rounds; one that ended early was given more than it had."""
    lasts = {
        evaluated(results, data, e.name)[-1] for e in results.entries(data) if not _all_ended_early(results, data, e)
    }
    return len(lasts) > 1


def _all_ended_early(results: SuiteResults, data: str, entry: Entry) -> bool:
    return all(len(run.diverged) == len(run.outcomes) for run in results.runs[data, entry.name])


def gradients_a_round(results: SuiteResults, data: str, entry: str) -> float:
    """Device gradients of all zones in a round, in the mean over rounds and seeds."""
    runs = results.runs[data, entry]
    return sum(run.device_gradients for run in runs) / max(1, sum(run.rounds[-1] for run in runs))


def curves_caption(results: SuiteResults, data: str) -> str:
    """What the figure's reader must know."""
    entries = banded(results, data)
    line = "mean over seeds" if len(results.suite.seeds) > 1 else f"seed {results.suite.seeds[0]}"
    bands = f"; bands, of {listed([e.title for e in entries])}, go from the worst seed to the best" if entries else ""
    by = "device gradients, as entries have different numbers of rounds" if rounds_differ(results, data) else "round"
    return (
        f"Learning curves on {results.suite.shown(data)}: pooled {results.suite.measure.label} by {by}, {line}{bands}."
        " Every zone is at the same round here; tables have each zone's model of the round that was best on validation."
        " Axes may be cut to where the lines end; names are in the order of the last values. An arrow: that line ends"
        " outside the picture."
    )


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


def full_window(curves: Sequence[Curve]) -> tuple[float, float]:
    """All that is finite, with some air; of what runs away, as much as three times the first values."""
    values = [v for _, least, most in curves for v in (*least, *most) if math.isfinite(v)]
    if not values:
        return (0.0, 1.0)
    starts = [abs(most[0]) for _, _, most in curves if math.isfinite(most[0])]
    low, high = min(values), min(max(values), 3 * max(starts, default=max(values)))
    air = 0.08 * max(high - low, 1e-3 * abs(high), 1e-9)
    return low - air, high + air


def first_seen(lines: Sequence[tuple[Sequence[float], Curve]], low: float, high: float) -> float:
    """A little before the place where the first line comes into the window: what is left of it would be empty.

    Lines are places, ascending, and the values there.
    """
    start, end = min(xs[0] for xs, _ in lines), max(xs[-1] for xs, _ in lines)
    entries = []
    for xs, (middle, _, _) in lines:
        inside = [low <= value <= high for value in middle]
        if any(inside):
            i = inside.index(True)
            entries.append(_crossing(xs, middle, i, low, high) if i else xs[0])
    first = min(entries, default=start)
    return max(start, math.floor(first - 0.05 * (end - first)))


def _crossing(xs: Sequence[float], values: Sequence[float], i: int, low: float, high: float) -> float:
    """Where the line from point `i - 1`, outside, to point `i`, inside, comes in."""
    before, value = values[i - 1], values[i]
    if not math.isfinite(before):
        return xs[i]
    edge = high if before > high else low
    return xs[i - 1] + (xs[i] - xs[i - 1]) * (edge - before) / (value - before)
