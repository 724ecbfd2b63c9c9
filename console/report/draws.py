"""Whom each entry drew: how many zones a round, and how alike they were (homophily, method 9)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from console.figures import FAINT, INK, drawn
from console.formats import deviation, mean
from console.report.looks import method_colour
from console.report.runs import Run
from console.report.suite_results import Entry, SuiteResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def drawing_entries(results: SuiteResults, data: str) -> list[Entry]:
    """The entries that draw zones at all: not those with central models, nor those that train each zone alone."""
    return [e for e in results.entries(data) if any(run.drawn for run in results.runs[data, e.name])]


def draws_figure(results: SuiteResults, data: str) -> dict[str, bytes]:
    """Two rows of bars that share their entries; a whisker is the deviation over the seeds."""
    entries = drawing_entries(results, data)

    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        _bars(left, results, data, entries, lambda run: run.drawn)
        left.set_title(f"{results.suite.shown(data)}: zones drawn a round")
        left.set_xlabel("zones, mean over rounds and zones")
        _bars(right, results, data, entries, lambda run: run.homophily)
        right.set_title("Homophily: how far the drawn zones are")
        right.set_xlabel("mean label distance to the zones drawn (lower: more alike)")
        left.set_yticks(range(len(entries)), [entry.title for entry in entries])
        left.invert_yaxis()

    return drawn(10, 0.3 * len(entries) + 1.3, draw, "png", "svg")


def _bars(
    axes: "Axes", results: SuiteResults, data: str, entries: list[Entry], of: Callable[[Run], float | None]
) -> None:
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    for place, entry in enumerate(entries):
        values = [value for run in results.runs[data, entry.name] if (value := of(run)) is not None]
        if not values:  # a draw that is empty every time has no distance
            continue
        ours = entry.name == results.suite.reference.name
        axes.barh(place, mean(values), height=0.62, color=method_colour(entry.method) if ours else FAINT)
        around = deviation(values) or 0.0
        if around:
            axes.errorbar(mean(values), place, xerr=around, color=INK, lw=1, capsize=2)
        at = (mean(values) + around, place)
        axes.annotate(f"{mean(values):#.3g}", at, (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.margins(x=0.14, y=0.02)
    axes.set_xlim(left=0)
