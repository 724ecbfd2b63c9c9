"""How much freed memory a service keeps for its next message.

By default glibc takes large blocks from the kernel and gives them back as soon as they are freed, and the heap's end
with them. A service that does the same all day, exchanging vectors or computing gradients, then has the kernel clear
the same pages again and again: a tenth to a quarter of an LSTM's gradient, by measurement.
"""

import ctypes

EDGE = 32 << 20
"""Bytes that an edge keeps: what some tens of small models take, or a large one's chunks."""
HOST = 256 << 20
"""Bytes that a host of devices keeps: what an LSTM's gradient takes beside torch itself."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h


def keep_freed_memory(kept: int) -> None:
    """Up to so many bytes at the end of each of this process's heaps, where the C library is glibc; else nothing.

    A block of more than an eighth of it is the kernel's at once when it is freed: a large model's memory goes back.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, kept // 8)
        mallopt(_TRIM_THRESHOLD, kept)
