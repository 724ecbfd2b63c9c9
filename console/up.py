"""`sgfusion up`: a whole cluster on this machine, from the run file to the results folder of `simulate`.

::

    <out>/cluster/certs/  /devices/       keys, and the devices' privacy ledgers, whatever the run's settings
                 /<fingerprint>/          the state of cloud and edges, and all logs: a run that was stopped goes on
                 /alone/                  zones that trained alone, to compare with
                 /finished.json           which run the results in <out> are of
"""

import asyncio
import hashlib
import json
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from console.cluster import START_WITHIN, LocalCluster
from console.cluster_results import fault_notes, outcome_of, round_lines
from console.progress import Report, phases
from console.reach import enter
from console.report.alone_table import alone_table, verdict
from console.report.formats import counted, size
from console.results import write_results
from console.simulate import DRAWS_BY_THE_TREE, draw_tree, notes_on_draws, train_all
from console.summary import summarise, with_alone
from console.unfinished import UnfinishedRun
from console.watching import Fetched, Watch
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.durable import replace_file
from sgfusion.errors import RunFileError, SGFusionError, UnavailableError
from sgfusion.plan import ZoneState
from sgfusion.runfile import Deadlines, Histogram, Hrg, Quorum, RunFile, SamplerChoice, Simulation
from simulator.checks import check_draws
from simulator.methods.registry import method_of
from simulator.resolve import devices_of, resolved
from simulator.suite_folder import SuiteFolder, fingerprint
from simulator.world import load_world
from simulator.zone_data import AllData, load_data

ALONE = "sgeofl"
RELEASED = ("task", "data", "zones", "histogram")
"""Sections that say what a device's histogram is."""
FEW_STARTS = 5
"""Times that a process may end before it has ever served: one that a killed `up` left behind may hold its state."""


@dataclass(frozen=True)
class Asked:
    """What the command line says besides the run."""

    folder: Path
    hosts: int
    secure: bool = True
    alone: bool = True
    """Whether zones are trained alone too, to compare with."""


def up(given: RunFile, asked: Asked, screen: Console) -> None:
    """Train on a cluster, write the results folder, print the table. Stopped and started again, it goes on."""
    with _interruptible(), SuiteFolder(asked.folder).hold():
        with phases(screen) as report:
            report("data", 0, 1)
            run = resolved(given)
            method, data, devices = method_of(run), load_data(run), devices_of(run)
        check_draws(run, method, len(devices), neighbours=data.neighbours is not None)
        ended = Ended(asked.folder, _mark(run, method))
        if ended.holds():
            screen.print(f"This run is finished: {asked.folder} has its results", highlight=False, soft_wrap=True)
        else:
            cluster = LocalCluster(
                ended.state, run, devices, hosts=asked.hosts, secure=asked.secure, lasting=asked.folder / "cluster"
            )
            _refuse_other_release(asked.folder / "cluster" / "devices" / "released.json", run, asked.folder)
            fetched = _trained(cluster, screen)
            _write(asked.folder, run, data, fetched, screen)
            left = [zone for zone in run.zones.names if zone not in _whole(fetched)]
            ended.complete = not left
            if left:
                told = f"Not trained to the end: {', '.join(left)}. The same command goes on with what can be reached."
                screen.print(told, highlight=False, soft_wrap=True)
            ended.enter()
        if asked.alone and method != ALONE and not ended.compared():
            ended.compare(_alone(run, asked.folder / "cluster" / "alone", screen), data)
        _conclude(asked.folder, screen)


def _mark(run: RunFile, method: str) -> str:
    """Names the state of a run: another quorum or other deadlines go on with the same."""
    return fingerprint(run.model_copy(update={"quorum": Quorum(), "deadlines": Deadlines()}), method).strip()


def _whole(fetched: Fetched) -> set[str]:
    """Zones that have trained to their end, and whose models are here."""
    ended = {zone.zone for zone in fetched.status.zones if zone.state in (ZoneState.DONE, ZoneState.DIVERGED)}
    return ended & set(fetched.models)


def _refuse_other_release(path: Path, run: RunFile, folder: Path) -> None:
    """The devices' ledgers in a folder are of one data set: histograms of another would silently be the old ones."""
    if run.histogram.epsilon == "off":
        return
    said = {"seed": run.seed, **{name: getattr(run, name).model_dump(mode="json") for name in RELEASED}}
    try:
        before = json.loads(path.read_bytes())
    except (OSError, ValueError):
        replace_file(path, json.dumps(said).encode())
        return
    changed = [name for name in said if said[name] != before.get(name)]
    if changed:
        raise RunFileError(
            f"the devices in {folder} have released their histograms with another {' and '.join(changed)}: they release"
            " once, and would send the old ones. Give another --out"
        )


class Ended:
    """Whether the results in a folder are those of this run. Summary and mark agree, or the run goes on."""

    def __init__(self, folder: Path, mark: str) -> None:
        self._summary, self._entry = folder / "summary.json", folder / "cluster" / "finished.json"
        self._mark = mark
        self.complete = True
        """Whether every zone of the run is in the results; if not, the run goes on the next time."""
        self.state = folder / "cluster" / mark

    def holds(self) -> bool:
        """The results are there, and nobody has changed them."""
        try:
            return bool(json.loads(self._entry.read_bytes()) == self._now())
        except (OSError, ValueError):
            return False

    def enter(self) -> None:
        """The results have been written; they are the end of the run if they are complete."""
        if self.complete:
            replace_file(self._entry, json.dumps(self._now()).encode())

    def compared(self) -> bool:
        """Whether the summary says what zones come to alone."""
        return "alone" in json.loads(self._summary.read_bytes())["pooled"]

    def compare(self, alone: Mapping[str, Any], data: AllData) -> None:
        """Add to the summary what zones come to alone."""
        summary = with_alone(json.loads(self._summary.read_bytes()), data.task.metric, alone)
        replace_file(self._summary, (json.dumps(summary, indent=1) + "\n").encode())
        self.enter()

    def _now(self) -> dict[str, str]:
        digest = hashlib.sha256(self._summary.read_bytes()).hexdigest()
        return {"fingerprint": self._mark, "summary": digest}


def _trained(cluster: LocalCluster, screen: Console) -> Fetched:
    """Start all processes, watch them to the end, fetch what they have, and stop them, whatever happens."""
    logs = cluster.folder / "logs"
    try:
        with phases(screen) as report:
            _start(cluster, report)
        watch = Watch(cluster, screen)
        return asyncio.run(_watched(watch))
    except SGFusionError as error:
        raise type(error)(f"{error}\nWhat each process says: {logs}") from error
    finally:
        with screen.status("stopping all processes"):
            _stop(cluster)


async def _watched(watch: Watch) -> Fetched:
    await watch.until_finished()
    return await watch.fetch()


def _start(cluster: LocalCluster, report: Report) -> None:
    """The cloud, then edges, then devices, each when it can reach those before it."""
    report("certificates", 0, 1)
    cluster.prepare()
    cluster.forget_addresses()
    enter(cluster.folder, cluster.operator_folder)
    for phase, names in (("cloud", ["cloud"]), ("edges", [f"edge-{zone}" for zone in cluster.devices])):
        report(phase, 0, len(names))
        for name in names:
            cluster.start_service(name)
        _until_served(cluster, names, phase, report)
    report("devices", 0, 1)
    for number in range(cluster.hosts):
        cluster.start_service(f"devices-{number}")


def _until_served(cluster: LocalCluster, names: Sequence[str], phase: str, report: Report) -> None:
    end = time.monotonic() + START_WITHIN
    while waiting := [name for name in names if cluster.address(name) is None]:
        report(phase, len(names) - len(waiting), len(names))
        cluster.revive()
        for service in (cluster.services[name] for name in waiting):
            if service.restarts > FEW_STARTS or time.monotonic() > end:
                raise UnavailableError(f"{service.name} does not come to serve. It says:\n{service.last_words()}")
        time.sleep(0.02)


def _stop(cluster: LocalCluster) -> None:
    """All processes end; at a second Ctrl-C, at once."""
    try:
        cluster.stop()
    except KeyboardInterrupt:
        for service in cluster.services.values():
            service.signal(signal.SIGKILL)
        raise


def _write(folder: Path, run: RunFile, data: AllData, fetched: Fetched, screen: Console) -> None:
    """The results folder, as `simulate` leaves it; what an earlier run left there makes way."""
    method = method_of(run)
    if not fetched.records:
        raise SGFusionError("no zone has a model: " + "; ".join(fetched.notes))
    tree = ZoneTree.from_json(fetched.tree)
    bins = len(data.task.edges) - 1
    outcomes = [outcome_of(records, run, method, tree, bins) for records in fetched.records]
    zones = [records.zone for records in fetched.records]
    notes = (
        *data.notes,
        *notes_on_draws(run, method, len(data.zones)),
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
        lines = round_lines(fetched.records)
        write_results(folder, run=run, zone_tree=tree, rounds=lines, models=fetched.models, summary=summary)
        if method in DRAWS_BY_THE_TREE:
            draw_tree(folder, run, tree, synthetic=data.synthetic, screen=screen)
        kept.remove()


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


def _alone(run: RunFile, folder: Path, screen: Console) -> dict[str, Any]:
    """What each zone comes to alone, to the bit as a cluster would have it: device by device, in this process."""
    bare = alone_run(run)
    screen.print("To compare with: zones that train alone, in the simulator", highlight=False)
    with UnfinishedRun(folder, bare, ALONE) as kept:
        trained = train_all(load_world(bare), ALONE, None, kept, screen)
    return {str(outcome.zone): outcome for outcome in trained.outcomes}


def _conclude(folder: Path, screen: Console) -> None:
    summary = json.loads((folder / "summary.json").read_bytes())
    screen.print(f"{summary['title']} on a cluster, seed {summary['seed']}", style="bold", highlight=False)
    screen.print(alone_table(summary))
    for line in conclusion(summary, folder):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)


def conclusion(summary: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What to say below the table."""
    if said := verdict(summary):
        yield said
    yield from (f"note: {note}" for note in summary["notes"])
    judged = any(zone["validation"] is not None for zone in summary["zones"].values())
    which = "of the round that was best on the validation samples" if judged else "of the last round"
    made_up = "The data is synthetic. " if summary["synthetic"] else ""
    yield f"{made_up}Models are those {which}."
    gradients, sent = counted(summary["device_gradients"], "device gradient"), size(summary["bytes_sent"])
    yield f"{gradients}; {sent} of weights and directions were sent. Results in {folder}."
    zone = next(iter(summary["zones"]))
    yield f"Next: sgfusion export {folder} --zone {zone}, or sgfusion predict {folder} --zone {zone}"


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM is as good as Ctrl-C, and that counts even for a process whose shell had it ignore it."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: interrupt}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
