"""What zones and devices cost cloud and edge, by their own code: the figures of docs/kubernetes.md, "How it grows".

    python deploy/kubernetes/growth.py tree 100 1000 2000    fit, plan and dendrogram.json over so many zones
    python deploy/kubernetes/growth.py report 100 1000       one report, decided, stored and shown, with 1000 devices
    python deploy/kubernetes/growth.py edge 100 1000         one edge with so many devices, a whole run by `sgfusion up`

Each line is a process of its own, so that its peak memory is its own. CPU seconds; the disk is the machine's.
"""

import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from benchmarks.hrg import generated_distances
from cloud import coordinator
from cloud.planner import directory_of
from cloud.state import Plan, State
from cloud.status import run_status
from cloud.store import Store
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.draws import ProbabilisticDendrogram, draws_for
from sgfusion.evaluation import Metric, Score
from sgfusion.hrg import fit_dendrogram
from sgfusion.plan import Draws, Peer, ZonePlan, ZoneState
from sgfusion.reports import Attendance, Model, RoundRecord, ZoneEvaluation, ZoneReport
from sgfusion.runfile import RunFile
from sgfusion.wire.cloud_messages import plan_to_wire, report_to_wire
from sgfusion.wire.status_messages import status_to_wire
from sgfusion.zone_trainer import RoundReport

SHARPNESS = 30.0
DEVICES = 1000
SOME = 20
"""Zones that stand for all, where each costs the same."""


def a_run(zones: int) -> RunFile:
    """A run file that names so many zones."""
    names = [f"zone-{number:05}" for number in range(zones)]
    document = {"name": "growth", "seed": 1, "rounds": 200, "task": {"name": "x"}, "data": {"source": "x"}}
    return RunFile.model_validate({**document, "zones": {"names": names}, "hrg": {"sharpness": SHARPNESS}})


def timed(work: Callable[[], object]) -> float:
    """CPU seconds."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def tree(zones: int) -> str:
    """A fit, the plan of a zone, and what the cloud keeps of it."""
    run, distances = a_run(zones), generated_distances(zones)
    begun = time.process_time()
    found = fit_dendrogram(distances, seed=1).dendrogram
    fit = time.process_time() - begun
    text = ZoneTree(run.zones.names, found, distances).to_json()
    chances = ProbabilisticDendrogram(found, distances, tuple(range(zones)), SHARPNESS)
    names = enumerate(run.zones.names)
    directory = tuple(Peer(number, zone, f"edge-{zone}:7070", ZoneState.TRAINING) for number, zone in names)
    some = range(0, zones, zones // SOME)
    begun = time.process_time()
    draws = [draws_for(number, sampler=run.sampler, tree=chances, neighbours=None) for number in some]
    drawing = (time.process_time() - begun) / len(some)
    plans = [plan_to_wire(ZonePlan(1, number, "", drawn, directory)) for number, drawn in zip(some, draws, strict=True)]
    size = np.mean([plan.ByteSize() for plan in plans])
    bare = plan_to_wire(ZonePlan(1, 0, "", Draws("fixed"), directory)).ByteSize()
    drawn = np.mean([sum(branch.probability * len(branch.zones) for branch in each.branches) for each in draws])
    return (
        f"{zones} zones: fit {fit:.1f} s, draws {drawing * zones:.1f} s of all zones, {drawn:.1f} drawn a round;"
        f" a plan {size / 1e3:.1f} kB, {bare / 1e3:.1f} of it directory; dendrogram.json {len(text) / 1e6:.1f} MB"
    )


def report(zones: int) -> str:
    """A report of a zone with many devices, at a cloud with so many zones that all train."""
    run, now = a_run(zones), 1.0
    devices = tuple(f"{number:04}" for number in range(DEVICES))
    record = RoundRecord(
        RoundReport(0, 1, (1, 2), {1: 0.5, 2: 0.5}, {}, 0.1, 1.0, {1: 1.0, 2: 1.0}, 1.0, 0.1), {}, 1, 1, 0.5
    )
    model = Model("x", 2809, Metric("RMSE", "bpm", root=True, lower_is_better=True), 16)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder)) as store:
        state = store.load(run, now)
        histogram = tuple(np.full(16, 1 / 16).tolist())
        state = _all_planned(state, histogram, model, now)
        score = Score(123.4, 567)
        said = [
            ZoneReport(
                name,
                ZoneState.TRAINING,
                1,
                (record,),
                (ZoneEvaluation(1, score, score, best=True),),
                Attendance(DEVICES, tuple(f"{name}-{device}" for device in devices)),
                plan=1,
            )
            for name in run.zones.names
        ]
        changes = []
        begun = time.process_time()
        for each in said[:SOME]:
            changes.append(coordinator.report(state, each, now))
            state = changes[-1].state
        decided = (time.process_time() - begun) / SOME
        due = timed(lambda: coordinator.due(state, now))
        directory = timed(lambda: directory_of(state))
        stored = timed(lambda: store.save(changes)) / SOME
        for each in said[SOME:]:
            state = coordinator.report(state, each, now).state
        status = run_status(state, now, {}, "0.1.0")
        begun = time.process_time()
        message = status_to_wire(status)
        shown = time.process_time() - begun
    return (
        f"{zones} zones of {DEVICES} devices: a report {report_to_wire(said[0]).ByteSize() / 1e3:.1f} kB;"
        f" decided in {1e3 * decided:.2f} ms, whether a plan is due in {1e3 * due:.2f},"
        f" directory in {1e3 * directory:.2f}, stored in {1e3 * stored:.2f};"
        f" a status {message.ByteSize() / 1e6:.2f} MB in {shown:.2f} s"
    )


def _all_planned(state: State, histogram: tuple[float, ...], model: Model, now: float) -> State:
    for name in state.run.zones.names:
        state = coordinator.enrol(state, name, f"edge-{name}:7070", now).state
        state = coordinator.histogram(state, name, histogram, now, devices=1, model=model, initial=b"")[0].state
    plan = Plan(1, "", state.run.zones.names, (histogram,) * len(state.run.zones.names), "", now)
    return coordinator.fitted(state, coordinator.due(state, now), plan.tree, now).state  # type: ignore[arg-type]


EDGE_RUN = """
name = "edge"
seed = 1
rounds = 20
task.name = "linear"
zones.names = ["ash"]
sampler.kind = "none"
evaluation.every = 1000
[data]
source = "generated_zones"
devices = {devices}
samples = 2
features = 4
kinds = 1
contrast = 0.5
difference = 0.1
noise = 1.0
"""
PATIENCE = 200.0
"""Seconds for a run with one edge."""


def edge(devices: int) -> str:
    """An edge's peak memory and most open files, looked at ten times a second."""
    most_bytes = most_files = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.toml"
        path.write_text(EDGE_RUN.format(devices=devices), "utf-8")
        program = str(Path(sys.executable).parent / "sgfusion")
        command = [program, "up", str(path), "--no-alone", "--out", str(Path(folder) / "out")]
        up = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        until = time.monotonic() + PATIENCE
        while up.poll() is None and time.monotonic() < until:
            for child in psutil.Process(up.pid).children(recursive=True):
                try:
                    if "edge" in child.cmdline():
                        most_bytes = max(most_bytes, child.memory_info().rss)
                        most_files = max(most_files, child.num_fds())
                except psutil.Error:  # it has just ended
                    continue
            time.sleep(0.1)
        ended = up.poll() == 0
        up.terminate()
        up.wait()
    outcome = "the run ended" if ended else f"the run did not end in {PATIENCE:g} s"
    return f"{devices} devices: {outcome}; the edge had {most_bytes / 1e6:.0f} MB and {most_files} open files at most"


def measure(what: str, zones: int) -> str:
    """One line, with the peak memory of its process."""
    line = {"tree": tree, "report": report, "edge": edge}[what](zones)
    if what == "edge":
        return line
    return f"{line}; peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB"


if __name__ == "__main__":
    for number in sys.argv[2:]:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            sys.stdout.write(pool.apply(measure, (sys.argv[1], int(number))) + "\n")
