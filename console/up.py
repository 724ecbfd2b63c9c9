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
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from console.cluster import OFF, START_WITHIN, LocalCluster
from console.concluding import ALONE, conclude, known_alone, left_over, notes_on, train_alone, write
from console.notes import tell
from console.processes import forget, frozen_edges
from console.progress import Report, phases
from console.reach import ALONE_FOLDER, enter, processes_of
from console.replaced import replaced_by
from console.summary import with_alone
from console.watching import Fetched, Watch
from console.zone_notes import zone_notes
from sgfusion.durable import replace_file
from sgfusion.errors import RunFileError, SGFusionError, UnavailableError
from sgfusion.runfile import RunFile
from sgfusion.same_run import training_of
from sgfusion.wire.identity import Identity, folder_of
from simulator.checks import check_draws
from simulator.methods.registry import method_of
from simulator.resolve import devices_of, resolved
from simulator.suite_folder import SuiteFolder, fingerprint
from simulator.zone_data import AllData, load_data

RELEASED = ("task", "data", "zones", "histogram")
"""Sections that say what a device's histogram is."""
SHOWN_WITHIN = 10.0
"""Seconds for the cloud to say where its page is, once it serves."""
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
    page: str | None = OFF
    """Where the cloud serves its page; None: at its usual place."""


def up(given: RunFile, asked: Asked, screen: Console) -> None:
    """Train on a cluster, write the results folder, print the table. Stopped and started again, it goes on.

    Whoever calls it holds the folder, from before it is loaded: so others see that somebody is at work there.
    """
    SuiteFolder(asked.folder).sweep()
    with phases(screen) as report:
        report("data", 0, 1)
        run = resolved(given)
        # By the run as it was given: with all its zones named, nothing would be said of those that are left out.
        method, data, devices = method_of(run), load_data(given), devices_of(run)
    check_draws(run, method, len(devices), neighbours=data.neighbours is not None)
    ended = Ended(asked.folder, _mark(run, method))
    page = asked.page
    if ended.holds():
        screen.print(
            f"This run is finished: {asked.folder} has its results", highlight=False, markup=False, soft_wrap=True
        )
    else:
        lasting = asked.folder / "cluster"
        cluster = LocalCluster(
            ended.state,
            run,
            devices,
            hosts=asked.hosts,
            secure=asked.secure,
            lasting=lasting,
            metrics=True,
            page=asked.page,
            alone=known_alone(run, lasting / ALONE_FOLDER, data.task.metric),
        )
        _refuse_other_release(asked.folder / "cluster" / "devices" / "released.json", run, asked.folder)
        samples = {zone.name: len(zone) for zone in data.zones}
        # Before anything of theirs leaves, and before anybody waits for a training that they might not want.
        of_zones = zone_notes(run, devices, samples)
        other = replaced_by(run, asked.folder, lambda other: _mark(other, method_of(other)))
        tell((*notes_on(run, data), *of_zones, *other), screen)
        fetched = _trained(cluster, asked.folder, screen)
        page = cluster.page_place or page
        write(asked.folder, run, data, fetched, screen, of_zones=of_zones)
        ended.complete = not left_over(run, fetched, screen)
        ended.enter()
    if asked.alone and method != ALONE and not ended.compared():
        with _still_shown(asked, ended, page, screen) as url:
            alone = train_alone(run, ended.state.with_name(ALONE_FOLDER), screen, url)
            if alone is not None:
                ended.compare(alone, data)  # while the page is there: it says what came out
    conclude(asked.folder, screen)


def _still_shown(asked: Asked, ended: "Ended", page: str | None, screen: Console) -> AbstractContextManager[str | None]:
    """The page where it was, by the same rules; its address, if there is one."""
    if page == OFF:
        return nullcontext()
    try:
        from console.afterwards import still_shown  # noqa: PLC0415 (what a page needs may be missing)
    except ImportError:
        return nullcontext()
    certs = folder_of(asked.folder / "cluster" / "certs", Identity("cloud")) if asked.secure else None
    state = ended.state / "cloud"
    return still_shown(asked.folder, page, screen, state=state, certs=certs, asked=asked.page is not None)


def _mark(run: RunFile, method: str) -> str:
    """Names the state of a run: another quorum, other deadlines or another map go on with the same."""
    return fingerprint(training_of(run), method).strip()


def _refuse_other_release(path: Path, run: RunFile, folder: Path) -> None:
    """The devices' ledgers in a folder are of one data set: histograms of another would silently be the old ones."""
    if run.histogram.epsilon == "off":
        return
    said = {"seed": run.seed, **{name: getattr(run, name).model_dump(mode="json") for name in RELEASED}}
    del said["zones"]["places"]  # which no histogram hangs on
    try:
        before = json.loads(path.read_bytes())
    except (OSError, ValueError):
        replace_file(path, json.dumps(said).encode())
        return
    changed = [name for name in said if said[name] != before.get(name)]
    if changed:
        raise RunFileError(
            f"the devices in {folder} have released their histograms, and since then the run has changed (its"
            f" {', its '.join(changed)}): they release once, and would send the old ones. Give another --out"
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


def _trained(cluster: LocalCluster, folder: Path, screen: Console) -> Fetched:
    """Start all processes, watch them to the end, fetch what they have, and stop them, whatever happens."""
    logs, began = cluster.folder / "logs", time.monotonic()
    try:
        with phases(screen) as report:
            _start(cluster, report, screen)
        took = time.monotonic() - began  # zones enrol while others are started
        # Of zones that joined too: their edges are processes of this host.
        watch = Watch(cluster, screen, before=took, frozen=lambda: frozen_edges(processes_of(folder)))
        return asyncio.run(watch.to_the_end())
    except SGFusionError as error:
        raise type(error)(f"{error}\nWhat each process says: {logs}") from error
    finally:
        with screen.status("stopping all processes"):
            _stop(cluster)


def _start(cluster: LocalCluster, report: Report, screen: Console) -> None:
    """The cloud, then edges, then devices, each when it can reach those before it."""
    report("certificates", 0, 1)
    cluster.prepare()
    cluster.forget_addresses()
    enter(cluster.folder, cluster.operator_folder)
    for phase, names in (("cloud", ["cloud"]), ("edges", [f"edge-{zone}" for zone in cluster.devices])):
        report(phase, 0, len(names))
        for name in names:
            cluster.start_service(name)
        _until_served(cluster, names, phase, report, screen)
        if phase == "cloud" and cluster.page != OFF:
            screen.print(f"page: {_until_shown(cluster)}", highlight=False, markup=False, soft_wrap=True)
    report("devices", 0, 1)
    for number in range(cluster.hosts):
        cluster.start_service(f"devices-{number}")


def _until_served(cluster: LocalCluster, names: Sequence[str], phase: str, report: Report, screen: Console) -> None:
    end = time.monotonic() + START_WITHIN
    while waiting := [name for name in names if cluster.address(name) is None]:
        report(phase, len(names) - len(waiting), len(names))
        for told in cluster.revive():  # which says it once
            screen.print(told, highlight=False, markup=False, soft_wrap=True)
        for service in (cluster.services[name] for name in waiting):
            if service.restarts > FEW_STARTS or time.monotonic() > end:
                raise UnavailableError(f"{service.name} does not come to serve. It says:\n{service.last_words()}")
        time.sleep(0.02)


def _until_shown(cluster: LocalCluster) -> str:
    """Where the page is: the cloud says so a moment after it serves."""
    end = time.monotonic() + SHOWN_WITHIN
    while (url := cluster.page_url()) is None and time.monotonic() < end:
        time.sleep(0.02)
    return url or "none: the log of the cloud says why"


def _stop(cluster: LocalCluster) -> None:
    """All processes end; at a second Ctrl-C, at once."""
    try:
        cluster.stop()
    except KeyboardInterrupt:
        for service in cluster.services.values():
            service.signal(signal.SIGKILL)
        forget(cluster.folder)
        raise
