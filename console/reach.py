"""How an operator's command finds a cloud: by its address, or by the folder of a local cluster."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from console.folder_argument import refuse_absent
from console.formats import sentences
from console.hearing import WITHIN
from console.processes import FILE as PROCESSES
from console.processes import STOPPED, Crew, Known, condition, frozen_words, told
from console.typed import typed
from sgfusion.durable import replace_file
from sgfusion.errors import DataError, DeadlineError, InputError, SilentError, UnavailableError, UnprovenError
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity
from sgfusion.wire.service import ADDRESS, announced
from simulator.held_folder import is_held

Result = TypeVar("Result")
OPERATOR = Identity("operator")
CLOUD = Identity("cloud")
ENTRY = "operator.json"
"""In a local cluster's state: where the operator's keys are."""
USUAL = Path("results")
"""Where `sgfusion up` has its results folders unless it is told otherwise."""
GOES_ON = "was stopped, and sgfusion up goes on with it"
AT_WORK = "has sgfusion up at work, before or after it trains together"
UNSEEN = "has not finished, and whether sgfusion up is still at work is not known: the folder's .lock cannot be opened"
FINISHED = "has finished"
LOADS = "a sgfusion command is at work, and if that is sgfusion up it still loads: try again in a moment"
ALONE_FOLDER = "alone"
"""Among the states of a folder's clusters that of the zones that train alone, to compare with: no cluster's."""


@dataclass(frozen=True)
class Reached:
    """A cloud's address, and what proves that we are its operator; no keys is insecure."""

    address: str
    keys: Keys | None
    certs: Path | None = None
    """The folder that they are of."""
    folder: Path | None = None
    """The results folder of a local cluster, by which it was found."""

    def ask(self, question: Callable[[CloudClient], Awaitable[Result]]) -> Result:
        """The cloud's answer."""
        return asyncio.run(self._ask(question))

    def refuse_a_stranger(self) -> None:
        """An error at once if who answers there cannot be our cloud. One that is away may come, and is waited for."""
        try:
            self.ask(lambda client: client.status(timeout=WITHIN))
        except UnprovenError:
            raise
        except UnavailableError:
            pass

    async def _ask(self, question: Callable[[CloudClient], Awaitable[Result]]) -> Result:
        async with open_channel(self.address, server=CLOUD, me=OPERATOR, keys=self.keys) as channel:
            try:
                return await question(CloudClient(channel))
            except (DeadlineError, SilentError) as error:
                raise UnavailableError(f"the cloud at {self.address} does not answer: {self._help()}") from error
            except UnprovenError:
                raise
            except UnavailableError as error:
                if self.folder is None:
                    raise
                raise UnavailableError(sentences(str(error), self._help())) from error

    def _help(self) -> str:
        if self.folder is None:
            return "its log says why, if that is its address"
        for process in processes_of(self.folder):
            if process.name == "cloud" and condition(process) == STOPPED:
                return frozen_words(replace(process, name="its process"))
        return f"{typed('doctor', self.folder)} looks at its processes"


def enter(state: Path, certs: Path | None) -> None:
    """Say in a local cluster's state where its operator's keys are; None: it has none."""
    replace_file(state / ENTRY, json.dumps({"certs": None if certs is None else str(certs.absolute())}).encode())


def reach(folder: Path | None, cloud: str | None, certs: Path | None, *, insecure: bool) -> Reached:
    """The cloud at that address, or that of the cluster whose results folder it is."""
    if cloud is not None:
        if insecure == (certs is not None):
            raise InputError("give --certs DIR, the operator's own folder of `sgfusion certs`, or --insecure")
        return Reached(cloud, None if certs is None else Keys.load(certs, Identity("operator")), certs)
    if folder is None:
        raise InputError("give the results folder of a local cluster, or --cloud HOST:PORT and --certs DIR")
    return of_folder(folder)


def all_running(base: Path = USUAL) -> list[Path]:
    """The results folders of the clusters that run there now."""
    return sorted({path.parents[2] for path in base.glob(f"*/cluster/*/{PROCESSES}") if crews(path.parents[2])})


def running(base: Path = USUAL) -> Path:
    """The results folder of the one cluster that runs there now: nobody types what can be seen."""
    found = all_running(base)
    if not found and (busy := sorted(str(path) for path in base.glob("*") if may_load(path))):
        raise UnavailableError(f"no cluster runs in {base}/ here. In {' and '.join(busy)} {LOADS}")
    if not found:
        raise InputError(
            f"no cluster runs in {base}/ here{_last_ended(base)}: give its results folder (--out of sgfusion up); of"
            " one elsewhere, status and watch take --cloud HOST:PORT"
        )
    if len(found) > 1:
        raise InputError(f"several clusters run here: give one of {', '.join(map(str, found))}")
    return found[0]


def _last_ended(base: Path) -> str:
    """In brackets, which run was stopped last, or ended: who has just seen it train looks for that one."""
    found = [(*last, path.parent) for path in base.glob("*/cluster") if (last := _last(path.parent)) is not None]
    if not found:
        return ""
    _, finished, run = max(found)
    return f" ({run} {FINISHED if finished else _unfinished(run)})"


def _last(folder: Path) -> tuple[float, bool] | None:
    """When the last run in a results folder finished, or began and has not finished; None if there was none.

    A run that ends writes that it finished after it began: what is newest tells, and where clocks do not, the end.
    """
    begun = (path for path in folder.glob("cluster/*/run.toml") if path.parent.name != ALONE_FOLDER)
    ended = folder.glob("cluster/finished.json")
    return max(
        [*((_written(path), True) for path in ended), *((_written(path), False) for path in begun)], default=None
    )


def _unfinished(folder: Path) -> str:
    return {True: AT_WORK, False: GOES_ON, None: UNSEEN}[is_held(folder)]


def may_load(folder: Path) -> bool:
    """Whether a command is at work in that results folder, and no cluster runs there, nor has finished: `up`, which
    loads for some seconds before it has anything to write, or `simulate` or `follow`.
    """
    last = _last(folder)
    return is_held(folder) is True and not crews(folder) and (last is None or not last[1])


def ended_early(folder: Path) -> str:
    """How it is that none runs in that results folder and the last one has not finished; empty if that is not so."""
    last = _last(folder)
    return "" if crews(folder) or last is None or last[1] else _unfinished(folder)


def state_of(folder: Path) -> Path:
    """The state of the cluster that `sgfusion up` runs, or last ran, in that results folder."""
    known = sorted(folder.glob(f"cluster/*/cloud/{ADDRESS}"), key=_written)
    if not known:
        refuse_absent(folder)
        if crews(folder):
            raise UnavailableError(
                f"the cloud in {folder} is away, and sgfusion up starts it again: try again in seconds"
            )
        if why := ended_early(folder):
            told = f"no cluster runs in {folder}: its run {why}"
            raise UnavailableError(f"{told}: try again in a moment") if why == AT_WORK else DataError(told)
        if may_load(folder):
            raise UnavailableError(f"no cluster runs in {folder}. There {LOADS}")
        if (folder / "summary.json").exists():
            raise DataError(
                f"no cluster runs in {folder}, and it has the results of a run that is over:"
                f" {typed('view', folder)} shows them."
                " A longer one (--set rounds=…) in another --out can be joined and watched while it trains"
            )
        raise DataError(f"no cluster runs in {folder}: start one there with sgfusion up, or give --cloud HOST:PORT")
    return known[-1].parent.parent


def _written(path: Path) -> float:
    """When, or never: a cloud that ends takes its address back at any moment."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def crews(folder: Path) -> list[Crew]:
    """Those of local clusters in that results folder whose keeper runs."""
    found = (told(path.parent) for path in folder.glob(f"cluster/*/{PROCESSES}"))
    return [crew for crew in found if crew is not None and condition(crew.keeper)]


def crews_here(folder: Path) -> list[Crew]:
    """Those of this host that run the local cluster in that results folder, and zones that joined it."""
    states = (path.parent for place in ("*", "*/joined/*") for path in folder.glob(f"cluster/{place}/{PROCESSES}"))
    found = [crew for crew in map(told, states) if crew is not None and crew.host == socket.gethostname()]
    return [crew for crew in found if condition(crew.keeper)]


def processes_of(folder: Path) -> list[Known]:
    """Their processes, and who looks after them."""
    return [each for crew in crews_here(folder) for each in (crew.keeper, *crew.processes)]


def frozen_in(folder: Path | None) -> list[str]:
    """Which of them a signal has stopped, in words; of a cluster elsewhere nothing is seen."""
    processes = [] if folder is None else processes_of(folder)
    return [frozen_words(process) for process in processes if condition(process) == STOPPED]


def of_folder(folder: Path) -> Reached:
    """That cluster's cloud."""
    state = state_of(folder)
    address = announced(state / "cloud")
    try:
        certs = json.loads((state / ENTRY).read_bytes())["certs"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{state / ENTRY} cannot be read ({error}): give --cloud and --certs") from error
    if address is None:
        raise UnavailableError(f"the cluster in {folder} does not serve yet: try again")
    place = None if certs is None else Path(certs)
    return Reached(address, None if place is None else Keys.load(place, Identity("operator")), place, folder)
