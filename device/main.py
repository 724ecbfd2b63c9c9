"""`sgfusion device`: one device, or many virtual ones, as a process."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from device.answers import Answers
from device.attendance import AddressBook, attend
from device.compute import Compute
from device.local_data import device_data
from device.samples import DeviceData
from device.sources.source import open_source
from device.sources.zone_name import zones_or_meant
from device.tasks.task import Task, load_task
from device.virtual import VirtualDevice, released
from sgfusion import heap
from sgfusion.errors import DataError
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys
from sgfusion.wire.endpoint import Endpoint, Shown
from sgfusion.wire.identity import Identity, folder_of
from sgfusion.wire.service import raise_file_limit, until_stopped

_log = logging.getLogger("sgfusion.device")


@dataclass(frozen=True)
class Hosted:
    """Which devices of which zones this process is; all that the source has, if none are named."""

    zones: Sequence[str] = ()
    devices: Sequence[str] = ()


async def run_devices(
    run: RunFile,
    hosted: Hosted,
    *,
    edges: Mapping[str, str],
    state: Path,
    certs: Path | None,
    threads: int,
    release: str = "",
    metrics: Endpoint | None = None,
) -> None:
    """Attend until SIGTERM or SIGINT, which end the process. `certs` holds a folder for each device; None is insecure,
    loopback only.
    """
    raise_file_limit()
    heap.keep_freed_memory(heap.HOST)
    task = load_task(run)
    data = load_devices(run, task, hosted, edges)
    compute = Compute(task, data[0].train, threads)
    answers = Answers()
    devices = [
        VirtualDevice(
            run, task, part, compute=compute, answers=answers, release=released(run, task, part, state, release)
        )
        for part in data
    ]
    known = {d.device: Identity("device", d.device) for d in devices}
    keys = {name: Keys.load(folder_of(certs, who), who) for name, who in known.items()} if certs else {}
    book = AddressBook(edges)
    shown = _shown(metrics, compute, [device.zone for device in devices], list(keys.values()), state)
    await shown.start()
    tasks = [asyncio.create_task(attend(device, book, keys.get(device.device))) for device in devices]
    _log.info("%d devices of %d zones: attending", len({d.device for d in devices}), len({d.zone for d in devices}))
    stop = asyncio.create_task(until_stopped())
    try:
        done, _ = await asyncio.wait({stop, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for ended in done - {stop}:
            ended.result()
        _log.info("stops: %s", stop.result())
    finally:
        for ended in (*tasks, stop):
            ended.cancel()
        for ended in (*tasks, stop):
            with suppress(asyncio.CancelledError, Exception):
                await ended
        await shown.stop()
        compute.close()
    _leave()


def _shown(
    endpoint: Endpoint | None, compute: Compute, zones: Sequence[str], keys: Sequence[Keys], state: Path
) -> Shown:
    if endpoint is None:
        return Shown()
    from device.metrics import shown_at  # noqa: PLC0415 (Prometheus' client is for those who want it)

    return shown_at(endpoint, compute, zones, keys=keys, state=state)


def _leave() -> NoReturn:
    """End the process as it is. Python's own way out waits for gradients that nobody wants any more and takes torch
    apart object by object, up to a second on a busy machine; what has to last, the ledgers, has long been on disk.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def load_devices(run: RunFile, task: Task, hosted: Hosted, edges: Iterable[str] = ()) -> list[DeviceData]:
    """The samples of the hosted devices, checked and scaled, in the order of zones and ids.

    `edges` are the zones whose edges are known: one that is no zone is a slip of the pen.
    """
    source = open_source(run, here=True)
    for zone in hosted.zones:
        if zone not in source.zones():
            there = zones_or_meant(zone, source.zones())
            raise DataError(f"zone {zone!r} has no samples here: there are those of {there}")
    known = tuple(dict.fromkeys((*run.zones.names, *source.zones())))
    for zone in edges:
        if zone not in known:
            raise DataError(f"--edge: zone {zone!r} is not one of the run's: {zones_or_meant(zone, known)}")
    found = [
        device_data(task, source, zone, device)
        for zone in (hosted.zones or source.zones())
        for device in source.devices(zone)
        if not hosted.devices or device in hosted.devices
    ]
    missing = set(hosted.devices) - {part.device for part in found}
    if missing or not found:
        raise DataError(f"no samples of devices {sorted(missing)} in zones {', '.join(hosted.zones or source.zones())}")
    return found
