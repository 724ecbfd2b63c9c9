"""This host: its clock, room on disk, memory, and how many files a process may open."""

import os
import resource
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from console.doctor.findings import Finding, broken, look, ok

GIB = 1 << 30
SCARCE_DISK, LEAST_DISK = 2 * GIB, GIB // 10
SCARCE_MEMORY = GIB
"""A host of devices takes 300 MB with torch, a cloud or an edge 100."""
FEW_FILES = 4096
"""An edge has a connection for each device and peer; services raise their own limit to the hard one."""
RELEASED = datetime(2026, 11, 1, tzinfo=UTC)
"""No clock is right that is before this version."""


@dataclass(frozen=True)
class Folder:
    """Where results or state go; `unwritable` is why nothing can be written there, empty if it can."""

    path: Path
    free: int
    unwritable: str = ""
    there: bool = True
    """Else the nearest one above it was looked at."""


@dataclass(frozen=True)
class Host:
    """Facts of the machine; None is what it does not tell."""

    now: datetime
    memory: int | None
    files: int | None
    """The hard limit; None is no limit."""
    folders: Sequence[Folder]


def look_at_host(paths: Sequence[Path]) -> Host:
    """The folders need not be there."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = None if hard == resource.RLIM_INFINITY else hard
    return Host(datetime.now(UTC), _available(), files, [look_at_folder(path) for path in paths])


def look_at_folder(path: Path) -> Folder:
    """By writing something: permissions alone do not tell of a full, frozen or read-only file system."""
    place = path.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    there = place == path.absolute()
    space = os.statvfs(place)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        return Folder(path, space.f_bavail * space.f_frsize, error.strerror or str(error), there)
    return Folder(path, space.f_bavail * space.f_frsize, there=there)


def host_findings(seen: Host) -> list[Finding]:
    """Clock, disk, memory, files."""
    found = []
    if seen.now < RELEASED:
        found.append(
            broken(
                "clock",
                f"it is {seen.now:%Y-%m-%d %H:%M} UTC here, before this version was made",
                "set this host's clock; is its time kept by NTP?",
            )
        )
    else:
        # The line that a cloud's clock gets is another: this one must not pass for a comparison with somebody's.
        found.append(ok("clock", f"{seen.now:%Y-%m-%d %H:%M:%S} UTC, compared with nothing but this version's date"))
    disks = [finding for folder in seen.folders for finding in _disk(folder)]
    return [*found, *disks, *_memory(seen.memory), *_files(seen.files)]


def _disk(folder: Folder) -> list[Finding]:
    said = f"{_size(folder.free)} free for {folder.path}{'' if folder.there else ', which is not there yet'}"
    if folder.unwritable:
        return [
            broken(
                "disk",
                f"nothing can be written to {folder.path}: {folder.unwritable}",
                "make room, look as the user whose folder it is, let this one write there, or choose another with --out"
                " or --state",
            )
        ]
    if folder.free < LEAST_DISK:
        return [broken("disk", said, "make room: checkpoints and results would not fit")]
    if folder.free < SCARCE_DISK:
        return [look("disk", said, "make room before a long run: each zone keeps two checkpoints and its rounds")]
    return [ok("disk", said)]


def _memory(available: int | None) -> list[Finding]:
    if available is None:
        return [ok("memory", "not told by this system")]
    said = f"{_size(available)} available"
    if available < SCARCE_MEMORY:
        return [look("memory", said, "a host of devices takes 300 MB, an edge 100: fewer --hosts, or another machine")]
    return [ok("memory", said)]


def _files(limit: int | None) -> list[Finding]:
    said = "no limit" if limit is None else f"a process may open {limit:,}"
    if limit is not None and limit < FEW_FILES:
        return [look("files", said, f"raise the hard limit (ulimit -Hn {FEW_FILES}): each device and peer is one")]
    return [ok("files", said)]


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count >> 20} MiB"


def _available() -> int | None:
    """Linux's own estimate of what can be had without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(found["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in found else None
