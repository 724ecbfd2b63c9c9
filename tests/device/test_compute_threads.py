"""A learner that one thread made and another uses gives the bits of one thread: torch's threads are each thread's own."""

import asyncio

import numpy as np
import torch

from device.batch import batch_of
from device.compute import Compute
from device.learner import Learner
from device.local_data import device_data
from device.sources.source import open_source
from device.tasks.task import load_task
from sgfusion.runfile import parse_run_file

RUN = """
name = "hearts"
seed = 1
rounds = 1
[task]
name = "heart_rate"
size = "small"
[data]
source = "synthetic_heart_rate"
country = "poland"
share = 0.3
length = 24
"""


def test_an_lstms_gradient_off_the_event_loop_has_the_bits_of_one_thread() -> None:
    run = parse_run_file(RUN)
    task, source = load_task(run), open_source(run)
    zone = source.zones()[0]
    samples = device_data(task, source, zone, source.devices(zone)[0]).train
    learner = Learner(task, samples)
    theta, batch = learner.initial(1), batch_of(samples)
    expected = learner.gradient(theta, batch)
    compute = Compute(task, samples, threads=1)
    torch.set_num_threads(1)
    try:
        found = asyncio.run(compute.run(lambda own: own.gradient(theta, batch)))
    finally:
        compute.close()
    np.testing.assert_array_equal(found, expected)
