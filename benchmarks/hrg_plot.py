"""The plot of how the cost of a fit grows with the number of zones."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes

mpl.use("agg")

import matplotlib.pyplot as plt

COLOURS = ("#2563eb", "#d97706")


def plot_cost(
    path: Path, *, zones: Sequence[int], seconds: Mapping[str, Sequence[float]], move_ns: Mapping[str, Sequence[float]]
) -> None:
    """CPU seconds of a whole fit, and nanoseconds of one proposal, both over the number of zones on log scales."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    _lines(left, zones, seconds, "CPU seconds for the dendrogram")
    _lines(right, zones, move_ns, "nanoseconds a proposal")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _lines(axes: Axes, zones: Sequence[int], series: Mapping[str, Sequence[float]], title: str) -> None:
    for (name, values), colour in zip(series.items(), COLOURS, strict=True):
        axes.loglog(zones, values, marker="o", color=colour, label=name)
    axes.set_title(title, loc="left")
    axes.set_xlabel("zones")
    axes.set_xticks(zones, [str(count) for count in zones])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
