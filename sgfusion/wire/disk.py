"""How full a disk is, for who must not wait for it: a disk that hangs (a lost network share, say) holds up a thread."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

WITHIN = 1.0
"""Seconds for the disk to answer: little beside the ten that Prometheus waits for a scrape."""


@dataclass(frozen=True)
class Space:
    """Of a file system, in bytes."""

    free: int
    size: int


def space_of(folder: Path) -> Space | None:
    """Of the file system where the folder is, or would be; None if it cannot be asked."""
    try:
        found = os.statvfs(next(place for place in (folder, *folder.absolute().parents) if place.exists()))
    except OSError:
        return None
    return Space(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


class Disk:
    """One folder's. Not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: Space | None = None
        self._look: threading.Thread | None = None

    def space(self) -> Space | None:
        """As it is now, or as it last was if the disk does not answer in time; None before the first answer."""
        if self._look is None or not self._look.is_alive():  # never a second thread beside one that hangs
            # A daemon: a process that ends does not wait for its disk.
            self._look = threading.Thread(target=self._see, name="disk", daemon=True)
            self._look.start()
        self._look.join(WITHIN)
        return self._known

    def _see(self) -> None:
        self._known = space_of(self._folder)
