"""A run in the words of the page (docs/protocol.md): parts of the JSON that the browser draws. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from cloud.page.history import LeftOut, number, value_of
from cloud.state import Zone
from cloud.status import state_for_people
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.draws import ProbabilisticDendrogram
from sgfusion.evaluation import Metric
from sgfusion.reports import Event, ZoneEvaluation, standing
from sgfusion.runfile import RunFile
from sgfusion.waiting import held_up, said_elsewhere

Document = dict[str, Any]
TITLES = {
    "hrg": "SGFusion",
    "chi": "χ-SGFusion",
    "top-k": "top-k-SGFusion",
    "neighbours": "D-ZGD",
    "none": "SGeoFL",
    "random": "Random",
    "all": "All",
}
"""The methods of the simulator by the sampler that each means: a cloud knows no other."""
MADE_UP = frozenset({"generated_zones", "synthetic_heart_rate"})
"""Data sources of ours that are measured on nobody."""


def run_part(
    run: RunFile,
    *,
    live: bool,
    title: str | None = None,
    synthetic: bool | None = None,
    started: float | None = None,
    comparing: bool = False,
    simulated: bool = False,
) -> Document:
    """What run it is. Whether the data is made up a cloud knows of our own sources alone."""
    known = True if run.data.source in MADE_UP else None
    return {
        "name": run.name,
        "seed": run.seed,
        "rounds": run.rounds,
        "task": run.task.name,
        "sampler": run.sampler.kind,
        "sharpness": run.hrg.sharpness,
        "epsilon": run.histogram.epsilon,
        "budget": run.histogram.budget,
        "every": run.evaluation.every,
        "live": live,
        "title": title or TITLES[run.sampler.kind],
        "synthetic": known if synthetic is None else synthetic,
        "version": version("sgfusion"),
        "started": started,
        "comparing": comparing,  # zones train alone at this moment
        "simulated": simulated,  # nobody's clock, and so no events; False also where nobody has said
    }


def metric_part(metric: Metric | None) -> Document | None:
    """How models are judged."""
    if metric is None:
        return None
    told = {"name": metric.name, "unit": metric.unit, "lower_is_better": metric.lower_is_better}
    return {**told, "root": metric.root}  # whether the unit is that of the labels


def zone_part(
    zone: int,
    name: str,
    run: RunFile,
    at: Sequence[float],
    *,
    histogram: Sequence[float] | None = None,
    devices: int = 0,
    epsilon: float = 0.0,
    before: float | None = None,
    alone: float | None = None,
) -> Document:
    """What of a zone changes with plans at most."""
    places = run.zones.places or {}
    rings = places.get(name)
    return {
        "number": zone,
        "name": name,
        "place": None if rings is None else [[list(pair) for pair in ring] for ring in rings],
        "at": [number(float(value)) for value in at],
        "histogram": [number(mass) for mass in histogram] if histogram else None,
        "devices": devices,
        "epsilon": number(epsilon),
        "before": number(before),
        "alone": number(alone),
    }


def tree_part(tree: ZoneTree, *, version: int, reason: str, sharpness: float) -> Document:
    """The dendrogram, and each zone's probabilistic one: its leaf's parent first, the root last.

    `apart` are the distances that it was made of, each leaf's to those before it.
    """
    leaves = tuple(range(len(tree.zones)))
    chances = ProbabilisticDendrogram(tree.dendrogram, tree.distances, leaves, sharpness)
    distances = chances.node_distances
    return {
        "version": version,
        "reason": reason,
        "loss": number(float(distances.sum())),
        "zones": list(tree.zones),
        "merges": tree.dendrogram.merges.tolist(),
        "distances": [number(apart) for apart in distances.tolist()],
        "apart": [[number(apart) for apart in row[:leaf]] for leaf, row in enumerate(tree.distances.tolist())],
        "branches": {
            name: [
                {
                    "distance": number(branch.distance),
                    "probability": number(branch.probability),
                    "zones": [tree.zones[other] for other in branch.zones],
                }
                for branch in chances.branches(leaf)
            ]
            for leaf, name in enumerate(tree.zones)
        },
    }


def plan_part(version: int, reason: str, zones: int, time: float | None) -> Document:
    """One version of the plan."""
    return {"version": version, "reason": reason, "zones": zones, "time": time}


def events_part(events: Iterable[Event]) -> list[Document]:
    """What happened, oldest first."""
    return [{"time": event.time, "text": event.text} for event in events]


def status_of_zone(zone: Zone, metric: Metric | None, sent: int, left_out: Mapping[int, LeftOut]) -> Document:
    """How a zone stands, and which peers it has ever `left_out`. A device that is late still attends; one that does not
    is gone.
    """
    attendance = zone.attendance
    here, missed = set(attendance.attending), attendance.missed(overdue=bool(zone.overdue))
    return {
        "number": zone.number,
        "name": zone.name,
        "state": standing(state_for_people(zone), unanswering=zone.unanswering),
        "round": zone.round,
        "attending": len(here),
        "expected": attendance.expected,
        "late": {device: why for device, why in missed.items() if device in here},
        "gone": {device: why for device, why in missed.items() if device not in here},
        "attention": attention_part(zone.attention),
        "left_out": dict(zone.left_out),
        "left_out_so_far": left_out_part(left_out),
        "best": best_part(zone.best, metric),
        "overdue": zone.overdue,
        "refusals": dict(zone.refusals),
        "leased": zone.leased,
        "diverged": zone.diverged,
        "bytes": sent,
    }


def waits_part(zones: Iterable[Zone], now: float) -> list[Document]:
    """Who holds up others' rounds, or whose devices hold up its own, unusually long; in words, the worst first."""
    all_zones = list(zones)
    waiting = {zone.name: wait for zone in all_zones if (wait := zone.waiting_at(now)) is not None}
    if not waiting:
        return []
    known = {zone.name for zone in all_zones if said_elsewhere(overdue=zone.overdue, left=zone.left)}
    names = {zone.number: zone.name for zone in all_zones}
    return [{"zone": who, "text": text} for who, text in held_up(waiting, names, known)]


def best_part(best: ZoneEvaluation | None, metric: Metric | None) -> Document | None:
    """The evaluation of the model that is kept."""
    if best is None:
        return None
    values = {"validation": value_of(metric, [best.validation]), "test": value_of(metric, [best.test])}
    return {"round": best.round, **values}


def attention_part(weights: Mapping[int, float]) -> dict[int, float | None]:
    """`λ` of each zone that answered, by number."""
    return {zone: number(weight) for zone, weight in weights.items()}


def left_out_part(peers: Mapping[int, LeftOut]) -> dict[int, Document]:
    """In how many rounds each was left out, by number; the last of them, and why."""
    return {peer: vars(out) for peer, out in peers.items()}


class Likeness:
    """How far zones are from those they drew, by the distances that a tree was made of."""

    def __init__(self, tree: ZoneTree | None) -> None:
        self._leaf = {} if tree is None else {name: leaf for leaf, name in enumerate(tree.zones)}
        self._distances: list[list[float]] = [] if tree is None else tree.distances.tolist()

    def homophily(self, zone: str, drawn: Iterable[str]) -> float | None:
        """The mean distance to the zones drawn (method 9); who is no leaf of the tree has no distance in it."""
        if zone not in self._leaf:
            return None
        own = self._distances[self._leaf[zone]]
        apart = [own[self._leaf[other]] for other in drawn if other in self._leaf]
        return sum(apart) / len(apart) if apart else None


def alone_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """What each zone comes to alone, from a summary.json: of a run that says it, or of one without sharing."""
    key = "test" if summary.get("method") == "sgeofl" else "alone"
    zones = summary.get("zones", {})
    return {name: found[key] for name, found in zones.items() if found.get(key) is not None}
