"""`sgfusion certs --bundle`: all that the host of one zone needs, as one file to bring there (deploy/edge takes it).

`edge/` are the edge's keys, `devices/` a folder of keys for each device and the run file that they read. The CA's key
is not in it. It holds private keys all the same, so nobody but its owner may read it.
"""

import io
import sys
import tarfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from console.certs import Asked, host_folder
from console.run_argument import with_zone
from sgfusion.durable import replace_file
from sgfusion.errors import InputError
from sgfusion.runfile import RunFile
from sgfusion.wire.identity import Identity, folder_of


def for_bundle(run: RunFile, folder: Path, asked: Asked) -> tuple[RunFile, Asked]:
    """The run as the zone's devices read it, and whose certificates they need. Devices that are not named are
    those that the data has.
    """
    if len(asked.zones) != 1 or asked.hosts:
        raise InputError("--bundle is for one zone's host: give one --zone, and no --host")
    if not (folder / "ca.crt").exists():  # a new one would sign for nobody that the cloud knows
        raise InputError(f"--bundle: no CA is in {folder}: give with --out the folder that has the one of the cloud")
    (zone,) = asked.zones
    return with_zone(run, zone), asked if asked.devices else Asked(asked.zones, hosts=(asked.zones,))


def write_bundle(run: RunFile, folder: Path, asked: Asked, to: Path, *, now: datetime) -> None:
    """Write the keys that the CA's folder holds, and the run file; "-" is stdout."""
    (zone,) = asked.zones
    content = _packed({**_keys(folder, zone, asked.devices), "devices/run.toml": run.to_toml().encode()}, now)
    if to == Path("-"):
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        replace_file(to, content, private=True)


def _keys(folder: Path, zone: str, devices: Sequence[str]) -> dict[str, bytes]:
    """By name in the bundle."""
    places = {"edge": folder_of(folder, Identity("edge", zone))}
    if devices:
        found = [folder_of(folder, Identity("device", device)) for device in devices]
    else:
        found = sorted((folder / host_folder((zone,))).iterdir())
    places |= {f"devices/{place.name}": place for place in found}
    return {
        f"{name}/{file}": (place / file).read_bytes()
        for name, place in places.items()
        for file in ("ca.crt", "tls.crt", "tls.key")
    }


def _packed(files: Mapping[str, bytes], now: datetime) -> bytes:
    """The files as a tar; theirs alone who unpacks it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), 0o600, int(now.timestamp())
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
