"""Method 6: gradients on requested weights, and what follows from them."""

import hashlib
import inspect
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from sgfusion import checkpoint
from sgfusion.errors import PeerUnavailableError
from sgfusion.fusion import fuse
from sgfusion.optimiser import Kind, Optimiser, Schedule
from sgfusion.sampling import HrgSampler
from sgfusion.zone_trainer import GradientSource, ZoneState, ZoneTrainer, run_round

Vector = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
ZONES, ROUNDS, WEIGHTS = 4, 8, 3
SAMPLER = HrgSampler(np.where(np.eye(ZONES), 0, 0.6), 17)


class Zone:
    """Three devices with a ridge regression each: `ℓ(θ, D_u)` is a mean over samples plus `‖θ‖² / 20`."""

    def __init__(self, number: int) -> None:
        rng = np.random.Generator(np.random.Philox(key=100 + number))
        self.devices = [(rng.normal(size=(5, WEIGHTS)), rng.normal(size=5) + number) for _ in range(3)]

    def loss(self, theta: Floats) -> float:
        """`F_z(θ)`: every device counts the same."""
        errors = [(((x * theta).sum(axis=1) - y) ** 2).mean() / 2 for x, y in self.devices]
        return float(np.mean(errors) + (theta**2).sum() / 20)

    def gradient(self, theta: Vector) -> Vector:
        wide = theta.astype(np.float64)
        slopes = [(x * ((x * wide).sum(axis=1) - y)[:, None]).mean(axis=0) + wide / 10 for x, y in self.devices]
        return np.array(sum(slopes) / len(slopes), np.float32)

    def delta(self, theta: Vector) -> Vector:
        """Three local epochs of gradient descent on every device's own weights, and the mean way they went."""
        after = theta
        for _ in range(3):
            after = after - np.float32(0.05) * self.gradient(after)
        return theta - after


class Source:
    """The gradients that zone `number` is given in one process; `asked` remembers who was asked on which weights."""

    def __init__(self, number: int, update: str = "gradient") -> None:
        self.number, self.update = number, update
        self.asked: list[tuple[int, bytes]] = []

    def local(self, theta: Vector) -> Vector:
        return self.peer(self.number, theta)

    def peer(self, zone: int, theta: Vector) -> Vector:
        self.asked.append((zone, theta.tobytes()))
        if (zone + self.number + len(self.asked)) % 11 == 0 and zone != self.number:
            raise PeerUnavailableError(f"zone {zone} is late")
        direction: Vector = getattr(Zone(zone), self.update)(theta)
        return direction


class World:
    """All zones of a run. A trajectory is a zone's state after each of its rounds, to the bit."""

    def __init__(self, kind: Kind = "momentum", update: str = "gradient") -> None:
        self.optimiser = Optimiser(kind, Schedule("cosine", 0.1, steps=ROUNDS))
        start = [ZoneState.initial(zone, np.ones(WEIGHTS), self.optimiser) for zone in range(ZONES)]
        self.trainers = [ZoneTrainer(state, SAMPLER, self.optimiser) for state in start]
        self.sources = [Source(zone, update) for zone in range(ZONES)]
        self.trajectories: list[list[str]] = [[] for _ in range(ZONES)]

    def round(self, zone: int) -> None:
        run_round(self.trainers[zone], self.sources[zone])
        digest = hashlib.sha256(checkpoint.to_bytes(self.trainers[zone].state)).hexdigest()
        self.trajectories[zone].append(digest)


def in_step(world: World) -> None:
    for _ in range(ROUNDS):
        for zone in range(ZONES):
            world.round(zone)


def one_after_another(world: World) -> None:
    for zone in reversed(range(ZONES)):
        for _ in range(ROUNDS):
            world.round(zone)


def out_of_step(world: World) -> None:
    turns = [zone for zone in range(ZONES) for _ in range(ROUNDS)]
    random.Random(8).shuffle(turns)  # noqa: S311 - an order, not a secret
    for zone in turns:
        world.round(zone)


def all_at_once(world: World) -> None:
    def train(zone: int) -> None:
        for _ in range(ROUNDS):
            world.round(zone)

    threads = [threading.Thread(target=train, args=(zone,)) for zone in range(ZONES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("order", [one_after_another, out_of_step, all_at_once])
@pytest.mark.parametrize(("kind", "update"), [("sgd", "gradient"), ("momentum", "delta"), ("adam", "gradient")])
def test_a_trajectory_does_not_depend_on_when_the_others_train(
    kind: Kind, update: str, order: Callable[[World], None]
) -> None:
    """So zones train independently, with no barrier, and a zone's whole trajectory is the same whether zones run in
    step, out of step or one after another
    """
    together, apart = World(kind, update), World(kind, update)
    in_step(together)
    order(apart)
    assert apart.trajectories == together.trajectories
    assert len({state for trajectory in apart.trajectories for state in trajectory}) == ZONES * ROUNDS


def test_a_zone_trains_alike_alone_in_another_process() -> None:
    """in one process or in a hundred containers."""
    program = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('here', sys.argv[1])\n"
        "here = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(here)\n"
        "world = here.World()\n"
        "for _ in range(here.ROUNDS): world.round(2)\n"
        "print(*world.trajectories[2])\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, __file__]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    here = World()
    in_step(here)
    assert there.stdout.split() == here.trajectories[2]


def test_every_drawn_zone_is_asked_on_the_weights_of_the_zone_that_drew_it() -> None:
    """Zone `z` sends `θ_z` to each drawn zone `z'`; `z'`'s devices compute `∇ℓ(θ_z, D_u)`; edge `z'` returns their
    mean `∇_{θ_z} F_{z'}`.
    """
    world = World()
    in_step(world)
    for _ in range(3):
        weights = world.trainers[1].state.theta.tobytes()
        before = len(world.sources[1].asked)
        world.round(1)
        drawn = SAMPLER.draw(1, world.trainers[1].state.round)
        assert world.sources[1].asked[before:] == [(zone, weights) for zone in (1, *drawn)]
    theta = np.array([0.3, -0.7, 1.1], np.float32)
    for number in range(ZONES):
        zone, small = Zone(number), 1e-5
        slope = [(zone.loss(theta + small * e) - zone.loss(theta - small * e)) / (2 * small) for e in np.eye(WEIGHTS)]
        np.testing.assert_allclose(zone.gradient(theta), slope, rtol=1e-5)


def test_an_answer_depends_on_the_weights_and_the_data_alone() -> None:
    """the answer depends only on `θ_z` and on `z'`'s data, never on `z'`'s own model or round."""
    assert [*inspect.signature(GradientSource.peer).parameters] == ["self", "zone", "theta"]
    world = World()
    theta = np.array([0.5, 0.25, -1], np.float32)
    fresh = Source(0).peer(3, theta).tobytes()
    in_step(world)
    assert world.trainers[3].state.round == ROUNDS
    assert Source(0).peer(3, theta).tobytes() == fresh


def test_a_round_of_deltas_moves_by_the_ways_that_devices_went() -> None:
    """Two kinds of update, one interface (a device always returns a direction the size of `θ`): [...] `delta` (k local
    epochs of an optimiser from `θ_z`; the direction is `θ_before - θ_after`).
    """
    whole = Optimiser("sgd", Schedule("constant", 1.0))
    trainer = ZoneTrainer(ZoneState.initial(0, np.ones(WEIGHTS), whole), SAMPLER, whole)
    source = Source(0, "delta")
    start = trainer.state.theta
    run_round(trainer, source)
    ways = [Zone(zone).delta(start) for zone in (0, *SAMPLER.draw(0, 1))]
    assert len(ways) > 1
    expected = start - fuse(ways[0], np.array(ways[1:]))
    assert trainer.state.theta.tobytes() == expected.astype(np.float32).tobytes()
