"""What takes long and is only looked at is made once a run of tests, whichever of its workers comes first."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def of_all_workers(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of tests: that in which its workers have theirs; without workers, its only one."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def alone(shared: Path, name: str) -> Iterator[None]:
    """While no other worker is here."""
    with (shared / f"{name}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(shared: Path, name: str, make: Callable[[Path], object]) -> Path:
    """The folder of that name with what `make` writes into it. One that failed is begun anew by who comes next."""
    with alone(shared, name):
        made = shared / f"{name}-made"
        if not made.exists():
            tries = len(list(shared.glob(f"{name}-try-*")))
            begun = shared / f"{name}-try-{tries}"
            begun.mkdir()
            make(begun)
            made.symlink_to(begun, target_is_directory=True)
        return made.resolve()
