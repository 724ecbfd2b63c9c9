"""From places to zones: by a column, by GeoJSON polygons, or by H3 cells; the zones' neighbours, and their places."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from device.sources.extras import optional
from device.sources.grouped import Names, Neighbours, no_geography, zone_names
from device.sources.neighbours import Floats, delaunay_neighbours, mean_places, on_globe
from device.sources.outlines import Places, cells, mean_points, nowhere
from device.sources.polygons import Polygons
from device.sources.sieve import Sieve
from sgfusion.errors import DataError
from sgfusion.runfile import Zones
from sgfusion.runfile_geography import Rings

__all__ = ["delaunay_neighbours", "place"]

Centres = Mapping[str, tuple[float, float]]


def place(
    zones: Zones, column: Names | None, latitude: Floats | None, longitude: Floats | None, sieve: Sieve
) -> tuple[Names, Neighbours, Places]:
    """The zone of each sample, and the zones' neighbours and places. Samples without one are dropped from the sieve.

    `column` has zones' names, "" where there is none; it counts with `zones.by = "column"`, places do with the others.
    Without `zones.neighbours`, a column's zones have theirs by Delaunay if there are places at all. A zone's place on a
    map is its polygon or its cell; of a column's zone, the mean place of its samples.
    """
    by_zoning: Neighbours = no_geography
    places: Places = nowhere
    if zones.by == "column":
        if column is None:
            raise DataError("zones.by = 'column' needs a zone for each sample, or give places and zones.by = 'h3'")
        names = np.asarray(column, np.str_).copy()
        sieve.drop(names == "", "no zone")
    elif latitude is None or longitude is None:
        raise DataError(f"zones.by = {zones.by!r} needs the latitude and the longitude of each sample")
    else:
        why = "no latitude and longitude in degrees" + _swapped(latitude, longitude, sieve)
        sieve.drop(~on_globe(latitude, longitude), why)
        names, by_zoning, places = _named_places(zones, latitude, longitude, sieve)
    names[sieve.kept] = zone_names(names[sieve.kept])
    if zones.neighbours in ("border", "ring"):
        return names, by_zoning, places
    if latitude is not None and longitude is not None:
        centres = _centres(names, latitude, longitude, sieve)
        return names, _delaunay_of(centres), _means_of(centres) if zones.by == "column" else places
    if zones.neighbours == "delaunay":
        raise DataError("zones.neighbours = 'delaunay' needs the latitude and the longitude of each sample")
    return names, no_geography, places


def _named_places(zones: Zones, latitude: Floats, longitude: Floats, sieve: Sieve) -> tuple[Names, Neighbours, Places]:
    rows = np.flatnonzero(sieve.kept)
    if zones.by == "h3":
        h3 = optional("h3")
        found = map(
            h3.latlng_to_cell, latitude[rows].tolist(), longitude[rows].tolist(), [zones.resolution] * len(rows)
        )
        return _spread(np.array(list(found), np.str_), sieve), _ring, cells
    polygons = Polygons(str(zones.polygons), str(zones.property))
    names = _spread(polygons.of_places(latitude[rows], longitude[rows]), sieve)
    sieve.drop(names == "", f"outside every polygon of {Path(str(zones.polygons)).name}")
    return names, polygons.neighbours, polygons.places


def _spread(of_kept: Names, sieve: Sieve) -> Names:
    """The kept samples' names with "" for the others in between."""
    names = np.zeros(len(sieve.kept), of_kept.dtype if len(of_kept) else "<U1")
    names[sieve.kept] = of_kept
    return names


def _ring(zones: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """H3 cells that share an edge."""
    disk = optional("h3").grid_disk
    return {zone: tuple(sorted((set(disk(zone, 1)) - {zone}) & set(zones))) for zone in zones}


def _swapped(latitude: Floats, longitude: Floats, sieve: Sieve) -> str:
    """A question if no kept sample has a place on the globe, and some had one the other way round."""
    latitude, longitude = latitude[sieve.kept], longitude[sieve.kept]
    swapped = not on_globe(latitude, longitude).any() and on_globe(longitude, latitude).any()
    return "; are latitude and longitude swapped?" if swapped else ""


def _centres(names: Names, latitude: Floats, longitude: Floats, sieve: Sieve) -> Centres:
    """The mean places of the zones' samples, of zones that have any. Samples without one are counted in a note."""
    rows = np.flatnonzero(sieve.kept & on_globe(latitude, longitude))
    kept = np.count_nonzero(sieve.kept)
    if len(rows) < kept:
        sieve.notes.append(
            f"{kept - len(rows)} of {kept} samples have no place on the globe (latitude within ±90, longitude within"
            f" ±180): they count, but not for the zones' neighbours{_swapped(latitude, longitude, sieve)}"
        )
    known, group = np.unique(names[rows], return_inverse=True)
    middle = mean_places(group, latitude[rows], longitude[rows], len(known))
    return {name: (float(lat), float(lon)) for name, lat, lon in zip(known.tolist(), *middle, strict=True)}


def _delaunay_of(centres: Centres) -> Neighbours:
    """Neighbours by the zones' centres; a zone without one has none."""

    def neighbours(zones: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
        placed = [zone for zone in zones if zone in centres]
        found = delaunay_neighbours(placed, [centres[z][0] for z in placed], [centres[z][1] for z in placed])
        return {zone: found.get(zone, ()) for zone in zones}

    return neighbours


def _means_of(centres: Centres) -> Places:
    def places(zones: tuple[str, ...]) -> Mapping[str, Rings]:
        return mean_points({zone: centres[zone] for zone in zones if zone in centres})

    return places
