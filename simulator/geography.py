"""What methods that need neighbours say where there are none."""

from sgfusion.errors import DataError
from sgfusion.runfile import RunFile

NEEDING = "d-zgd, delta-z, and chi-sgfusion without sampler.chi"
PLACES = {
    "sequences": "add the arrays lat and lon to the .npz file, the place of each sample in degrees",
    "table": "name the columns of latitude and longitude, in degrees, with data.latitude and data.longitude",
}
"""How a source is given places."""
OWN_PLACES = "let the source's neighbours() name them"


def no_neighbours(run: RunFile) -> DataError:
    """Of a run in which no zone has a neighbour: without places, or with zones that do not touch."""
    if run.zones.by in ("h3", "polygons"):
        remedy = 'no two of its zones touch; take larger ones, or set zones.neighbours = "delaunay"'
    else:
        remedy = PLACES.get(run.data.source, OWN_PLACES)
    return DataError(
        f"data.source = {run.data.source!r} gives zones no neighbours, which {NEEDING} need: {remedy},"
        " or say who is next to whom with zones.adjacent"
    )


def lonely_note(lonely: list[str], zones: int) -> str:
    """Of zones without a neighbour where others have some: an island, or a zone without a place."""
    return f"without neighbours are {len(lonely)} of {zones} zones ({shortened(lonely)}): {NEEDING} train them alone"


def shortened(names: list[str]) -> str:
    """The first ten: there may be hundreds."""
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
