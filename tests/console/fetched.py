"""What a cluster would hand out at the end of a run, by the simulator."""

from console.watching import Fetched, Vector
from sgfusion.plan import ZoneState
from sgfusion.reports import RoundRecord, RunStatus, ZoneEvaluation, ZoneRecords, ZoneStatus
from sgfusion.runfile import RunFile
from simulator.run import train
from simulator.world import load_world


def fetched_of(run: RunFile) -> Fetched:
    """What a cluster would hand out, by the simulator: `tests/cluster` shows that they are the same."""
    world = load_world(run)
    records: list[ZoneRecords] = []
    models: dict[str, Vector] = {}
    for zone in world.zones:
        trained = train(run, "sgfusion", zone)
        outcome = trained.outcome
        histograms = (len(world.data.zones[world.number(zone)].devices) + 1) * (len(world.task.edges) - 1) * 8
        first, *rest = trained.reports
        rounds = [RoundRecord(first, {}, outcome.device_gradients, outcome.bytes_sent - histograms, 0.5)]
        rounds += [RoundRecord(report, {}, 0, 0, 0.5) for report in rest]
        evaluations = tuple(
            ZoneEvaluation(p.round, p.validation[zone], p.test[zone], best=p.round == outcome.chosen)
            for p in outcome.points
        )
        devices = len(world.data.zones[world.number(zone)].devices)
        records.append(ZoneRecords(zone, tuple(rounds), evaluations, outcome.parameters, devices))
        models |= trained.models
    zones = tuple(ZoneStatus(i, z, "127.0.0.1:1", ZoneState.DONE, run.rounds) for i, z in enumerate(world.zones))
    status = RunStatus(run.name, run.rounds, 1, "", zones, finished=True)
    return Fetched(status, world.tree.to_json(), tuple(records), models, ())
