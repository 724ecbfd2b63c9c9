"""The names of lines, at their ends: a reader need not look up twelve of them in a legend."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from console.figures import INK
from console.report.looks import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def label_ends(axes: "Axes", ends: Mapping[str, tuple[float, Look]], inches: float) -> None:
    """Each line's name at its end, drawn apart where ends are close, with a sample of its stroke.

    An arrow stands for an end that is out of sight. Names are in ink: the lighter colours cannot be read as small text.
    `inches` is the height of the axes, nearly.
    """
    low, high = axes.get_ylim()
    heights = [(value - low) / (high - low) if math.isfinite(value) else 2.0 for value, _ in ends.values()]
    inside = [min(max(height, 0.0), 1.0) for height in heights]
    spots = spaced(inside, 10.5 / (72 * inches), 0.0, 1.0)
    for (title, (_, look)), at, end, spot in zip(ends.items(), heights, inside, spots, strict=True):
        for xs, ys, stroke, width in (
            ((1.0, 1.015, 1.055), (end, end, spot), "-", 0.6),
            ((1.055, 1.125), (spot, spot), look.stroke, look.width),
        ):
            axes.plot(
                xs,
                ys,
                transform=axes.transAxes,
                clip_on=False,
                color=look.colour,
                ls=stroke,
                lw=width,
                solid_capstyle="butt",
            )
        axes.annotate(
            title + (" ↑" if at > 1 else " ↓" if at < 0 else ""),
            xy=(1.14, spot),
            xycoords="axes fraction",
            va="center",
            fontsize=8,
            color=INK,
            fontweight="bold" if look.width > 2 else "normal",
            annotation_clip=False,
        )


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
