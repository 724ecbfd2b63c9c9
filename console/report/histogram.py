"""A device's label histogram, as it is and as it leaves the device (method 1)."""

from typing import TYPE_CHECKING

import numpy as np

from console.figures import FAINT, PALETTE, drawn
from console.report.world import Example, World

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def histogram_figure(name: str, world: World, example: Example, unit: str) -> dict[str, bytes]:
    """Below the data set's name, both as shares of the device's mass: bars before the noise, an outline after it."""
    total = float(example.mass.sum())
    before = example.mass / total if total else example.mass
    edges = world.edges if len(world.edges) == len(before) + 1 else np.arange(len(before) + 1) - 0.5
    apart = 0.5 * float(np.abs(before - example.released).sum())
    held = f"{total:,.0f} sample{'' if total == 1 else 's'}"
    noise = "no noise (ε off)" if world.epsilon == "off" else f"ε = {world.epsilon:g}"

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.bar(
            edges[:-1], before, np.diff(edges), align="edge", color=FAINT, alpha=0.55, ec="white", label="on the device"
        )
        axes.stairs(example.released, edges, color=PALETTE[1], lw=2, label=f"released, {noise}")
        axes.set_xlabel(f"label ({unit})" if unit else "label")
        axes.set_ylabel("share of the device's samples")
        axes.set_title(f"{name}\nDevice {example.device} of {example.zone}: {held}; {apart:.1%} of the mass moved")
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=9, reverse=True)

    return drawn(7, 3.5, draw, "png", "svg")
