"""Zones as the polygons of a GeoJSON file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from device.sources.extras import optional
from device.sources.grouped import Names, zone_names
from device.sources.neighbours import Floats, symmetric
from device.sources.outlines import outline
from sgfusion.errors import DataError
from sgfusion.runfile_geography import Rings


class Polygons:
    """The zones of a GeoJSON file, in order of their names. Features of one name are one zone: a region's islands."""

    def __init__(self, path: str, property: str) -> None:
        shapely = optional("shapely")
        parts: dict[str, list[Any]] = {}
        features = _features(path)
        raw = [_name(path, number, feature, property) for number, feature in enumerate(features)]
        for number, (name, feature) in enumerate(zip(zone_names(raw).tolist(), features, strict=True)):
            parts.setdefault(name, []).append(_geometry(path, number, feature))
        self.names = tuple(sorted(parts))
        self._shapes = [shapely.union_all(parts[name]) for name in self.names]
        self._tree = shapely.STRtree(self._shapes)

    def of_places(self, latitude: Floats, longitude: Floats) -> Names:
        """The zone of each place, "" outside them all. On a shared border it is the first by name."""
        points = optional("shapely").points(longitude, latitude)
        place, zone = self._tree.query(points, predicate="intersects")
        first = np.full(len(points), len(self.names))
        np.minimum.at(first, place, zone)
        zones: Names = np.array((*self.names, ""), np.str_)[first]
        return zones

    def neighbours(self, zones: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Who touches whom among the zones: a border, or no more than a corner. An island has no neighbours."""
        own, other = self._tree.query(self._shapes, predicate="intersects")
        touching = symmetric(self.names, zip(own.tolist(), other.tolist(), strict=True))
        return {name: tuple(z for z in touching.get(name, ()) if z in set(zones)) for name in zones}

    def places(self, zones: tuple[str, ...]) -> dict[str, Rings]:
        """The outlines of the zones, for a map."""
        found = {name: outline(shape) for name, shape in zip(self.names, self._shapes, strict=True) if name in zones}
        return {name: rings for name, rings in found.items() if rings}


def _features(path: str) -> list[Mapping[str, Any]]:
    try:
        document = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise DataError(f"zones.polygons = {path!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"zones.polygons = {path!r} is not JSON: {error}") from error
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list) or not features or not all(isinstance(f, dict) for f in features):
        raise DataError(f"zones.polygons = {path!r} has no features: give a GeoJSON FeatureCollection of polygons")
    return features


def _name(path: str, number: int, feature: Mapping[str, Any], key: str) -> str:
    properties = feature.get("properties") or {}
    name = properties.get(key) if isinstance(properties, dict) else None
    if isinstance(name, str | int) and not isinstance(name, bool) and name != "":
        return str(name)
    there = ", ".join(map(repr, properties)) or "none"
    raise DataError(
        f"feature {number} of {path} has no name in its property {key!r}: its properties are {there}."
        " Say with zones.property which one names the zone"
    )


def _geometry(path: str, number: int, feature: Mapping[str, Any]) -> Any:
    """The feature's shape, mended where its rings cross themselves: such slips are common and harmless."""
    shapely = optional("shapely")
    geometry = feature.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, dict) else geometry
    if kind not in ("Polygon", "MultiPolygon"):
        raise DataError(f"feature {number} of {path} is {kind!r}: a zone is a Polygon or a MultiPolygon")
    try:
        shape = shapely.make_valid(shapely.from_geojson(json.dumps(geometry)))
    except (shapely.errors.GEOSException, ValueError) as error:
        raise DataError(f"feature {number} of {path} is no {kind}: {error}") from error
    if not shape.area:
        raise DataError(f"feature {number} of {path} is a {kind} without an area: leave it out")
    return shape
