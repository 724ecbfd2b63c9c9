"""DELTA-Z: DELTA's diverse sampling over zones, with the zone's own model as the central one (method 9).

L. Wang, Y. Guo, T. Lin, X. Tang. DELTA: Diverse Client Sampling for Fasting Federated Learning. NeurIPS 2023; over
zones as SGFusion's paper compares it. A zone draws as many others as it has neighbours, and steps along its own
direction plus the reweighted mean of theirs, in the place where SGFusion has its attention.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from simulator.directions import InProcess
from simulator.methods import delta
from simulator.methods.method import Plan, ZoneMethod
from simulator.world import World

Vector = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


class DeltaZ:
    """A zone's sampler, source and weights in one: each round's draw follows from the gradients of earlier ones."""

    def __init__(self, world: World, zone: int, source: InProcess) -> None:
        self._world = world
        self._zone = zone
        self._source = source
        self._others = [other for other in range(len(world.zones)) if other != zone]
        self._count = len(world.neighbours()[zone])
        self._gradients = np.zeros((len(self._others), world.learner.size), np.float32)
        self._variances = np.zeros(len(self._others))
        self._weights: Floats = np.zeros(len(self._others))

    def draw(self, zone: int, round: int) -> tuple[int, ...]:
        """All others in the first round, for nothing is known of them; then as many draws as there are neighbours."""
        if not self._count or not self._others:
            return ()
        if round == 1:
            self._weights = np.full(len(self._others), 1 / len(self._others))
            return tuple(self._others)
        chances = delta.probabilities(self._gradients, self._variances, self._world.run.baselines)
        times = delta.draw(chances, self._count, self._world.run.seed, "delta-z draw", zone, round)
        self._weights = delta.reweighted(chances, times)
        return tuple(self._others[i] for i in np.flatnonzero(times))

    def local(self, theta: Vector) -> Vector:
        """The zone's own direction."""
        return self._source.local(theta)

    def peers(self, zones: Sequence[int], theta: Vector) -> list[Vector]:
        """The drawn zones' directions, remembered for later draws together with their variances over devices."""
        return [self._peer(zone, theta) for zone in zones]

    def _peer(self, zone: int, theta: Vector) -> Vector:
        place = self._others.index(zone)
        direction, variance = self._source.peer_halves(zone, theta)
        self._gradients[place], self._variances[place] = direction, variance
        return direction

    def weigh(self, zones: tuple[int, ...], _local: Vector, _shared: npt.NDArray[np.float32]) -> Floats:
        """`times / (n p N)` of each drawn zone."""
        return self._weights[[self._others.index(zone) for zone in zones]]


def plan(world: World, zone: int, source: InProcess) -> Plan:
    """One object plays all three parts."""
    method = DeltaZ(world, zone, source)
    return Plan(method, method, method.weigh)


METHOD = ZoneMethod("delta-z", "DELTA-Z", None, plan)
