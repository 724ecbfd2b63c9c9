"""A suite's results folder with invented numbers, in the format that the suite runner writes."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from sgfusion.dendrogram import Dendrogram
from sgfusion.distance import zone_distances
from simulator.outcome import Outcome, Point, Score

Floats = npt.NDArray[np.float64]

RMSE = {"name": "RMSE", "unit": "bpm", "root": True, "lower_is_better": True}
ACCURACY = {"name": "accuracy", "unit": "", "root": False, "lower_is_better": False}
WHOLE = ("fedavg", "ifca", "fedsem", "feddelta")
NO_DRAW = (*WHOLE, "sgeofl")
LEVEL = {
    "sgfusion": 20.0, "chi-sgfusion": 20.1, "top-k-sgfusion": 20.4, "d-zgd": 20.6, "sgeofl": 21.5, "delta-z": 20.7,
    "fedavg": 22.4, "ifca": 21.9, "fedsem": 22.0, "feddelta": 22.3, "random": 19.9, "shuffled": 20.2, "all": 20.3,
}  # fmt: skip
TITLES = {
    "sgfusion": "SGFusion", "chi-sgfusion": "χ-SGFusion", "top-k-sgfusion": "top-k-SGFusion", "d-zgd": "D-ZGD",
    "sgeofl": "SGeoFL", "delta-z": "DELTA-Z", "fedavg": "FedAvg", "ifca": "IFCA", "fedsem": "FedSEM",
    "feddelta": "FedDELTA", "random": "Random", "shuffled": "Shuffled", "all": "All",
}  # fmt: skip
NORWAY = (
    "Akershus", "Aust-Agder", "Buskerud", "Finnmark", "Hedmark", "Hordaland", "Nordland", "Oppland", "Oslo", "Rogaland",
    "Telemark", "Troms", "Vestfold",
)  # fmt: skip


def entry(method: str, name: str | None = None, **settings: object) -> dict[str, Any]:
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    title = TITLES[method] + "".join(f" {key.split('.')[-1]}={value}" for key, value in dotted.items())
    return {"name": name or method, "method": method, "set": dotted, "title": title}


EVERY_METHOD = [entry(m, sampler__k=3) if m == "top-k-sgfusion" else entry(m) for m in LEVEL]
TOP_K = [entry("top-k-sgfusion", f"top-{k}", sampler__k=k) for k in range(1, 8)]
EPSILONS = [entry("sgfusion", f"eps-{e}", histogram__epsilon=e) for e in (0.1, 1.0, 10.0, "off")]


def write_suite(
    folder: Path,
    *,
    data: Mapping[str, Sequence[str]],
    entries: Sequence[Mapping[str, Any]],
    seeds: Sequence[int] = (1, 2, 3),
    rounds: Sequence[int] = tuple(range(0, 201, 10)),
    metric: Mapping[str, Any] = RMSE,
    reference: str = "sgfusion",
    without_labels: Sequence[str] = (),
    diverged: Sequence[tuple[str, str]] = (),
) -> Path:
    """Everything of a finished suite; `diverged` are (entry, zone) whose jobs ended half-way."""
    description = {
        "name": "fake", "task": "heart_rate", "metric": metric, "data": list(data), "seeds": list(seeds),
        "entries": list(entries), "reference": reference, "synthetic": list(data),
        "notes": {name: ["Invented numbers."] for name in data}, "command": "sgfusion experiment fake.toml",
    }  # fmt: skip
    invented: dict[str, Any] = {"metric": metric, "without_labels": without_labels, "diverged": diverged}
    write(folder / "suite.json", json.dumps(description))
    for d, (name, zones) in enumerate(data.items()):
        for seed in seeds:
            write(folder / "worlds" / name / f"{seed}.json", json.dumps(world(zones, seed + 100 * d)))
            for e, each in enumerate(entries):
                for outcome in outcomes(each, zones, [seed, d, e], rounds, **invented):
                    path = folder / "jobs" / name / each["name"] / str(seed) / f"{outcome.zone or '_all'}.json"
                    write(path, outcome.to_json())
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def world(zones: Sequence[str], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    edges = np.linspace(60, 200, 15)
    centres = 125 + 8 * rng.integers(0, 3, len(zones)) + rng.normal(0, 4, len(zones))
    shapes = np.exp(-(((edges[:-1] + 5 - centres[:, None]) / 22) ** 2))
    histograms = shapes / shapes.sum(axis=1, keepdims=True)
    distances = zone_distances(histograms)
    merges = linkage(squareform(distances, checks=False), "average")[:, :2].astype(int) if len(zones) > 1 else []
    tree = Dendrogram.from_merges(np.array(merges).reshape(-1, 2))
    mass = np.round(120 * histograms[0] + rng.integers(0, 5, 14))
    released = np.clip(mass + rng.laplace(0, 2, 14), 0, None)
    devices = [int(m) for m in rng.integers(2, 9, len(zones))]
    return {
        "zones": list(zones), "devices": devices, "samples": [60 * m for m in devices],
        "neighbours": [[j for j in (i - 1, i + 1) if 0 <= j < len(zones)] for i in range(len(zones))],
        "edges": edges.tolist(), "histograms": histograms.tolist(), "distances": distances.tolist(),
        "merges": tree.merges.tolist(), "probabilities": tree.sharing_probabilities(distances, 4.0).tolist(),
        "sharpness": 4.0, "epsilon": 1.0, "loss": tree.loss(distances),
        "example": {
            "zone": zones[0], "device": "u17", "mass": mass.tolist(), "released": (released / released.sum()).tolist()
        },
    }  # fmt: skip


def outcomes(
    of: Mapping[str, Any],
    zones: Sequence[str],
    key: Sequence[int],
    rounds: Sequence[int],
    *,
    metric: Mapping[str, Any],
    without_labels: Sequence[str],
    diverged: Sequence[tuple[str, str]],
) -> list[Outcome]:
    """The jobs of one entry with one seed on one data set: curves that fall, fastest where zones share."""
    rng = np.random.default_rng(list(key))
    terrain = np.random.default_rng(list(key)[:2])  # the same for every entry: zones differ more than methods do
    method, k = of["method"], of["set"].get("sampler.k")
    epsilon = of["set"].get("histogram.epsilon", 1.0)
    level = LEVEL[method] + (0.1 * abs(k - 4) if k else 0) + (0.0 if epsilon == "off" else 0.25 / (1 + epsilon))
    last = level + terrain.normal(0, 1.5, len(zones)) + rng.normal(0, 0.35, len(zones))
    labels = terrain.integers(400, 2000, len(zones))
    pace = 25 + 10 * rng.random()

    def score(z: int, round: int, worse: float) -> Score:
        if zones[z] in without_labels:
            return Score(0.0, 0)
        value = (last[z] + worse) * (1 + 2 * math.exp(-round / pace)) + rng.normal(0, 0.05)
        share = value**2 if metric["root"] else 1 / (1 + value / 20)
        return Score(float(share * labels[z]), int(labels[z]))

    def job(members: Sequence[int], zone: str | None) -> Outcome:
        ended = zone is not None and (of["name"], zone) in diverged
        here = [t for t in rounds if not ended or t <= rounds[-1] / 2]
        done = rounds[-1] // 2 if ended else rounds[-1]
        points = tuple(
            Point(t, {zones[z]: score(z, t, 0.3) for z in members}, {zones[z]: score(z, t, 0) for z in members})
            for t in here
        )
        draws = method not in NO_DRAW
        return Outcome(
            method, key[0], zone, points, chosen=here[-2], rounds=done, parameters=98_000,
            device_gradients=done * 4 * len(members), bytes_sent=done * 4 * len(members) * 392_000,
            drawn=float(k or 2 + rng.random()) if draws else None,
            homophily=float(0.1 + 0.1 * (method == "random") + 0.02 * rng.random()) if draws else None,
            diverged=f"round {done + 1}: the zone's own gradient is nan in places" if ended else None,
        )  # fmt: skip

    if method in WHOLE:
        return [job(range(len(zones)), None)]
    return [job([z], zones[z]) for z in range(len(zones))]
