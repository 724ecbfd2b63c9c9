"""`sgfusion watch`: a cluster that somebody else runs, live on this terminal."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from console.live import totals
from console.looking import EVERY, LEAVES, STOPPED, Look
from console.processes import Known, Restarts, Standstill, frozen_edges
from console.reach import Reached, crews_here, of_folder, processes_of, state_of
from sgfusion.errors import DataError, UnavailableError
from sgfusion.reports import RunStatus
from sgfusion.wire.channel import Keys

Result = TypeVar("Result")
RECENT = 5
"""Events of before that are told."""
LOADS_WITHIN = 120.0
"""Seconds for `sgfusion up` to load and to start its cloud: so long waits who begins to watch before that."""


@dataclass
class Elsewhere:
    """A cluster at an address."""

    reached: Reached

    def operator(self) -> Keys | None:
        """Our keys."""
        return self.reached.keys

    def address(self, _name: str) -> str | None:
        """The cloud's."""
        return self.reached.address

    def revive(self) -> list[str]:
        """Nothing: whoever started them looks after them."""
        return []


@dataclass
class InFolder:
    """The cluster that `sgfusion up` runs in a results folder: started again, it may be at another port."""

    folder: Path
    mark: str = ""
    """Which run of that folder it is, once it was seen to serve."""
    _still: Standstill = field(default_factory=Standstill)
    _again: Restarts = field(default_factory=Restarts)

    def operator(self) -> Keys | None:
        """The keys that `up` made."""
        return of_folder(self.folder).keys

    def address(self, _name: str) -> str | None:
        """The cloud's, if it serves."""
        try:
            reached, self.mark = of_folder(self.folder), state_of(self.folder).name
        except (DataError, UnavailableError):
            return None
        return reached.address

    def revive(self) -> list[str]:
        """Nothing: `up` does. What it sees of them is told here too: it may be in a terminal that nobody sees."""
        again: list[str] = []

        def running() -> list[Known]:
            crews = crews_here(self.folder)
            again.extend(self._again.news(crews))
            return [each for crew in crews for each in (crew.keeper, *crew.processes)]

        still = self._still.news(running, time.monotonic())  # which looks when it is time
        return [*again, *still]

    def frozen(self) -> frozenset[str]:
        """The zones whose edge is, here."""
        return frozen_edges(processes_of(self.folder))

    def finished(self) -> bool:
        """Whether `up` has entered the run's end: it may come while the cloud is away."""
        try:
            ended = json.loads((self.folder / "cluster" / "finished.json").read_bytes())
        except (OSError, ValueError):
            return False
        return not self.mark or ended["fingerprint"] == self.mark


class Onlooker(Look):
    """Watches and changes nothing."""

    unserved = STOPPED

    def __init__(self, cluster: Elsewhere | InFolder, screen: Console) -> None:
        local = self._local = cluster if isinstance(cluster, InFolder) else None
        frozen = frozenset if local is None else local.frozen
        super().__init__(cluster, screen, stops=LEAVES, recent=RECENT, frozen=frozen)

    def _ended(self) -> bool:
        return super()._ended() or (self._local is not None and bool(self._local.mark) and self._local.finished())


def once_there(look: Callable[[], Result], screen: Console, within: float = LOADS_WITHIN) -> Result:
    """What `look` finds; as long as it says that there is none yet, it is asked again."""
    end, told = time.monotonic() + within, False
    while True:
        try:
            return look()
        except UnavailableError as error:
            if time.monotonic() > end:
                raise
            if not told:
                why = str(error).partition(": try again")[0]
                screen.print(
                    f"{why}: waits for it, {within:g} s at most", highlight=False, markup=False, soft_wrap=True
                )
                told = True
        time.sleep(EVERY)


def watch(folder: Path | None, reach: Callable[[], Reached], screen: Console) -> None:
    """Show the cluster until its run has finished, and say what has become of it."""
    status, local = None, None if folder is None else InFolder(folder)
    if local is None or local.address("cloud") is not None or not local.finished():
        reached = once_there(reach, screen)
        reached.refuse_a_stranger()
        look = Onlooker(local or Elsewhere(reached), screen)
        asyncio.run(look.until_finished())
        status = look.status
    for line in farewell(status, folder):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)


def farewell(status: RunStatus | None, folder: Path | None) -> list[str]:
    """The last words: how it ended, and where to go on."""
    said = []
    if status is not None:
        said.append(totals(status))
        said += [f"{zone.zone} diverged: {zone.diverged}" for zone in status.zones if zone.diverged][:RECENT]
    where = "" if folder is None else f": {folder} has its results, or will have them in a moment"
    return [*said, f"The run has finished{where}"]
