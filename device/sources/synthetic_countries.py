"""The six countries of the synthetic heart rates: real names and places, and the paper's counts (method 10).

The counts are of the real data, which is not here; the regions are ours. Where the data had fewer zones than the
country has regions, we took as many as it had: thirteen of Norway's former nineteen counties, thirteen of Spain's
communities, thirty-two states, twenty-three of Thailand's provinces, eighteen of the former regions of mainland France;
all sixteen voivodeships of Poland. Places are rough: they only tell who is next to whom, and where on a map.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

CountryName = Literal["norway", "spain", "us", "thailand", "france", "poland"]
COUNTRY_NAMES: tuple[CountryName, ...] = get_args(CountryName)


@dataclass(frozen=True)
class Country:
    """How many devices and samples there are, and the zones' middles, latitude and longitude, in order of names."""

    devices: int
    samples: int
    zones: Mapping[str, tuple[float, float]]


NORWAY = {
    "akershus": (60.0, 11.2),
    "buskerud": (60.2, 9.4),
    "hedmark": (61.4, 11.3),
    "hordaland": (60.3, 6.2),
    "nordland": (67.2, 14.8),
    "oppland": (61.6, 9.3),
    "oslo": (59.95, 10.75),
    "ostfold": (59.35, 11.25),
    "rogaland": (58.95, 6.1),
    "sor-trondelag": (63.1, 10.4),
    "telemark": (59.4, 8.6),
    "troms": (69.3, 19.0),
    "vestfold": (59.25, 10.2),
}

SPAIN = {
    "andalucia": (37.4, -4.8),
    "aragon": (41.5, -0.7),
    "asturias": (43.3, -6.0),
    "cantabria": (43.2, -4.0),
    "castilla-la-mancha": (39.4, -3.0),
    "castilla-y-leon": (41.7, -4.7),
    "cataluna": (41.8, 1.5),
    "comunidad-valenciana": (39.4, -0.6),
    "extremadura": (39.2, -6.1),
    "galicia": (42.8, -7.9),
    "madrid": (40.4, -3.7),
    "navarra": (42.7, -1.6),
    "pais-vasco": (43.0, -2.6),
}

US = {
    "arizona": (34.3, -111.7),
    "california": (37.2, -119.5),
    "colorado": (39.0, -105.5),
    "connecticut": (41.6, -72.7),
    "florida": (28.6, -82.4),
    "georgia": (32.7, -83.4),
    "illinois": (40.0, -89.2),
    "indiana": (39.9, -86.3),
    "iowa": (42.0, -93.5),
    "kansas": (38.5, -98.4),
    "kentucky": (37.5, -85.3),
    "maryland": (39.0, -76.8),
    "massachusetts": (42.3, -71.8),
    "michigan": (44.3, -85.4),
    "minnesota": (46.3, -94.3),
    "missouri": (38.4, -92.5),
    "nebraska": (41.5, -99.8),
    "nevada": (39.3, -116.6),
    "new-jersey": (40.2, -74.7),
    "new-york": (42.9, -75.5),
    "north-carolina": (35.5, -79.4),
    "ohio": (40.3, -82.8),
    "oklahoma": (35.6, -97.5),
    "oregon": (43.9, -120.6),
    "pennsylvania": (40.9, -77.8),
    "south-carolina": (33.9, -80.9),
    "tennessee": (35.9, -86.4),
    "texas": (31.5, -99.3),
    "utah": (39.3, -111.7),
    "virginia": (37.5, -78.8),
    "washington": (47.4, -120.4),
    "wisconsin": (44.6, -89.9),
}

THAILAND = {
    "bangkok": (13.75, 100.5),
    "chachoengsao": (13.6, 101.4),
    "chanthaburi": (12.8, 102.1),
    "chiang-mai": (18.8, 98.9),
    "chiang-rai": (19.9, 99.8),
    "chon-buri": (13.2, 101.2),
    "khon-kaen": (16.4, 102.7),
    "nakhon-pathom": (13.9, 100.1),
    "nakhon-ratchasima": (15.0, 102.1),
    "nonthaburi": (13.9, 100.45),
    "pathum-thani": (14.05, 100.65),
    "phitsanulok": (16.9, 100.5),
    "phra-nakhon-si-ayutthaya": (14.35, 100.5),
    "phuket": (7.95, 98.35),
    "prachuap-khiri-khan": (11.9, 99.7),
    "rayong": (12.8, 101.4),
    "samut-prakan": (13.55, 100.7),
    "samut-sakhon": (13.55, 100.2),
    "saraburi": (14.6, 100.95),
    "songkhla": (7.1, 100.5),
    "surat-thani": (9.1, 99.3),
    "ubon-ratchathani": (15.2, 105.0),
    "udon-thani": (17.4, 102.8),
}

FRANCE = {
    "alsace": (48.3, 7.4),
    "aquitaine": (44.4, -0.3),
    "auvergne": (45.7, 3.2),
    "basse-normandie": (48.9, -0.6),
    "bourgogne": (47.2, 4.5),
    "bretagne": (48.2, -2.9),
    "centre": (47.5, 1.7),
    "haute-normandie": (49.5, 1.0),
    "ile-de-france": (48.7, 2.5),
    "languedoc-roussillon": (43.6, 3.3),
    "lorraine": (48.8, 6.2),
    "midi-pyrenees": (43.8, 1.7),
    "nord-pas-de-calais": (50.5, 2.8),
    "pays-de-la-loire": (47.5, -0.8),
    "picardie": (49.6, 2.8),
    "poitou-charentes": (46.1, 0.0),
    "provence-alpes-cote-d-azur": (43.9, 6.2),
    "rhone-alpes": (45.5, 5.3),
}

POLAND = {
    "dolnoslaskie": (51.1, 16.4),
    "kujawsko-pomorskie": (53.1, 18.5),
    "lodzkie": (51.6, 19.4),
    "lubelskie": (51.2, 22.9),
    "lubuskie": (52.2, 15.3),
    "malopolskie": (49.9, 20.3),
    "mazowieckie": (52.3, 21.1),
    "opolskie": (50.6, 17.9),
    "podkarpackie": (49.9, 22.2),
    "podlaskie": (53.3, 22.9),
    "pomorskie": (54.2, 18.0),
    "slaskie": (50.3, 19.0),
    "swietokrzyskie": (50.8, 20.8),
    "warminsko-mazurskie": (53.9, 20.8),
    "wielkopolskie": (52.3, 17.2),
    "zachodniopomorskie": (53.6, 15.5),
}

COUNTRIES: Mapping[CountryName, Country] = {
    "norway": Country(48, 5_902, NORWAY),
    "spain": Country(110, 9_609, SPAIN),
    "us": Country(99, 14_774, US),
    "thailand": Country(105, 10_970, THAILAND),
    "france": Country(67, 8_094, FRANCE),
    "poland": Country(205, 16_907, POLAND),
}
