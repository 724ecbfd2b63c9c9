"""The geography of `[zones]` in a run file: who is next to whom, and where zones lie.

Places are rings of `[latitude, longitude]`, for a map: no round reads them. A ring of one pair is a point; any other is
an outline and has three corners or more, its last one joined to its first.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

DEGREES = (90, 180)


def _pair(value: object) -> tuple[float, float]:
    if isinstance(value, list | tuple) and len(value) == 2 and all(type(number) in (int, float) for number in value):
        latitude, longitude = map(float, value)
        if abs(latitude) <= DEGREES[0] and abs(longitude) <= DEGREES[1]:  # which NaN is not
            return latitude, longitude
    raise ValueError("a place is [latitude, longitude] in degrees, -90 to 90 and -180 to 180")


def _ring(ring: "Ring") -> "Ring":
    if len(ring) > 1 and ring[0] == ring[-1]:  # closed, as GeoJSON has it
        ring = ring[:-1]
    if len(ring) in (0, 2):
        raise ValueError("a ring is one place, which is a point, or the three or more corners of an outline")
    return ring


def _rings(rings: "Rings") -> "Rings":
    if not rings:
        raise ValueError("give a ring of places, or leave the zone out: then it has no place on a map")
    return rings


Pair: TypeAlias = Annotated[tuple[float, float], BeforeValidator(_pair)]
Ring: TypeAlias = Annotated[tuple[Pair, ...], Field(strict=False), AfterValidator(_ring)]
Rings: TypeAlias = Annotated[tuple[Ring, ...], Field(strict=False), AfterValidator(_rings)]


def check_geography(names: Sequence[str], adjacent: Mapping[str, Sequence[str]]) -> None:
    """Refuse neighbours that are not mutual, or that the run does not have, if it says which zones it has.

    Places may be of others too: a zone that joins later has its place on the map by them.
    """
    beside = (other for others in adjacent.values() for other in others)
    for name in (*adjacent, *beside) if names else ():
        if name not in names:
            raise ValueError(f"adjacent names zone {name!r}, which is not in names: add it there or leave it out")
    for zone, others in adjacent.items():
        for other in others:
            if other == zone:
                raise ValueError(f"adjacent has zone {zone!r} next to itself: leave it out")
            if zone not in adjacent.get(other, ()):
                raise ValueError(
                    f"adjacent has {other!r} next to {zone!r}, but not {zone!r} next to {other!r}: say both or none"
                )


def places_toml(places: Mapping[str, Rings] | None) -> str:
    """The table `[zones.places]`, a line a zone: a number a line, as tomli_w has it, would be four times as long."""
    if places is None:
        return ""
    lines = [f"{_key(zone)} = {json.dumps(rings, separators=(',', ':'))}\n" for zone, rings in places.items()]
    return "\n[zones.places]\n" + "".join(lines)


def _key(zone: str) -> str:
    return zone if re.fullmatch(r"[A-Za-z0-9_-]+", zone) else json.dumps(zone, ensure_ascii=False)
