"""Zones made up for the demonstration: each is of a hidden kind, and zones of one kind are alike in terrain and law.

The terrain is where a zone's features `x` lie, and shifts its labels; the law is `y = ⟨w_zone, x⟩ + noise`. All zones
share most of the law, zones of a kind more of it. Everything is a pure function of the seed.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sgfusion.runfile import Count, Positive, Section
from sgfusion.streams import raw_stream

Floats = npt.NDArray[np.float64]

TEST_SAMPLES = 200  # a zone: enough to tell models apart, however few it has to train on
BINS = 15


class GeneratedZones(Section):
    """The keys of `[data]` when `source = "generated_zones"`."""

    devices: Count
    samples: Count
    features: Count
    kinds: Count
    contrast: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    difference: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    noise: Positive


@dataclass(frozen=True, eq=False)
class ZoneData:
    """One zone: its devices' samples, and samples kept apart to test on."""

    kind: int
    train: tuple[tuple[Floats, Floats], ...]
    test: tuple[Floats, Floats]


def generate_zones(settings: GeneratedZones, zones: int, seed: int) -> tuple[ZoneData, ...]:
    """All zones; zone `z` is of kind `z mod kinds`."""
    random = _random(seed, "kinds")
    common = random.normal(size=settings.features)
    laws = common + settings.contrast * random.normal(size=(settings.kinds, settings.features))
    # Kinds lie apart along the common law, so their labels do too: that is what the method can see of them.
    along = common / np.linalg.norm(common)
    terrains = (
        np.linspace(-1.5, 1.5, settings.kinds)[:, None] * along if settings.kinds > 1 else np.zeros((1, len(along)))
    )
    return tuple(_zone(settings, z, seed, laws, terrains) for z in range(zones))


def label_edges() -> Floats:
    """The public bins of the labels."""
    return np.linspace(-15, 15, BINS + 1)


def _zone(settings: GeneratedZones, zone: int, seed: int, laws: Floats, terrains: Floats) -> ZoneData:
    random = _random(seed, "zone", zone)
    kind = zone % settings.kinds
    law = laws[kind] + settings.difference * random.normal(size=settings.features)

    def samples(count: int) -> tuple[Floats, Floats]:
        x = terrains[kind] + random.normal(size=(count, settings.features))
        return x, x @ law + settings.noise * random.normal(size=count)

    return ZoneData(kind, tuple(samples(settings.samples) for _ in range(settings.devices)), samples(TEST_SAMPLES))


def _random(seed: int, *place: str | int) -> np.random.Generator:
    purpose, *numbers = place
    return np.random.Generator(raw_stream(seed, f"generated {purpose}", *map(int, numbers)))
