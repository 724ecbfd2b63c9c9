"""Gradients and evaluations for many virtual devices in one process, off the event loop.

One learner a thread: it has one set of weights. Threads are as many as the process may use cores; torch itself runs
with one. A stream never waits for torch.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from device.learner import Learner
from device.samples import Samples
from device.tasks.task import Task

Result = TypeVar("Result")


class Compute:
    """A pool of learners for samples of one shape."""

    def __init__(self, task: Task, like: Samples, threads: int) -> None:
        self._task, self._like = task, like
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="learner")
        self.learner = Learner(task, like)
        """For what is known of the model before anything is computed."""

    async def run(self, work: Callable[[Learner], Result]) -> Result:
        """What `work` gives with a learner that nobody else has meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._with_learner, work)

    def _with_learner(self, work: Callable[[Learner], Result]) -> Result:
        learner: Learner | None = getattr(self._own, "learner", None)
        if learner is None:
            learner = self._own.learner = Learner(self._task, self._like)
        return work(learner)

    def close(self) -> None:
        """Drop what is not begun; what is ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
