"""One zone's probabilistic dendrogram `T_z`: its ancestors, each with `p_r` and the zones off it (method 4)."""

import textwrap
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from console.figures import INK, PALETTE, drawn
from console.formats import counted
from console.report.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SPINE = 2.2  # inches from the left to the zone's line of ancestors
PALE = "#64748b"


@dataclass(frozen=True)
class Ancestor:
    """A node above the zone: its `d_r`, the zone's `p_r` at it, and the zones of the side it did not come from."""

    distance: float
    probability: float
    zones: tuple[str, ...]


def ancestors(world: World, zone: int) -> list[Ancestor]:
    """From the zone's parent up to the root."""
    dendrogram = world.tree.dendrogram
    node_distances = dendrogram.node_distances(world.distances)
    below: list[list[int]] = [[leaf] for leaf in range(dendrogram.zones)]
    found = []
    here = zone
    for row, (left, right) in enumerate(dendrogram.merges.tolist()):
        below.append(sorted(below[left] + below[right]))
        if here in (left, right):
            others = below[right if here == left else left]
            found.append(
                Ancestor(
                    float(node_distances[row]),
                    float(world.probabilities[zone, others[0]]),
                    tuple(world.zones[other] for other in others),
                )
            )
            here = dendrogram.zones + row
    return found


def zone_path_figure(name: str, world: World, zone: int) -> dict[str, bytes]:
    """Below the data set's name, a climb from the zone, at the bottom, to the root.

    The bluer a node, the likelier its zones are drawn.
    """
    path = ancestors(world, zone)
    texts = [textwrap.wrap(_names(step.zones), 84, break_on_hyphens=False) for step in path]
    gaps = [1 + 0.42 * (len(lines) - 1) for lines in texts]
    heights = np.cumsum([0.5 + gaps[0] / 2, *((a + b) / 2 for a, b in pairwise(gaps))]).tolist()
    top = heights[-1] + gaps[-1] / 2
    most = max(step.probability for step in path)

    width = min(10.0, max(6.8, SPINE + 0.6 + 0.085 * max(len(line) for lines in texts for line in lines)))

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0, width)  # in inches, nearly: the axes fill the figure
        axes.set_ylim(-0.45, top + 0.45)
        axes.plot((SPINE, SPINE), (0, heights[-1]), color=INK, lw=1.4, zorder=1)
        for step, height, lines in zip(path, heights, texts, strict=True):
            axes.plot((SPINE, SPINE + 0.45), (height, height), color=INK, lw=1.4, zorder=1)
            shade = 0.12 + 0.88 * step.probability / most
            axes.scatter(SPINE, height, s=150, color="white", zorder=2)
            axes.scatter(SPINE, height, s=150, color=PALETTE[0], alpha=shade, edgecolors="none", zorder=3)
            axes.scatter(SPINE, height, s=150, facecolors="none", edgecolors=INK, linewidths=1, zorder=4)
            axes.text(SPINE - 0.2, height, f"$p_r$ = {step.probability:.3f}", ha="right", va="center", weight="bold")
            axes.text(SPINE - 1.15, height, f"$d_r$ = {step.distance:.3f}", ha="right", va="center", color=PALE)
            axes.text(SPINE + 0.53, height, "\n".join(lines), va="center", fontsize=8.5, linespacing=1.25)
        axes.scatter(SPINE, 0, s=60, marker="s", color=PALETTE[1], zorder=3)
        axes.text(SPINE + 0.2, 0, world.zones[zone], va="center", weight="bold", color=PALETTE[1])
        axes.text(SPINE + 0.53, top + 0.15, "drawn independently, each with $p_r$:", color=PALE, fontsize=8.5)
        sure = sum(step.probability for step in path)
        axes.set_title(
            f"{name}\n"
            f"{world.zones[zone]}: Σ $p_r$ = {sure:.3f} over {counted(len(path), 'ancestor')};"
            f" {world.probabilities[zone].sum():.2f} zones a round expected"
        )

    return drawn(width, max(2.0, 0.36 * (top + 0.9) + 0.5), draw, "png", "svg")


def _names(zones: tuple[str, ...], most: int = 40) -> str:
    """The zones by name; of very many, how many more."""
    shown = ", ".join(zones[:most])
    return shown if len(zones) <= most else f"{shown} and {len(zones) - most} more"
