"""One run of three zones, as a live cloud has it and as its results folder has it."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cloud.page.folder import FinishedRun
from cloud.page.live import LiveRun
from cloud.page.source import Source
from console.results import write_results
from console.zones_file import zones_of_cluster
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance
from sgfusion.runfile import RunFile
from sgfusion.wire.cloud_rpc import Submission
from tests.cloud.clouds import Cluster, a_cloud
from tests.cloud.values import MASSES, MODEL, RMSE, THETA, a_point, a_report, a_round, a_run

ZONES = ("ash", "birch", "cedar")
ROUNDS = 4
EDGES = (0.0, 1.0, 2.0, 3.0, 4.0)
PLACES = "zones.places={ash=[[[50.0, 19.0]]]}"


def the_run(*overrides: str) -> RunFile:
    return a_run(PLACES, "histogram.epsilon=3.0", *overrides, zones=ZONES, rounds=ROUNDS)


async def arrive(cluster: Cluster, *zones: str) -> None:
    """Edges enrol and submit their histograms; return when there is a plan that all are in."""
    service = cluster.service
    for zone in zones:
        await service.enrol(zone, f"{zone}:1")
        model = MODEL.__class__(**{**vars(MODEL), "edges": EDGES})
        await service.submit_histogram(Submission(zone, MASSES[zone], 3, model, THETA, 3.0))
    while service.shown.plan is None or not set(zones) <= set(service.shown.plan.zones):
        await asyncio.sleep(0.01)  # between two looks: a thread fits


async def train(cluster: Cluster, rounds: int = ROUNDS, zones: tuple[str, ...] = ZONES) -> None:
    """Rounds of which zone z draws the next two, and the second does not answer; evaluated at 0 and every second."""
    service = cluster.service
    for round in range(rounds + 1):
        for zone in zones:
            number = ZONES.index(zone)
            others = tuple(sorted(other for other in range(len(ZONES)) if other != number))
            records = (a_round(round, number, drawn=others, loss=1.0 / round),) if round else ()
            points = (a_point(round, best=round in (0, 2), total=8.0 + round + number),) if round % 2 == 0 else ()
            state = ZoneState.DONE if round == ROUNDS else ZoneState.TRAINING
            attendance = Attendance(3, ("u1", "u2", "u3"))
            said = a_report(zone, state, round, rounds=records, evaluations=points, attendance=attendance, plan=1)
            await service.report(said)


async def write_folder(cluster: Cluster, folder: Path, *, zones_json: bool = True, away: tuple[str, ...] = ()) -> None:
    """What `up` would write of it if those who are `away` do not hand out their models."""
    operator = await cluster.operator()
    tree, every, plans = await operator.history()
    status = await operator.status()
    records = [zone for zone in every if zone.zone not in away]
    others = [zone for zone in every if zone.zone in away]
    zones = {
        zone.zone: {
            "before": RMSE.value(zone.evaluations[0].test.total, 2),
            "test": RMSE.value(zone.evaluations[1].test.total, 2),
            "validation": RMSE.value(zone.evaluations[1].validation.total, 4),
            "round": 2,
            "drawn": 2.0,
            "diverged": None,
        }
        for zone in records
    }
    write_results(
        folder,
        run=cluster.service.shown.run,
        zone_tree=ZoneTree.from_json(tree),
        rounds=[
            {**record.report.to_record(), "devices_left_out": dict(record.devices_left_out)}
            for zone in every
            for record in zone.rounds
        ],
        models={zone.zone: np.zeros(1, np.float32) for zone in records},
        zones=zones_of_cluster(RMSE, EDGES, status, records, plans, others=others),
        summary={
            "method": "sgfusion",
            "title": "SGFusion",
            "synthetic": True,
            "metric": vars(RMSE),
            "zones": zones,
            "pooled": {"test": math.sqrt(33 / 12), "before": math.sqrt(27 / 12)},  # totals 8 + r + z over 4 labels each
            "bytes_sent": 0,
        },
    )
    if not zones_json:
        (folder / "zones.json").unlink()


@asynccontextmanager
async def trained_cloud(folder: Path, rounds: int = ROUNDS) -> AsyncIterator[tuple[Cluster, LiveRun]]:
    """A cloud whose zones have trained, and its source."""
    async with a_cloud(folder, the_run()) as cluster:
        source = LiveRun(cluster.service)
        await source.load()
        await arrive(cluster, *ZONES)
        await train(cluster, rounds)
        yield cluster, source


@asynccontextmanager
async def a_source(kind: str, folder: Path) -> AsyncIterator[Source]:
    """The trained run as a source of that kind."""
    async with trained_cloud(folder / "state") as (cluster, live):
        if kind == "live":
            live.news()  # as who publishes does, all the time
            yield live
        elif kind == "restarted":
            again = LiveRun(cluster.service)
            await again.load()
            yield again
        else:
            await write_folder(cluster, folder / "results")
            finished = FinishedRun(folder / "results")
            try:
                yield finished
            finally:
                finished.close()


def picture_of(source: Source) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(source.picture())
    return found
