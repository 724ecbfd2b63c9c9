"""Torch runs with one thread in whatever thread a learner is used."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, sys
import numpy as np, psutil
from device.batch import batch_of
from device.compute import Compute
from device.samples import Samples
from device.tasks.task import load_task
from sgfusion.runfile import load_run_file

def samples(n):
    random = np.random.default_rng(1)
    x, y, context = (random.random((n, 24, width), np.float32) for width in (3, 1, 5))
    return Samples(x, y[..., 0], context)

task = load_task(load_run_file("experiments/demo.toml"))
compute = Compute(task, samples(2), threads=1)
batch, theta = batch_of(samples(64)), np.zeros(compute.length, np.float32)
before = psutil.Process().num_threads()
asyncio.run(compute.run(lambda learner: learner.gradient(theta, batch)))
print(psutil.Process().num_threads() - before)
"""


def test_a_thread_of_the_pool_has_no_helpers() -> None:
    """In a process of its own: here other tests may have started torch's helper threads already."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"  # the pool's own
