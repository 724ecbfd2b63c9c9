"""A service keeps the memory of one message for the next; pages are not asked of the kernel anew."""

import subprocess
import sys

import pytest

BURSTS = """
import resource, sys
import numpy as np
from sgfusion import heap
if sys.argv[1] == "keep":
    heap.keep_freed_memory(heap.EDGE)
def burst():
    for block in [np.empty(25_000, np.float32) for _ in range(40)]:
        block.fill(1.0)
burst()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    burst()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", BURSTS, how], check=True, capture_output=True, text=True, timeout=120)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own settings")
def test_bursts_of_vectors_take_their_pages_once() -> None:
    assert faults("keep") < 1_000
    assert faults("default") > 10_000
