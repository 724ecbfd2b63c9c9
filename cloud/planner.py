"""From zones' histograms to what each zone is told: the dendrogram, and each zone's draws by it (methods 3 to 5, 8)."""

from collections.abc import Callable, Mapping

import numpy as np

from cloud.state import Fit, State
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.draws import ProbabilisticDendrogram, draws_for
from sgfusion.hrg import fit_dendrogram
from sgfusion.plan import Draws, Peer, ZonePlan
from sgfusion.runfile import RunFile
from sgfusion.zone_tree import fit_zone_tree

Tree = tuple[str, Mapping[str, Draws]]
"""The text of `dendrogram.json`, and each of its zones' draws."""
MakeTree = Callable[[Fit, RunFile, Mapping[str, int]], Tree]


def warm_up() -> None:
    """Have the fit's machine code at hand before anybody calls: loading it holds up every thread."""
    fit_dendrogram(1.0 - np.eye(4), seed=0, restarts=1, max_moves=10)


def make_tree(fit: Fit, run: RunFile, numbers: Mapping[str, int]) -> Tree:
    """The dendrogram of a fit; takes as long as it takes, and belongs in a thread. `numbers` are of all zones.

    Draws are made with it: a run whose draws cannot be made has no plan, and says why.
    """
    tree = fit_zone_tree(fit.histograms, fit.zones, run)
    return tree.to_json(), _draws(tree, run, numbers)


def draws_of(text: str, run: RunFile, numbers: Mapping[str, int]) -> Mapping[str, Draws]:
    """The draws of a stored dendrogram: those of when it was made, as the text keeps every bit."""
    return _draws(ZoneTree.from_json(text), run, numbers)


def directory_of(state: State) -> tuple[Peer, ...]:
    """Every zone, where it is, and whether it is there."""
    return tuple(Peer(zone.number, zone.name, zone.address, zone.state) for zone in state.zones.values())


def zone_plan(state: State, zone: str, draws: Mapping[str, Draws], directory: tuple[Peer, ...]) -> ZonePlan:
    """The zone's plan. Before the first one that it is in, version 0: it draws nobody, and the directory is there.

    Devices that roam learn of other zones' edges by it, and without them no zone's histogram may ever be whole.
    """
    number, plan = state.zones[zone].number, state.plan
    if plan is None or zone not in draws:
        return ZonePlan(0, number, "", Draws("fixed"), directory)
    return ZonePlan(plan.version, number, plan.reason, draws[zone], directory)


def _draws(tree: ZoneTree, run: RunFile, numbers: Mapping[str, int]) -> Mapping[str, Draws]:
    leaves = tuple(numbers[zone] for zone in tree.zones)
    chances = ProbabilisticDendrogram(tree.dendrogram, tree.distances, leaves, run.hrg.sharpness)
    near = _neighbours(run, numbers)
    return {
        zone: draws_for(
            numbers[zone],
            sampler=run.sampler,
            tree=chances,
            neighbours=None if near is None else near.get(zone, ()),
        )
        for zone in tree.zones
    }


def _neighbours(run: RunFile, numbers: Mapping[str, int]) -> Mapping[str, tuple[int, ...]] | None:
    """The run file's geography, by number; a name that nobody has is nobody's neighbour."""
    adjacent = run.zones.adjacent
    if adjacent is None:
        return None
    return {zone: tuple(numbers[other] for other in near if other in numbers) for zone, near in adjacent.items()}
