"""What follows when a cluster has trained: the results folder of `simulate`, zones that train alone, the table."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from console.cluster_results import fault_notes, outcome_of, round_lines
from console.formats import counted, size
from console.interruption import Terminated
from console.report.alone_table import alone_table, remedies, unfinished, verdict
from console.results import write_results
from console.simulate import DRAWS_BY_THE_TREE, draw_tree, notes_on_draws, train_all
from console.summary import Known, summarise, value_of
from console.typed import typed
from console.unfinished import UnfinishedRun
from console.watching import Fetched
from console.zones_file import zones_of_cluster
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.durable import replace_file
from sgfusion.errors import SGFusionError
from sgfusion.evaluation import Metric
from sgfusion.plan import ZoneState
from sgfusion.reports import duration
from sgfusion.runfile import Histogram, Hrg, RunFile, SamplerChoice, Simulation, load_run_file
from simulator.methods.registry import method_of
from simulator.outcome import Outcome
from simulator.world import load_world

ALONE = "sgeofl"
SOON = 10.0
"""Seconds that are not worth a number."""
ENDED = (ZoneState.DONE, ZoneState.DIVERGED)


def write(
    folder: Path, run: RunFile, data: Known, fetched: Fetched, screen: Console, *, of_zones: Sequence[str] = ()
) -> None:
    """The results folder, as `simulate` leaves it; what an earlier run left there makes way.

    `of_zones` are the notes on the run's zones: who missed them when it began reads them below the table.
    """
    method = method_of(run)
    if not fetched.records:
        raise SGFusionError("no zone has a model: " + "; ".join(fetched.notes))
    tree = ZoneTree.from_json(fetched.tree)
    bins = len(data.task.edges) - 1
    outcomes = [outcome_of(records, run, method, tree, bins) for records in fetched.records]
    zones = [records.zone for records in fetched.records]
    notes = (
        *notes_on(run, data),
        *of_zones,
        *fetched.notes,
        *fault_notes(fetched.status, fetched.records, run.zones.names),
    )
    summary = summarise(
        data,
        method=method,
        seed=run.seed,
        zones=zones,
        outcomes=outcomes,
        models=tuple(fetched.models),
        notes=notes,
        again=shlex.join(["sgfusion", "up", "run.toml"]),
    )
    with UnfinishedRun(folder, run, method) as kept:
        kept.make_way(fetched.models)
        lines = round_lines((*fetched.records, *fetched.others))
        write_results(
            folder,
            run=run,
            zone_tree=tree,
            rounds=lines,
            models=fetched.models,
            zones=zones_of_cluster(
                data.task.metric,
                data.task.edges.tolist(),
                fetched.status,
                fetched.records,
                fetched.plans,
                others=fetched.others,
            ),
            summary=summary,
        )
        if method in DRAWS_BY_THE_TREE:
            draw_tree(folder, run, tree, synthetic=data.synthetic, screen=screen)
        kept.remove()


def notes_on(run: RunFile, data: Known) -> tuple[str, ...]:
    """What is known before it trains: of the data, and of what becomes of the run's settings with so many zones."""
    return (*data.notes, *notes_on_draws(run, method_of(run), len(run.zones.names)))


def left_over(run: RunFile, fetched: Fetched, screen: Console) -> list[str]:
    """Zones of the run that have not trained to their end, or whose models are not here; the screen says which."""
    # An edge that was started again on a finished run says for a moment that it trains.
    status = fetched.status
    ended = {zone.zone for zone in status.zones if zone.state in ENDED or zone.round >= status.rounds}
    left = [zone for zone in run.zones.names if zone not in ended & set(fetched.models)]
    if left:
        told = f"Not trained to the end: {', '.join(left)}. The same command goes on with what can be reached."
        screen.print(told, highlight=False, markup=False, soft_wrap=True)
    return left


def alone_run(run: RunFile) -> RunFile:
    """The run without sharing: nothing of it hangs on histograms or the tree, so one is kept for all of those."""
    return RunFile(
        name="alone",
        seed=run.seed,
        rounds=run.rounds,
        task=run.task,
        data=run.data,
        zones=run.zones,
        update=run.update,
        optimiser=run.optimiser,
        evaluation=run.evaluation,
        histogram=Histogram(epsilon="off"),
        hrg=Hrg(restarts=1, patience=1),
        sampler=SamplerChoice(kind="none"),
        simulation=Simulation(exact=True),
    )


def train_alone(run: RunFile, folder: Path, screen: Console, page: str | None = None) -> dict[str, Outcome] | None:
    """What each zone comes to alone; None if Ctrl-C leaves that out. SIGTERM is for the whole command, here too."""
    try:
        return _trained_alone(run, folder, screen, page)
    except Terminated:
        raise
    except KeyboardInterrupt:
        told = "left out: what zones come to alone. The same command goes on with it"
        screen.print(told, highlight=False, soft_wrap=True)
        return None


def _trained_alone(run: RunFile, folder: Path, screen: Console, page: str | None) -> dict[str, Outcome]:
    """To the bit as a cluster would have it: device by device, in this process.

    How long it will take is said once that is known, with where the `page` is meanwhile.
    """
    bare = alone_run(run)
    skip = "Ctrl-C: leave it out; the results are written"
    screen.print(f"To compare with: zones train alone in the simulator ({skip})", highlight=False, soft_wrap=True)

    def say(seconds: float) -> None:
        if seconds >= SOON:
            shown = f"; the page shows the finished run meanwhile: {page}" if page else ""
            told = f"That takes about {duration(seconds)}{shown}"
            screen.print(told, highlight=False, markup=False, soft_wrap=True)

    with UnfinishedRun(folder, bare, ALONE) as kept:
        with screen.status("the data, for zones that train alone"):
            world = load_world(bare)
        trained = train_all(world, ALONE, None, kept, screen, foreseen=say, shown="zones alone")
    return {str(outcome.zone): outcome for outcome in trained.outcomes}


def known_alone(run: RunFile, folder: Path, metric: Metric) -> Path | None:
    """The folder, if all zones were trained alone there for an earlier run: it then has a summary that says so."""
    bare = alone_run(run)
    with UnfinishedRun(folder, bare, ALONE) as kept:
        found = {zone: kept.result(zone) for zone in run.zones.names}
    zones = {}
    for zone, result in found.items():
        if result is None:
            return None
        zones[zone] = {"test": value_of(metric, [Outcome.from_json(result["outcome"]).best.test[zone]])}
    replace_file(folder / "run.toml", bare.to_toml().encode())  # by which the cloud sees that they are this run's
    replace_file(folder / "summary.json", json.dumps({"method": ALONE, "zones": zones}).encode())
    return folder


def conclude(folder: Path, screen: Console) -> None:
    """Print the table of the results in the folder, and what to say below it."""
    summary = json.loads((folder / "summary.json").read_bytes())
    screen.print(f"{summary['title']} on a cluster, seed {summary['seed']}", style="bold", highlight=False)
    screen.print(alone_table(summary))
    for line in conclusion(summary, folder):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)


def conclusion(summary: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What to say below the table."""
    if said := verdict(summary):
        run = load_run_file(folder / "run.toml")
        yield said
        if more := unfinished(summary, run):
            yield more
        yield from remedies(summary, run)
    yield from (f"note: {note}" for note in summary["notes"])
    judged = any(zone["validation"] is not None for zone in summary["zones"].values())
    which = "of the round that was best on the validation samples" if judged else "of the last round"
    made_up = "The data is synthetic. " if summary["synthetic"] else ""
    yield f"{made_up}Models are those {which}."
    gradients, sent = counted(summary["device_gradients"], "device gradient"), size(summary["bytes_sent"])
    yield f"{gradients}; {sent} of weights and directions were sent. Results in {folder}."
    zones = summary["zones"]
    zone = next((name for name, entry in zones.items() if entry["test"] is not None), next(iter(zones)))
    yield f"Look at it in a browser: {typed('view', folder)}"
    yield f"Next: {typed('export', folder, '--zone', zone)}"
    yield f"or: {typed('predict', folder, '--zone', zone)}"
