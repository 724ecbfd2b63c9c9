"""`sgfusion follow`: a cluster that runs elsewhere, watched to its end, as `sgfusion up` watches its own."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from console.concluding import ALONE, conclude, left_over, notes_on, train_alone, write
from console.looking import LEAVES
from console.notes import tell
from console.progress import phases
from console.reach import Reached
from console.summary import Elsewhere, Known, with_alone
from console.watching import Watch
from device.tasks.task import load_task
from sgfusion.durable import replace_file
from sgfusion.errors import DataError
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys
from simulator.methods.registry import method_of
from simulator.resolve import resolved
from simulator.suite_folder import SuiteFolder
from simulator.zone_data import load_data


@dataclass
class RemoteCluster:
    """A cluster whose processes are others' to start; all we know of it is its cloud."""

    run: RunFile
    reached: Reached

    def operator(self) -> Keys | None:
        """Our keys."""
        return self.reached.keys

    def address(self, _name: str) -> str:
        """The cloud's."""
        return self.reached.address

    def revive(self) -> list[str]:
        """Nothing: whoever started them looks after them."""
        return []


def follow(given: RunFile, reached: Reached, folder: Path, *, alone: bool, screen: Console) -> bool:
    """Watch the run to its end, write the results folder, print the table; whether every zone of it is there.

    What the folder has of an earlier run makes way: the cluster may have been started anew, with fresh noise.
    """
    with SuiteFolder(folder).hold():
        with phases(screen) as report:
            report("data", 0, 1)
            run = given if given.zones.names else resolved(given)
            lean = _without_geography(run)
            method, data = method_of(run), _known(_without_geography(given), needed=alone)
        tell(notes_on(run, data), screen)
        fetched = asyncio.run(Watch(RemoteCluster(run, reached), screen, stops=LEAVES).to_the_end())
        write(folder, run, data, fetched, screen)
        left = left_over(run, fetched, screen)
        trained = train_alone(lean, folder / "alone", screen) if alone and method != ALONE else None
        if trained is not None:
            summary = with_alone(json.loads((folder / "summary.json").read_bytes()), data.task.metric, trained)
            replace_file(folder / "summary.json", (json.dumps(summary, indent=1) + "\n").encode())
        conclude(folder, screen)
    return not left


def _known(run: RunFile, *, needed: bool) -> Known:
    """The data, if it is here: in a deployment it is on devices alone, and no zone can be trained alone to compare."""
    try:
        return load_data(run)
    except DataError as error:
        if needed:
            raise DataError(f"{error}. Where devices alone have the data, give --no-alone") from error
        return Elsewhere(load_task(run))


def _without_geography(run: RunFile) -> RunFile:
    """The run with nobody next to anybody, unless it says who is: nothing here asks, and finding out takes scipy,
    which the images do without.
    """
    if run.zones.adjacent is not None:
        return run
    return run.model_copy(update={"zones": run.zones.model_copy(update={"adjacent": {}})})
