"""What one setting does: `k` of top-k (stochastic versus deterministic, method 8), and ε (method 1)."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.figures import drawn
from console.formats import deviation, mean
from console.report.control import control_of
from console.report.looks import Look, looks, method_colour
from console.report.main_table import zone_mean
from console.report.suite_results import Entry, SuiteResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Sweep:
    """One setting's values, and the entries that have them with all else the same; others stand by as lines."""

    key: str
    axis: str
    title: str
    label: str
    entries: Mapping[float, Entry]
    beside: tuple[Entry, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", dict(sorted(self.entries.items())))


def top_k_sweep(results: SuiteResults) -> Sweep | None:
    """The entries of top-k-SGFusion by `k`, beside those that draw by chance; None if there are not two."""
    swept = _swept(results, "top-k-sgfusion", "sampler.k")
    beside = _first_of(results, results.suite.reference.method, "chi-sgfusion", "random")
    title = "Deterministic draws of the k nearest zones, beside stochastic ones"
    axis = "k, the zones drawn every round"
    return Sweep("top-k", axis, title, "top-k-SGFusion", swept, beside) if len(swept) > 1 else None


def epsilon_sweep(results: SuiteResults) -> Sweep | None:
    """The entries of SGFusion by ε, `off` being infinity, beside who needs no histogram; None if there are not two."""
    swept = _swept(results, "sgfusion", "histogram.epsilon")
    reference = results.suite.reference
    others = [entry for entry in swept.values() if entry.name != reference.name]
    # The reference takes its place among them if it leaves ε to the run file, and differs in nothing else.
    if others and reference.method == "sgfusion" and _rest(reference, "") == _rest(others[0], "histogram.epsilon"):
        swept = {_number(results.world(results.data[0]).epsilon): reference} | swept
    beside = _first_of(results, "random", "sgeofl")
    title = "SGFusion with noisier and less noisy histograms"
    axis = "ε of each device's histogram (left: more private)"
    return Sweep("epsilon", axis, title, "SGFusion", swept, beside) if len(swept) > 1 else None


def sweep_figure(results: SuiteResults, sweep: Sweep) -> dict[str, bytes]:
    """A panel for each data set where any of the sweep is complete; whiskers and the band are deviations over seeds."""
    names = {entry.name for entry in sweep.entries.values()}
    panels = [data for data in results.data if names & {entry.name for entry in results.entries(data)}]
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    style = looks(results.suite.entries, results.suite.reference)

    def draw(figure: "Figure") -> None:
        for place, data in enumerate(panels):
            axes = figure.add_subplot(rows, columns, place + 1)
            _panel(axes, results, data, sweep, style)
            if place % columns == 0:
                axes.set_ylabel(f"{results.suite.measure.label}, mean over zones")
            if place + columns >= len(panels):
                axes.set_xlabel(sweep.axis)
        legend = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(list(legend.values()), list(legend), loc="outside lower center", ncols=4, frameon=False)

    return drawn(1.2 + 3.9 * columns if columns > 1 else 6.4, 0.6 + 3.1 * rows, draw, "png", "svg")


def _panel(axes: "Axes", results: SuiteResults, data: str, sweep: Sweep, style: Mapping[str, Look]) -> None:
    complete = {entry.name for entry in results.entries(data)}
    places = {value: i for i, value in enumerate(sweep.entries)}
    shown = {value: entry for value, entry in sweep.entries.items() if entry.name in complete}
    seeds = {value: _means(results, data, entry) for value, entry in shown.items()}
    axes.grid(axis="y")
    axes.set_title(results.suite.shown(data))
    axes.errorbar(
        [places[value] for value in shown],
        [mean(values) for values in seeds.values()],
        yerr=[deviation(values) or 0.0 for values in seeds.values()] if len(results.suite.seeds) > 1 else None,
        color=method_colour("sgfusion" if sweep.key == "epsilon" else "top-k-sgfusion"),
        label=sweep.label,
        marker="o",
        markersize=5,
        lw=1.6,
        elinewidth=1,
        capsize=3,
    )
    for entry in sweep.beside:
        if entry.name in complete:
            look = style[entry.name]
            over_seeds = _means(results, data, entry)
            value, around = mean(over_seeds), deviation(over_seeds)
            if around and entry.name == results.suite.reference.name:  # one band alone: they would hide each other
                axes.axhspan(value - around, value + around, color=look.colour, alpha=0.1, lw=0, zorder=0)
            axes.axhline(value, color=look.colour, ls=look.stroke, lw=1.3, label=entry.title, zorder=1)
    axes.set_xticks(range(len(places)), ["off" if math.isinf(value) else f"{value:g}" for value in places])
    axes.set_xlim(-0.4, len(places) - 0.6)


def _means(results: SuiteResults, data: str, entry: Entry) -> list[float]:
    return [zone_mean(run, results.suite.measure, results.zones(data)) for run in results.runs[data, entry.name]]


def _swept(results: SuiteResults, method: str, key: str) -> dict[float, Entry]:
    """The largest group of the method's entries that differ in the key alone, by its value."""
    groups: dict[str, dict[float, Entry]] = {}
    for entry in results.suite.entries:
        if entry.method == method and key in entry.settings and _complete(results, entry):
            groups.setdefault(_rest(entry, key), {}).setdefault(_number(entry.settings[key]), entry)
    return max(groups.values(), key=len, default={})


def _rest(entry: Entry, key: str) -> str:
    return json.dumps({name: value for name, value in entry.settings.items() if name != key}, sort_keys=True)


def _number(value: Any) -> float:
    return math.inf if value == "off" else float(value)


def _first_of(results: SuiteResults, *methods: str) -> tuple[Entry, ...]:
    """The reference if it is of the method, else its control, else the first entry of it, for each method."""
    complete = [entry for entry in results.suite.entries if _complete(results, entry)]
    reference = results.suite.reference
    control = control_of(complete, reference)
    candidates = sorted(complete, key=lambda e: 0 if e is reference else 1 if e is control else 2)
    found = [next((e for e in candidates if e.method == method), None) for method in methods]
    return tuple(entry for entry in found if entry is not None)


def _complete(results: SuiteResults, entry: Entry) -> bool:
    return any((data, entry.name) in results.runs for data in results.data)
