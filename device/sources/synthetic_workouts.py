"""Synthetic workouts: made-up runs with a made-up heart, whose law is known. Nothing here was measured on anyone.

A runner sets out for an effort `u(t)`, a share of what the heart can do, and the heart follows it:

    rate' = (resting + (max - resting) u(t) - rate) / τ

with the runner's own resting and maximal rate and time `τ`. The speed is what that effort gives on that ground:

    v(t) = u(t) · v_full / ((1 + b · grade(t)) (1 + f · t))

with `v_full` the speed of full effort, `b` the price of climbing, `f` fatigue. A zone has *habits* (how hard, how
evenly, how long, how hilly) and a *law* (`v_full`, `b`, `f`); its runners deviate from both, their form from day to day
too. As runners go by effort, labels follow from habits alone, and the law decides what speed goes with them: so the law
says which heart rate given features mean, and by itself leaves no trace in the labels.

Zones are of hidden types: those of one type are alike in habits. Whether likeness of labels means likeness of laws is
what the method bets on; here it is an assumption, with the knob `alike`: the share of the variance of the zones' laws
that goes along with their habits. The rest of the law has types of its own, drawn apart from the habits': at 0 the
labels say nothing of the law, at 1 zones with the same habits have the same law.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

TYPES = 4
OF_TYPE = 0.7
"""The share of the variance between zones that is between types."""

LOWEST, HIGHEST = 60.0, 200.0
"""Heart rates, in beats a minute, are cut off here."""


@dataclass(frozen=True, eq=False)
class ZoneTraits:
    """What a zone's runners have in common, in standard deviations from what is usual, and the altitude in metres."""

    hardness: float
    unevenness: float
    duration: float
    hills: float
    efficiency: float
    climbing: float
    fatigue: float
    altitude: float


def zone_traits(random: np.random.Generator, zones: int, *, difference: float, alike: float) -> tuple[ZoneTraits, ...]:
    """The traits of all zones; they differ `difference` times as much as is usual."""
    habits, others = _typed(random, zones, 4), _typed(random, zones, 3)
    # Where many run hard they run fast, where they run long they tire late, and hills teach to climb.
    along = habits[:, [0, 3, 2]] * [1, -1, -1]
    laws = np.sqrt(alike) * along + np.sqrt(1 - alike) * others
    altitudes = 150 * np.exp(difference * (0.5 * habits[:, 3] + 0.4 * random.normal(size=zones)))
    traits = np.column_stack([difference * habits, difference * laws, altitudes])
    return tuple(ZoneTraits(*row) for row in traits.tolist())


def _typed(random: np.random.Generator, zones: int, traits: int) -> Floats:
    """Traits of variance 1, `[zones, traits]`: part of the zone's type, part its own. Types are spread evenly."""
    centres = (np.arange(TYPES) - (TYPES - 1) / 2) / np.sqrt((TYPES**2 - 1) / 12)
    types = random.permutation(zones) % TYPES
    of_type = np.column_stack([random.permutation(centres)[types] for _ in range(traits)])
    own: Floats = random.normal(size=(zones, traits))
    mixed: Floats = np.sqrt(OF_TYPE) * of_type + np.sqrt(1 - OF_TYPE) * own
    return mixed


def workouts(random: np.random.Generator, zone: ZoneTraits, count: int, length: int) -> tuple[Floats, Floats, Floats]:
    """One runner's workouts in order of time: `x[N,T,3]`, `context[N,T,5]` and the heart rates `y[N,T]`.

    `x` is distance in km, altitude in metres, minutes elapsed. The context is those of the workout before, the hours
    since its start, and its heart rates; the first workout has none, and zeros there.
    """
    resting, highest = random.normal(60, 6), random.normal(188, 8)
    lag, pause = 0.8 * np.exp(random.normal(0, 0.25)), 60 * np.exp(random.normal(0, 0.5))
    own_hardness, own_duration, own_efficiency, own_climbing = random.normal(0, [0.05, 0.25, 0.12, 0.15])

    # The day: how hard, how long, in what form. Form lasts, so the workout before says something of this one.
    day = random.normal(size=(count, 6))
    form = np.empty(count)
    last = random.normal()
    for n in range(count):
        form[n] = last = 0.8 * last + 0.6 * day[n, 0]
    hardness = 0.65 + 0.06 * zone.hardness + own_hardness + 0.055 * day[:, 1]
    unevenness = 0.05 * np.exp(0.5 * zone.unevenness + 0.3 * day[:, 2])
    minutes = np.clip(45 * np.exp(0.25 * zone.duration + own_duration + 0.3 * day[:, 3]), 10, 240)
    hills = 0.018 * np.exp(0.5 * zone.hills + 0.3 * day[:, 4])
    elapsed = minutes[:, None] * np.linspace(0, 1, length)
    step = minutes / (length - 1)

    grade = hills[:, None] * _waves(random, count, length, 2, 8)
    warming = 1 - 0.25 * np.exp(-elapsed / 5)
    effort = hardness[:, None] * warming + unevenness[:, None] * _waves(random, count, length, 1, 6) + 1.2 * grade
    effort = np.clip(effort, 0.2, 0.97)

    full_speed = 16 * np.exp(0.15 * zone.efficiency + own_efficiency + 0.05 * form)
    climb = np.maximum(1 + 5 * np.exp(0.4 * zone.climbing + own_climbing) * grade, 0.6)
    speed = effort * full_speed[:, None] / (climb * (1 + 0.0025 * np.exp(0.6 * zone.fatigue) * elapsed))
    way = speed * step[:, None] / 60
    way[:, 0] = 0
    altitude = zone.altitude + np.cumsum(1000 * way * grade, axis=1) + random.normal(size=(count, length))
    altitude -= np.minimum(altitude.min(axis=1), 0)[:, None]  # runs lead along the sea, not into it

    aim = resting + (highest - resting) * effort
    keep = np.exp(-step / lag)
    rate = np.empty((count, length))
    rate[:, 0] = resting + 0.25 * (highest - resting)
    for k in range(1, length):
        rate[:, k] = aim[:, k] + keep * (rate[:, k - 1] - aim[:, k])
    rate += 4 * day[:, 5:] + 2 * _waves(random, count, length, 0.5, 3) + 2 * random.normal(size=(count, length))

    x = np.stack([np.cumsum(way, axis=1), altitude, elapsed], axis=2)
    y = np.clip(rate, LOWEST, HIGHEST)
    since = 8 + minutes / 60 + random.gamma(1.5, pause / 1.5, size=count)
    context = np.zeros((count, length, 5))
    context[1:, :, :3], context[1:, :, 3], context[1:, :, 4] = x[:-1], since[:-1, None], y[:-1]
    return x, context, y


def _waves(random: np.random.Generator, count: int, length: int, low: float, high: float) -> Floats:
    """Smooth curves of variance about 1, `[count, length]`: three waves with `low` to `high` turns a workout."""
    turns = random.uniform(low, high, size=(count, 3, 1))
    phase = random.uniform(0, 2 * np.pi, size=(count, 3, 1))
    curves: Floats = np.sin(2 * np.pi * turns * np.linspace(0, 1, length) + phase).sum(axis=1) * np.sqrt(2 / 3)
    return curves
