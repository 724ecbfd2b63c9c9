"""Figures, drawn with matplotlib to a file."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import MissingDependencyError

INK = "#334155"
PALETTE = ("#2563eb", "#d97706", "#059669", "#c026d3", "#dc2626", "#0891b2", "#65a30d", "#7c3aed")


def draw_zone_tree(path: Path, tree: ZoneTree, probabilities: npt.NDArray[np.float64], groups: Sequence[int]) -> None:
    """The dendrogram beside the matrix of sharing probabilities, zones in the same order; names coloured by group."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 (only figures need it)
        from scipy.cluster.hierarchy import dendrogram  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(f"figures need {error.name}: pip install 'sgfusion[experiments]'") from error
    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 (after the backend is chosen)

    many = len(tree.zones) > 40
    height = min(max(3.0, (0.12 if many else 0.32) * len(tree.zones) + 1.2), 24.0)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, height), width_ratios=(1.15, 1), layout="constrained", facecolor="white"
    )
    drawn = dendrogram(
        tree.dendrogram.to_linkage(tree.distances),
        orientation="left",
        labels=list(tree.zones),
        ax=left,
        link_color_func=_ink,
        leaf_font_size=5 if many else 9,
    )
    order = drawn["leaves"]
    for label, zone in zip(left.get_yticklabels(), order, strict=True):
        label.set_color(PALETTE[groups[zone] % len(PALETTE)])
    left.set_xlabel("mean label distance between the two sides of a node, $d_r$")
    left.set_title(f"Dendrogram: L = {tree.dendrogram.loss(tree.distances):.3f}", loc="left")
    left.spines[["top", "right", "left"]].set_visible(False)
    image = right.imshow(probabilities[np.ix_(order, order)], origin="lower", cmap="Blues", vmin=0, aspect="auto")
    right.set_yticks([])
    names = [] if many else [tree.zones[zone] for zone in order]  # rows and columns are in the dendrogram's order
    right.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    right.set_title("Chance that the row's zone draws the column's", loc="left")
    figure.colorbar(image, ax=right, shrink=0.8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


_ink: Callable[[int], str] = lambda _node: INK  # noqa: E731 (SciPy wants a function of the node)
