"""Torch runs with one thread in whatever thread a learner is used, and answers to one question go out together."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device import compute as module
from device.compute import Compute
from device.samples import Samples
from device.tasks.task import load_task
from sgfusion.runfile import load_run_file
from tests.cluster.keys import run_async

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
asyncio.run(compute.run("q", lambda learner: learner.gradient(theta, batch)))
print(psutil.Process().num_threads() - before)
"""


def test_a_thread_of_the_pool_has_no_helpers() -> None:
    """In a process of its own: here other tests may have started torch's helper threads already."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"  # the pool's own


def a_pool(threads: int = 1) -> Compute:
    x = np.zeros((2, 24, 3), np.float32)
    like = Samples(x, x[..., 0], np.zeros((2, 24, 5), np.float32))
    return Compute(load_task(load_run_file(ROOT / "experiments/demo.toml")), like, threads)


class Gates:
    """Work that is done when it is let through, by number."""

    def __init__(self, count: int) -> None:
        self.open = [threading.Event() for _ in range(count)]

    def work(self, number: int) -> Callable[[Any], int]:
        def pass_through(_learner: Any) -> int:
            assert self.open[number].wait(20)
            return number

        return pass_through


def test_results_of_one_question_are_handed_over_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD", 1_000.0)

    async def work() -> None:
        pool, gates = a_pool(), Gates(4)
        same = [asyncio.create_task(pool.run("q", gates.work(number))) for number in (0, 1)]
        other = asyncio.create_task(pool.run("r", gates.work(2)))
        last = asyncio.create_task(pool.run("q", gates.work(3)))
        await asyncio.sleep(0)
        for number in (0, 1, 2):
            gates.open[number].set()
        assert await other == 2  # it waits for nobody else's question, though it was done after the first two
        assert not any(task.done() for task in (*same, last))
        gates.open[3].set()
        assert await last == 3
        assert [task.done() and task.result() for task in same] == [0, 1]
        assert pool._questions == {}
        pool.close()

    run_async(work())


@pytest.mark.parametrize("limit", ["HELD", "HELD_BYTES"])
def test_a_result_is_not_held_for_long_and_a_large_one_not_at_all(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD", 1_000.0)
    monkeypatch.setattr(module, limit, 0)

    async def work() -> None:
        pool, gates = a_pool(), Gates(2)
        first, second = (asyncio.create_task(pool.run("q", gates.work(number))) for number in (0, 1))
        gates.open[0].set()
        assert await first == 0
        assert not second.done()
        gates.open[1].set()
        assert await second == 1
        pool.close()

    run_async(work())


def test_results_do_not_wait_for_work_that_hangs() -> None:
    async def work() -> None:
        pool, gates = a_pool(threads=2), Gates(3)
        hangs, *others = (asyncio.create_task(pool.run("q", gates.work(number))) for number in (0, 1, 2))
        await asyncio.sleep(0)
        gates.open[1].set()
        gates.open[2].set()
        assert await asyncio.gather(*others) == [1, 2]
        assert not hangs.done()
        gates.open[0].set()
        assert await hangs == 0
        pool.close()

    run_async(work())


def test_an_error_and_a_waiter_that_has_left_do_not_hold_up_the_others() -> None:
    def fails(_learner: Any) -> int:
        raise ZeroDivisionError

    async def work() -> None:
        pool, gates = a_pool(), Gates(2)
        leaves = asyncio.create_task(pool.run("q", gates.work(0)))
        failing = asyncio.create_task(pool.run("q", fails))
        stays = asyncio.create_task(pool.run("q", gates.work(1)))
        await asyncio.sleep(0)
        leaves.cancel()
        for gate in gates.open:
            gate.set()
        assert await stays == 1
        with pytest.raises(ZeroDivisionError):
            await failing
        assert leaves.cancelled()
        pool.close()

    run_async(work())
