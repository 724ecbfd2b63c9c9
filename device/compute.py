"""Gradients and evaluations for many virtual devices in one process, off the event loop.

A learner has one set of weights, so one thread at a time has it. Threads are as many as the process may use cores;
torch itself runs with one. A stream never waits for torch.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TypeVar

import torch

from device.learner import Learner
from device.samples import Samples
from device.tasks.task import Task

Result = TypeVar("Result")


class Compute:
    """A pool of learners for samples of one shape."""

    def __init__(self, task: Task, like: Samples, threads: int) -> None:
        self._task, self._like = task, like
        # A thread's own setting: a learner that was made in another thread does not bring its own, and torch's helper
        # threads, of which each thread would have as many as cores, take thirty times the time on a busy machine.
        self._pool = ThreadPoolExecutor(threads, "learner", initializer=torch.set_num_threads, initargs=(1,))
        self._idle: SimpleQueue[Learner] = SimpleQueue()
        first = Learner(task, like)
        self.fingerprint, self.length = first.fingerprint, first.size
        self._idle.put(first)

    async def run(self, work: Callable[[Learner], Result]) -> Result:
        """What `work` gives with a learner that nobody else has meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._with_learner, work)

    def _with_learner(self, work: Callable[[Learner], Result]) -> Result:
        try:
            learner = self._idle.get_nowait()
        except Empty:
            learner = Learner(self._task, self._like)
        try:
            return work(learner)
        finally:
            self._idle.put(learner)

    def close(self) -> None:
        """Drop what is not begun; what is ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
