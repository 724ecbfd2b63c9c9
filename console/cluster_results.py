"""From what zones reported to the cloud to the results folder of `simulate`: the same outcomes, the same lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import DataError
from sgfusion.evaluation import Point
from sgfusion.reports import RunStatus, ZoneRecords
from sgfusion.runfile import RunFile
from simulator.cost import Cost
from simulator.methods.method import ZoneMethod
from simulator.methods.registry import METHODS
from simulator.outcome import Outcome

MOST_NAMED = 5
"""Devices, zones or rounds that a note names."""


def outcome_of(records: ZoneRecords, run: RunFile, method: str, tree: ZoneTree, bins: int) -> Outcome:
    """A zone's trajectory as the simulator would tell it."""
    chosen = [evaluation.round for evaluation in records.evaluations if evaluation.best]
    if not chosen:
        raise DataError(f"zone {records.zone!r} was never evaluated: it has no model to keep")
    cost = Cost(records.parameters)
    cost.device_gradients = sum(record.device_gradients for record in records.rounds)
    cost.bytes_sent = sum(record.bytes_sent for record in records.rounds)
    used = METHODS[method]
    if isinstance(used, ZoneMethod) and used.uses_histograms:
        cost.histograms(records.devices, bins)
    drawn = [len(record.report.drawn) for record in records.rounds]
    return Outcome(
        method=method,
        seed=run.seed,
        zone=records.zone,
        points=tuple(
            Point(each.round, {records.zone: each.validation}, {records.zone: each.test})
            for each in records.evaluations
        ),
        chosen=chosen[-1],
        rounds=len(records.rounds),
        parameters=records.parameters,
        device_gradients=cost.device_gradients,
        bytes_sent=cost.bytes_sent,
        drawn=float(np.mean(drawn)) if drawn else None,
        homophily=_homophily(records, run, tree),
        diverged=records.diverged or None,
    )


def round_lines(all_records: Iterable[ZoneRecords]) -> Iterator[Mapping[str, Any]]:
    """`rounds.jsonl`: zone by zone; devices that gave nothing are named where there were any."""
    for records in all_records:
        for record in records.rounds:
            left_out = {"devices_left_out": dict(record.devices_left_out)} if record.devices_left_out else {}
            yield {**record.report.to_record(), **left_out}


def fault_notes(status: RunStatus, all_records: Sequence[ZoneRecords], zones: Sequence[str]) -> Iterator[str]:
    """What did not go as it should have: zones that are missing, devices and peers that were left out."""
    here = {records.zone for records in all_records}
    if absent := [zone for zone in zones if zone not in here]:
        yield f"zones without results, for they never came or left early: {_some(absent)}"
    for zone in status.zones:
        if zone.zone in here and zone.round < status.rounds and not zone.diverged:
            yield f"{zone.zone} is {zone.state.value} after round {zone.round} of {status.rounds}"
    names = {zone.number: zone.zone for zone in status.zones}
    for records in all_records:
        devices: dict[str, int] = {}
        peers: dict[str, int] = {}
        for record in records.rounds:
            for device in record.devices_left_out:
                devices[device] = devices.get(device, 0) + 1
            for zone_number in record.report.left_out:
                name = names.get(zone_number, str(zone_number))
                peers[name] = peers.get(name, 0) + 1
        if devices:
            yield f"{records.zone}: rounds without some of its devices: {_counts(devices)}"
        if peers:
            yield f"{records.zone}: rounds without some of the zones it drew: {_counts(peers)}"


def _homophily(records: ZoneRecords, run: RunFile, tree: ZoneTree) -> float | None:
    """As the simulator has it; a drawn zone that is no leaf of the last tree has no distance in it."""
    if records.zone not in tree.zones:
        return None
    leaf = {run.zones.names.index(name): i for i, name in enumerate(tree.zones) if name in run.zones.names}
    own = tree.distances[tree.zones.index(records.zone)]
    drawn = ([leaf[z] for z in record.report.drawn if z in leaf] for record in records.rounds)
    means = [own[like].mean() for like in drawn if like]
    return float(np.mean(means)) if means else None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _counts(found: Mapping[str, int]) -> str:
    return _some([f"{name} ({rounds})" for name, rounds in sorted(found.items(), key=lambda item: -item[1])])
