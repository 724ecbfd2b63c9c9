"""Gradients and evaluations for many virtual devices in one process, off the event loop.

A learner has one set of weights, so one thread at a time has it. Threads are as many as the process may use cores;
torch itself runs with one. A stream never waits for torch.

An edge asks all its devices the same and goes on when it has all answers, so those that come soon after each other are
handed over together: it then wakes once for many of them, and not once for each. A wake-up costs more than an answer.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import torch

from device.learner import Learner
from device.measures import DeviceMeasures
from device.samples import Samples
from device.tasks.task import Task

Result = TypeVar("Result")

HELD = 0.25
"""Seconds for which a result may wait for others of the same question: little beside any deadline."""
HELD_BYTES = 1 << 20
"""Of results that wait: larger ones take time to send, and that should go on beside the computing of the next."""


@dataclass
class _Done:
    """What came of one piece of work, and who waits for it."""

    waiter: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def hand_over(self) -> None:
        if self.waiter.done():  # nobody waits any more
            return
        if self.error is None:
            self.waiter.set_result(self.result)
        else:
            self.waiter.set_exception(self.error)


@dataclass
class _Together:
    """The work of one zone's question. Invariant: while results wait, some of it is to be done yet and a timer runs."""

    left: int = 0
    done: list[_Done] = field(default_factory=list)


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
        self._questions: dict[str, _Together] = {}
        self._waiting = self._running = 0  # pieces of work
        self._lock = threading.Lock()  # for these: the event loop adds work, threads take it off
        self.measures = DeviceMeasures()
        """Who is told of the host's work."""

    async def run(self, question: str, work: Callable[[Learner], Result]) -> Result:
        """What `work` gives with a learner that nobody else has meanwhile; with others' of the same question."""
        waiter: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._questions.setdefault(question, _Together()).left += 1
            self._waiting += 1
        self._pool.submit(self._do, question, work, waiter, time.monotonic())
        return await waiter

    def queue(self) -> dict[str, int]:
        """Pieces of work that wait for a thread, and that have one."""
        return {"waiting": self._waiting, "running": self._running}

    def _do(self, question: str, work: Callable[[Learner], Any], waiter: asyncio.Future[Any], since: float) -> None:
        self.measures.took("queueing", time.monotonic() - since)
        with self._lock:
            self._waiting -= 1
            self._running += 1
        done = _Done(waiter)
        try:
            done.result = self._with_learner(work)
        except (StopIteration, SystemExit) as error:  # a task is anybody's code; no future can hold these
            done.error = RuntimeError(f"a task raised {type(error).__name__}")
        except BaseException as error:  # noqa: BLE001 (it is the waiter's)
            done.error = error
        with self._lock:
            self._running -= 1
            together = self._questions[question]
            together.left -= 1
            together.done.append(done)
            whole = not together.left
            if whole:
                del self._questions[question]
            first = len(together.done) == 1
            large = len(together.done) * self.length * 4 >= HELD_BYTES
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            if whole or large:
                waiter.get_loop().call_soon_threadsafe(self._hand_over, together)
            elif first:
                waiter.get_loop().call_soon_threadsafe(self._hand_over_later, together)

    def _hand_over_later(self, together: _Together) -> None:
        """The rest may be long in coming, or never come: a task may hang."""
        asyncio.get_running_loop().call_later(HELD, self._hand_over, together)

    def _hand_over(self, together: _Together) -> None:
        with self._lock:
            ready, together.done = together.done, []
        for done in ready:
            done.hand_over()

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
