"""A pool of processes on this machine.

Not the standard library's: there the death of one process fails the work of all. Here a worker that is killed costs the
one piece it was at, and another takes its place. Workers end when this process does, however it ends.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait

from simulator.work import Queue, Watcher, Work, attempt, paced

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def cores() -> int:
    """The cores that this process may use, which in a container are not all there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """A process and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, far_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(far_end,), daemon=True)
        self.group = ""
        resource_tracker.ensure_running()  # it unblocks SIGINT as it starts
        # A Ctrl-C is for this process, which then ends its workers: they are born with it blocked.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        far_end.close()

    def begin(self, work: Work) -> bool:
        """Hand it over; False if the worker is no more."""
        try:
            self.connection.send_bytes(json.dumps([work.function, work.text]).encode())
        except OSError:
            return False
        self.group = work.group
        return True

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class ProcessPool:
    """`workers` processes, started as there is work for them."""

    def __init__(self, workers: int) -> None:
        self._most = workers
        self._workers: list[_Worker] = []

    def run(self, works: Iterable[Work], watcher: Watcher) -> None:
        """Do it all; whatever interrupts it (Ctrl-C, a full disk) ends the workers."""
        queue = Queue(works)
        busy: dict[_Worker, Work] = {}
        try:
            while True:
                while len(busy) < self._most and self._hand_out(queue, busy, watcher):
                    pass
                if not busy:
                    return
                ready = wait([worker.connection for worker in busy])
                for worker in [worker for worker in busy if worker.connection in ready]:
                    self._hear(worker, busy, watcher)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the workers, at once."""
        while self._workers:
            self._workers.pop().end()

    def _hand_out(self, queue: Queue, busy: dict[_Worker, Work], watcher: Watcher) -> bool:
        idle = [worker for worker in self._workers if worker not in busy]
        others = {work.group for work in busy.values()}
        work = queue.take(idle[0].group if idle else "", others | {worker.group for worker in idle[1:]})
        if work is None:
            return False
        worker = idle[0] if idle else self._started()
        while not worker.begin(work):  # it died while it had nothing to do: not this work's doing
            self._drop(worker)
            worker = self._started()
        busy[worker] = work
        watcher.started(work)
        return True

    def _hear(self, worker: _Worker, busy: dict[_Worker, Work], watcher: Watcher) -> None:
        work = busy[worker]
        try:
            kind, *rest = json.loads(worker.connection.recv_bytes())
        except (EOFError, OSError):
            del busy[worker]
            watcher.failed(work, self._drop(worker))
            return
        if kind == "advanced":
            watcher.advanced(work, *rest)
            return
        del busy[worker]
        if kind == "finished":
            watcher.finished(work, *rest)
        else:
            watcher.failed(work, *rest)

    def _started(self) -> _Worker:
        worker = _Worker()
        self._workers.append(worker)
        return worker

    def _drop(self, worker: _Worker) -> str:
        """Forget a worker that is no more; why it is not."""
        self._workers.remove(worker)
        worker.process.join(5)
        code = worker.process.exitcode
        worker.end()
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            hint = " (out of memory?)" if name == "SIGKILL" else ""
            return f"its worker process was ended by {name}{hint}"
        return f"its worker process ended with exit code {code}"


def _serve(connection: Connection) -> None:
    """A worker's life: a piece of work at a time, until the pipe closes."""
    for name in THREADS:  # before anything that reads them is imported: workers share the cores already
        os.environ[name] = "1"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, text = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        result, reason = attempt(function, text, paced(lambda done, of: _send(connection, "advanced", done, of)))
        if result is None:
            _send(connection, "failed", reason)
        else:
            _send(connection, "finished", result)


def _send(connection: Connection, *message: object) -> None:
    with suppress(OSError):  # nobody there any more: the next receive finds it out
        connection.send_bytes(json.dumps(message).encode())


def _end_with_parent() -> None:
    """End this process when its parent has, in the midst of work too: nobody is left to take the result."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
