"""Permissions that count for root too."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")
_VERSION = 0x20080522
_OF_ROOT = 0b110 | 1 << 10
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_NET_BIND_SERVICE."""


def without_rights(do: Callable[[], Result]) -> Result:
    """In a thread to which, and to those that it starts, no folder is open against its permissions, and no port
    of the system: Linux keeps root's capabilities by thread, so the others keep theirs.
    """
    if os.geteuid() != 0:
        return do()
    with ThreadPoolExecutor(1, initializer=_drop) as thread:
        return thread.submit(do).result()


def _drop() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~_OF_ROOT  # of effective ones, the first 32
    assert libc.capset(header, sets) == 0
