"""What all figures share: how they are made and saved, and their colours. And the one of a dendrogram."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sgfusion.dendrogram_file import ZoneTree
from sgfusion.durable import replace_file
from sgfusion.errors import MissingDependencyError, brought_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#334155"
FAINT = "#94a3b8"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1e293b")
"""Okabe and Ito's, told apart by the colour-blind; without their yellow, which white paper swallows."""

_LOOK: dict[str, Any] = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "font.family": "DejaVu Sans",  # matplotlib's own: figures are the same on every machine
    "font.size": 9,
    "grid.color": "#e2e8f0",
    "grid.linewidth": 0.8,
    "svg.hashsalt": "sgfusion",  # else an SVG's ids are random
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}


def drawn(width: float, height: float, draw: Callable[["Figure"], None], *kinds: str) -> dict[str, bytes]:
    """The figure that `draw` makes, as the bytes of a file of each kind (`png`, `svg`); the same ones every time.

    No pyplot: it would keep figures and a window system in mind for the whole process.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 (only figures need it)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(f"figures need {error.name}: {brought_by('experiments')}") from error
    with mpl.rc_context():
        mpl.rcdefaults()  # not what a user's own matplotlibrc says
        look: Any = _LOOK  # its keys are no literals
        mpl.rcParams.update(look)
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        draw(figure)
        files = {}
        for kind in kinds:
            buffer = io.BytesIO()
            dated = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(buffer, format=kind, dpi=160, metadata=dated)
            figure.set_layout_engine("none")  # laid out once: it takes as long as drawing
            files[kind] = buffer.getvalue()
    return files


def draw_zone_tree(
    path: Path, name: str, tree: ZoneTree, probabilities: npt.NDArray[np.float64], sharpness: float
) -> None:
    """The figure of `zone_tree_figure` as a PNG file."""
    replace_file(path, zone_tree_figure(name, tree, probabilities, sharpness, "png")["png"])


def zone_tree_figure(
    name: str, tree: ZoneTree, probabilities: npt.NDArray[np.float64], sharpness: float, *kinds: str
) -> dict[str, bytes]:
    """The dendrogram beside the matrix of sharing probabilities, zones in the same order; the data's name above.

    The sharpness is in the figure, not in a caption alone: probabilities cannot be read without it.
    """
    try:
        from scipy.cluster.hierarchy import dendrogram  # noqa: PLC0415 (only figures need it)
    except ImportError as error:
        raise MissingDependencyError(f"figures need {error.name}: {brought_by('experiments')}") from error
    many = len(tree.zones) > 40
    height = min(max(3.0, (0.13 if many else 0.32) * len(tree.zones) + 1.2), 24.0)

    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        order = dendrogram(
            tree.dendrogram.to_linkage(tree.distances),
            orientation="left",
            labels=list(tree.zones),
            ax=left,
            link_color_func=lambda _node: INK,
            leaf_font_size=6 if many else 9,
        )["leaves"]
        left.set_xlabel("mean label distance between the two sides of a node, $d_r$")
        left.set_title(f"{name}\nDendrogram: L = {tree.dendrogram.loss(tree.distances):.3f}")
        left.spines["left"].set_visible(False)
        shown = np.ma.masked_where(np.eye(len(order), dtype=bool), probabilities[np.ix_(order, order)])
        image = right.imshow(shown, origin="lower", cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
        right.set_facecolor("#e2e8f0")  # the diagonal: no zone draws itself
        right.set_yticks([])
        names = [] if many else [tree.zones[zone] for zone in order]  # rows and columns are in the dendrogram's order
        right.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        if many:  # no room for names
            right.set_xlabel("columns, from left to right: the rows' zones from the bottom up")
        right.set_title(f"κ = {sharpness:g}\nChance that the row's zone draws the column's")
        right.spines[:].set_visible(False)
        bar: Any = figure.colorbar(image, ax=right, shrink=0.8, aspect=5 * height)
        bar.outline.set_visible(False)

    return drawn(11, height, draw, *kinds)
