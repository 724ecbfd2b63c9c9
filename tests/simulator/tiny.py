"""A tiny world whose gradients are known in closed form, and the same numbers by hand: numpy in float64, no torch.

Unlike `generated_zones`, its zones have different numbers of devices and its devices different numbers of samples, so
that it shows who is counted for how much. The task is `linear`, `ℓ = 1/2 (x·w - y)² + l2/2 ‖w‖²` of a sample.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from pydantic import Field

from device.samples import DeviceData, Samples
from sgfusion.runfile import RunFile, Section, Zones, parse_run_file
from sgfusion.streams import raw_stream, uniforms

Floats = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]

L2 = 0.1
RATE = 0.2
NAMES = ("ash", "birch", "cedar", "elm", "fir")
SIZES = ((8, 3), (5, 1, 2), (6,), (4, 4), (2, 7, 3))
"""Training samples of each device: one zone has a single device, one device a single sample."""
UPDATES: Mapping[str, tuple[str, ...]] = {
    "gradient": (),
    "delta": ("update={kind='delta', epochs=1, rate=0.5}", "optimiser.rate=0.4"),
    "epochs": ("update={kind='delta', epochs=2, rate=0.1, batch=2}", "optimiser.rate=0.7"),
}
"""One gradient; the same as a local step of 0.5 times it; two local epochs over batches of two samples."""


class Options(Section):
    """The keys of `[data]`."""

    sizes: list[list[int]]
    validation: int = 0
    test: int = 2
    features: int = 3
    spread: float = 0.6
    """How far the zones' laws lie apart, each in a direction of its own."""
    offsets: list[float] = Field(default_factory=list)
    """How far they lie from the law that all share, in one direction."""
    noise: float = 0.3
    alike: bool = False
    """All devices of all zones have the same samples, but for their laws."""
    untested: tuple[str, ...] = Field((), strict=False)
    """Zones that have no test samples."""
    borders: list[list[str]] | None = None
    """Zones next to each other; as a path if nothing is said, none if empty."""
    placed: bool = False
    """Whether there are places even where nobody is next to anybody."""


class Tiny:
    """The source: `data.source = "tests.simulator.tiny:Tiny"`."""

    options = Options
    scaled = True
    notes: tuple[str, ...] = ()

    def __init__(self, options: Options, zones: Zones, seed: int) -> None:
        self._options, self._zones, self._seed = options, zones.names, seed

    def zones(self) -> tuple[str, ...]:
        return self._zones

    def devices(self, zone: str) -> tuple[str, ...]:
        return tuple(f"u{number}" for number in range(len(self._options.sizes[self._zones.index(zone)])))

    def data(self, zone: str, device: str) -> DeviceData:
        options, z, u = self._options, self._zones.index(zone), int(device[1:])
        law = self._random("law").normal(size=options.features)
        law += options.spread * self._random("zone", z).normal(size=options.features)
        law += options.offsets[z] if options.offsets else 0.0
        random = self._random("device", *((0, 0) if options.alike else (z, u)))
        test = 0 if zone in options.untested else options.test
        sizes = (options.sizes[z][u], options.validation, test)
        numbers = random.normal(size=(sum(sizes), options.features + 1))  # a row a sample: more come after those before
        x = numbers[:, :-1] + (0 if options.alike else 0.3 * z)
        y = x @ law + options.noise * numbers[:, -1]
        samples = Samples(x.astype(np.float32), y.astype(np.float32))
        ends = list(itertools.accumulate(sizes, initial=0))
        parts = [samples.part(first, last) for first, last in itertools.pairwise(ends)]
        return DeviceData(zone, device, *parts)

    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        borders = self._options.borders
        pairs = list(itertools.pairwise(self._zones)) if borders is None else [(one, two) for one, two in borders]
        if not pairs and not self._options.placed:
            return {}
        both = [*pairs, *((two, one) for one, two in pairs)]
        return {zone: tuple(sorted(two for one, two in both if one == zone)) for zone in self._zones}

    def _random(self, purpose: str, *place: int) -> np.random.Generator:
        return np.random.Generator(raw_stream(self._seed, f"tiny {purpose}", *place))


def tiny(*overrides: str, sizes: Sequence[Sequence[int]] = SIZES, rounds: int = 2, seed: int = 5) -> RunFile:
    """A run of the tiny world. Without validation samples the models kept are the last: those after `rounds`."""
    text = f"""
    name = "tiny"
    seed = {seed}
    rounds = {rounds}
    [task]
    name = "linear"
    l2 = {L2}
    low = -5.0
    high = 5.0
    bins = 6
    [data]
    source = "tests.simulator.tiny:Tiny"
    sizes = {[list(zone) for zone in sizes]}
    [zones]
    names = {list(NAMES[: len(sizes)])}
    [histogram]
    epsilon = 4.0
    [hrg]
    sharpness = 2.0
    [optimiser]
    rate = {RATE}
    [evaluation]
    every = 1
    """
    return parse_run_file(text, overrides)


class ByHand:
    """The zones of a tiny run as numpy arrays, and what their devices return for given weights."""

    def __init__(self, run: RunFile) -> None:
        self.run = run
        source = Tiny(run.data.options_as("data", Options), run.zones, run.seed)
        self.data = [[source.data(zone, device) for device in source.devices(zone)] for zone in source.zones()]
        self.train = [[_wide(device.train) for device in zone] for zone in self.data]
        self.devices = [device for zone in self.train for device in zone]
        """Of all zones, in a row."""
        self.numbers = range(len(self.train))
        self.near = [[run.zones.names.index(other) for other in source.neighbours()[zone]] for zone in source.zones()]
        self.rate = run.optimiser.rate or math.nan
        self.start = np.zeros(self.train[0][0][0].shape[1])
        """`θ⁰`."""

    def device(self, theta: Floats, xy: tuple[Floats, Floats]) -> Floats:
        """What a device with these samples returns for `θ`."""
        update = self.run.update
        if update.kind == "gradient":
            return gradient(theta, *xy)
        x, y = xy
        after, size = theta.copy(), update.batch or len(y)
        assert update.epochs is not None
        assert update.rate is not None
        for _ in range(update.epochs):
            for i in range(0, len(y), size):
                after = after - update.rate * gradient(after, x[i : i + size], y[i : i + size])
        return theta - after

    def zone(self, theta: Floats, z: int) -> Floats:
        """`∇F_z(θ)`: every device counts the same."""
        return np.asarray(np.mean([self.device(theta, xy) for xy in self.train[z]], axis=0))

    def fused(self, theta: Floats, z: int, drawn: Sequence[int]) -> Floats:
        """`g_z + Σ λ g_z'` as method 7 writes it."""
        local = self.zone(theta, z)
        if not len(drawn):
            return local
        shared = [self.zone(theta, other) for other in drawn]
        alike = [self._alike(local, row) for row in shared]
        e = [1 / (1 + math.exp(-a)) for a in alike]
        total = sum(math.exp(a) for a in e)
        return local + sum((math.exp(a) / total * row for a, row in zip(e, shared, strict=True)), np.zeros(len(local)))

    def trajectory(self, z: int, draw: Callable[[int], Sequence[int]] | Sequence[int]) -> list[Floats]:
        """`θ_z` before round 1 and after each round, when it draws the same zones in all or `draw(round)` of them."""
        thetas = [self.start]
        for number in range(1, self.run.rounds + 1):
            thetas.append(thetas[-1] - self.rate * self.fused(thetas[-1], z, draw(number) if callable(draw) else draw))
        return thetas

    def loss(self, theta: Floats, z: int) -> float:
        """`F_z(θ)`."""
        return float(np.mean([loss(theta, *xy) for xy in self.train[z]]))

    def hessian(self, z: int) -> Floats:
        """That of `F_z`: it has the same one everywhere."""
        return np.asarray(np.mean([x.T @ x / len(y) for x, y in self.train[z]], axis=0) + L2 * np.eye(len(self.start)))

    def best(self, z: int) -> Floats:
        """`argmin F_z`."""
        right = np.mean([x.T @ y / len(y) for x, y in self.train[z]], axis=0)
        return np.linalg.solve(self.hessian(z), right).astype(np.float64)

    def _alike(self, one: Floats, other: Floats) -> float:
        inner = float(one @ other)
        return inner / float(np.linalg.norm(one) * np.linalg.norm(other)) if self._cosine else inner

    @property
    def _cosine(self) -> bool:
        return self.run.fusion.similarity == "cosine"


def gradient(theta: Floats, x: Floats, y: Floats) -> Floats:
    """Of the mean loss of the samples."""
    return np.asarray(x.T @ (x @ theta - y) / len(y) + L2 * theta)


def loss(theta: Floats, x: Floats, y: Floats) -> float:
    """The mean loss of the samples."""
    return float(((x @ theta - y) ** 2).mean() / 2 + L2 / 2 * theta @ theta)


def luck(seed: int, purpose: str, *place: int, count: int) -> list[float]:
    """The uniforms that a draw has for its own."""
    numbers: list[float] = uniforms(raw_stream(seed, purpose, *place), count).tolist()
    return numbers


def pick(chances: Sequence[float] | Floats, number: float) -> int:
    """The outcome in whose part of [0, Σ chances) the number in [0, 1) falls."""
    height, aim = 0.0, number * float(sum(chances))
    for i, chance in enumerate(chances):
        height += chance
        if aim < height:
            return i
    raise AssertionError("beyond the last")


def near(found: npt.ArrayLike, expected: npt.ArrayLike, tolerance: float = 2e-6) -> bool:
    """Equal but for float32."""
    return np.allclose(np.asarray(found, np.float64), expected, rtol=tolerance, atol=tolerance)


def _wide(samples: Samples) -> tuple[Floats, Floats]:
    return samples.x.astype(np.float64), samples.y.astype(np.float64)
