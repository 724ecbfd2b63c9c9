"""What can be said of runs before any work is done: wrong keys of their tasks and sources, files that are not there."""

from collections.abc import Iterable

from device.sources.source import check_options
from device.tasks.task import load_task
from sgfusion.runfile import RunFile
from simulator.file_stamps import check_files


def check_runs(runs: Iterable[RunFile]) -> None:
    """Raise for the first that cannot be; runs of a suite have most sections in common."""
    seen = set()
    for run in runs:
        sections = (run.task, run.data, run.zones, run.hrg)
        if (key := tuple(section.model_dump_json() for section in sections)) not in seen:
            seen.add(key)
            load_task(run)
            check_options(run)
            check_files(run)
