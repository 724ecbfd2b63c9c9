"""The dendrogram of a run from its zones' histograms (method 3): the cloud and the simulator make it by this code."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sgfusion.dendrogram_file import ZoneTree
from sgfusion.distance import zone_distances
from sgfusion.errors import RunFileError
from sgfusion.hrg import fit_dendrogram
from sgfusion.hrg_chain import Engine
from sgfusion.runfile import RunFile

Floats = npt.NDArray[np.float64]


def fit_zone_tree(
    histograms: Sequence[npt.ArrayLike] | Floats, zones: Sequence[str], run: RunFile, *, engine: Engine = "numba"
) -> ZoneTree:
    """The tree over `zones`, whose histograms are the rows; a pure function of its arguments. Engines give the same.

    Where the run says `hrg.from`, it is taken as given and the histograms play no part.
    """
    if run.hrg.from_ is not None:
        return given_zone_tree(run.hrg.from_, zones)
    distances = zone_distances(histograms, run.hrg.metric, run.hrg.p, zones=zones)
    fit = fit_dendrogram(
        distances,
        seed=run.seed,
        schedule=run.hrg.schedule,
        restarts=run.hrg.restarts,
        patience=run.hrg.patience,
        max_moves=run.hrg.max_moves,
        engine=engine,
    )
    return ZoneTree(tuple(zones), fit.dendrogram, distances)


def given_zone_tree(path: str, zones: Sequence[str]) -> ZoneTree:
    """The tree of the `dendrogram.json` at `path`, refused unless it is over `zones`, in their order."""
    try:
        tree = ZoneTree.from_json(Path(path).read_bytes())
    except OSError as error:
        raise RunFileError(f"hrg.from = {path!r} cannot be read: {error.strerror}") from error
    if tree.zones != tuple(zones):
        raise RunFileError(
            f"hrg.from = {path!r} is over the zones {', '.join(tree.zones)}, the run's are {', '.join(zones)}:"
            " give the dendrogram of this run's zones, in their order; on a cluster all of them have to come"
        )
    return tree
