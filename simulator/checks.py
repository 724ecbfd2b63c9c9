"""What can be said of runs before any training: wrong keys and missing files, then what a method lacks in the zones."""

import json
from collections.abc import Iterable, Mapping

from device.sources.source import check_options
from device.tasks.task import load_task
from sgfusion.errors import InputError, SamplerError
from sgfusion.runfile import RunFile
from simulator.file_stamps import check_files
from simulator.geography import no_neighbours
from simulator.methods.top_k_sgfusion import K
from simulator.suite import Suite
from simulator.suite_folder import Survey


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
        raise no_neighbours(run)


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
    unfit = set()
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
            unfit.add(entry)
        if (k := cut_k(run, method, zones)) is not None:
            cut.setdefault((data, zones), []).append(k)
    if faults:
        told = [f"{'; '.join(dict.fromkeys(where))}: {fault}" for fault, where in faults.items()]
        if others := [entry.name for entry in suite.entries if entry.name not in unfit]:
            told.append(f"Or leave them out: --entries {','.join(others)}")
        raise InputError("\n".join(told))
    return {data: cut_note(ks, zones) for (data, zones), ks in cut.items()}
