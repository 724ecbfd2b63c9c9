"""What can be said of runs before any training: wrong keys and missing files, then what a method lacks in the zones."""

import json
from collections.abc import Iterable, Mapping

from device.sources.source import check_options
from device.tasks.task import load_task
from sgfusion.errors import DataError, InputError, SamplerError
from sgfusion.runfile import RunFile
from simulator.file_stamps import check_files
from simulator.methods.top_k_sgfusion import K
from simulator.suite import Suite
from simulator.suite_folder import Survey

PLACES = {
    "sequences": "add the arrays lat and lon to the .npz file, the place of each sample in degrees",
    "table": "name the columns of latitude and longitude, in degrees, with data.latitude and data.longitude",
}
"""How a source is given places."""
OWN_PLACES = "let the source's neighbours() name them"


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


def check_draws(run: RunFile, method: str, zones: int, *, neighbours: bool) -> None:
    """Refuse a run whose method cannot draw among so many zones, or needs neighbours where none are known."""
    chi = run.sampler.chi if method == "chi-sgfusion" else None
    if chi is not None and chi > zones - 1:
        raise SamplerError(
            f"sampler.chi = {chi}: a zone of this run has {zones - 1} others to draw from: set it to no more than that"
        )
    if not neighbours and (method in ("d-zgd", "delta-z") or (method == "chi-sgfusion" and chi is None)):
        raise DataError(
            f"data.source = {run.data.source!r} gives no places, so zones have no neighbours:"
            f" {PLACES.get(run.data.source, OWN_PLACES)}; or leave out the methods that need them (d-zgd, delta-z, and"
            " chi-sgfusion without sampler.chi)"
        )


def cut_k(run: RunFile, method: str, zones: int) -> int | None:
    """The k of top-k-SGFusion if it is more than the other zones: all of those are drawn then. Else None.

    No error: the same entries of a suite, k = 1 to 7, serve data with many zones and data with few.
    """
    k = run.sampler.k or K
    return k if method == "top-k-sgfusion" and k > zones - 1 > 0 else None


def cut_note(ks: Iterable[int], zones: int) -> str:
    """What becomes of such values of `sampler.k`."""
    others = "1 other" if zones == 2 else f"{zones - 1} others"
    return (
        f"sampler.k = {', '.join(map(str, sorted(set(ks))))}: a zone of this run has {others} to draw from, and draws"
        f" all of them every round, as the method all does. Set it to {zones - 1} or less"
    )


def check_suite(suite: Suite, surveys: Mapping[tuple[str, int], Survey]) -> dict[str, str]:
    """Refuse a suite with methods that cannot draw in the zones that were found; notes on `k`, by data.

    One message names all such entries: a suite is mended once.
    """
    with_places = {world: json.loads(made.world)["neighbours"] is not None for world, made in surveys.items()}
    faults: dict[str, list[str]] = {}
    cut: dict[tuple[str, int], list[int]] = {}
    for key, run in suite.runs.items():
        data, entry, seed = key
        if (data, seed) not in surveys:
            continue
        method, zones = suite.method(key), len(surveys[data, seed].zones)
        try:
            check_draws(run, method, zones, neighbours=with_places[data, seed])
        except InputError as error:
            faults.setdefault(str(error), []).append(f"entry {entry!r}, data {data!r}")
        if (k := cut_k(run, method, zones)) is not None:
            cut.setdefault((data, zones), []).append(k)
    if faults:
        raise InputError("\n".join(f"{'; '.join(dict.fromkeys(where))}: {fault}" for fault, where in faults.items()))
    return {data: cut_note(ks, zones) for (data, zones), ks in cut.items()}
