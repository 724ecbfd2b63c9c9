"""Pools: the same work by each, whatever becomes of workers, and none left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.pool import ProcessPool
from simulator.work import Pool, Queue, ThisProcess
from tests.simulator.watchers import Record, chore

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


@pytest.fixture(params=[0, 1, 3], ids=["in process", "one worker", "three workers"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    made: Pool = ProcessPool(request.param) if request.param else ThisProcess()
    yield made
    made.close()


@pytest.fixture
def two() -> Iterator[ProcessPool]:
    made = ProcessPool(2)
    yield made
    made.close()


class TestEveryPool:
    def test_all_work_is_done_and_a_failure_is_that_of_one_piece(self, pool: Pool) -> None:
        record = Record()
        works = [chore(str(i), group=str(i % 2)) for i in range(6)]
        pool.run([*works, chore("no", "refuse"), chore("oops", "stumble")], record)
        assert record.results == {str(i): f"<{i}>" for i in range(6)}
        assert set(record.began) == {*record.results, "no", "oops"}
        assert record.failures["no"] == "no has no data"
        assert record.failures["oops"].startswith("Traceback")
        assert record.failures["oops"].endswith("ZeroDivisionError: integer division or modulo by zero")
        pool.run([chore("again")], record)
        assert record.results["again"] == "<again>"

    def test_no_work_is_no_work(self, pool: Pool) -> None:
        pool.run([], Record())


def test_a_worker_that_is_killed_costs_the_piece_it_was_at(two: ProcessPool) -> None:
    record = Record()
    works = [chore(f"fine {i}", cost=1) for i in range(4)]
    two.run([*works, chore("killed", "be_killed", cost=3), chore("left", "leave", "7", cost=2)], record)
    assert set(record.results) == {f"fine {i}" for i in range(4)}
    assert record.failures == {
        "killed": "its worker process was ended by SIGKILL (out of memory?)",
        "left": "its worker process ended with exit code 7",
    }


def test_a_worker_that_dies_with_nothing_to_do_costs_nothing(two: ProcessPool) -> None:
    record = Record()
    two.run([chore("a", "where"), chore("b", "where", group="h")], record)
    for name in ("a", "b"):
        pid = int(record.results[name].split()[0])
        os.kill(pid, signal.SIGKILL)
        _wait_until_gone(pid)
    two.run([chore("c"), chore("d", group="h")], record)
    assert (record.results["c"], record.results["d"]) == ("<c>", "<d>")
    assert not record.failures


def test_a_worker_keeps_its_group_from_run_to_run(two: ProcessPool) -> None:
    record = Record()
    two.run([chore("a", "where"), chore("b", "where", group="h")], record)
    two.run([chore(f"{group}{i}", "where", group=group) for i in range(3) for group in "gh"], record)
    homes = {name: result.split()[0] for name, result in record.results.items()}
    assert homes["a"] != homes["b"]
    assert {homes[f"g{i}"] for i in range(3)} == {homes["a"]} or {homes[f"h{i}"] for i in range(3)} == {homes["b"]}


def test_workers_take_one_thread_each(two: ProcessPool) -> None:
    record = Record()
    two.run([chore("t", "threads")], record)
    assert record.results == {"t": "1"}


# How work is handed out


def test_the_costliest_of_the_own_group_comes_first() -> None:
    queue = Queue([chore("a1", group="a", cost=1), chore("a9", group="a", cost=9), chore("b5", group="b", cost=5)])
    assert _taken(queue, "a") == "a9"
    assert _taken(queue, "a") == "a1"
    assert _taken(queue, "a") == "b5"
    assert queue.take("a", set()) is None


def test_a_worker_without_a_group_takes_the_one_with_the_most_left_that_no_other_has() -> None:
    works = [
        chore(f"{group}{i}", group=group, cost=cost) for group, cost in (("a", 3), ("b", 2), ("c", 1)) for i in "12"
    ]
    assert _taken(Queue(works), "").startswith("a")
    assert _taken(Queue(works), "", "a").startswith("b")
    assert _taken(Queue(works), "", "a", "b").startswith("c")
    assert _taken(Queue(works), "", "a", "b", "c").startswith("a")


def _taken(queue: Queue, group: str, *others: str) -> str:
    work = queue.take(group, set(others))
    assert work is not None
    return work.name


# No worker outlives its pool

LINGERING = """
import signal, sys
from simulator.pool import ProcessPool
from tests.simulator.watchers import Record, chore
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
    ProcessPool(2).run([chore(path, "linger") for path in sys.argv[1:]], Record())
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_in_the_midst_of_work_end_with_the_process_that_started_them(ending: int, tmp_path: Path) -> None:
    script = tmp_path / "lingering.py"
    script.write_text(LINGERING)
    files = [tmp_path / "a", tmp_path / "b"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen(
        [sys.executable, script, *files], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _wait_for(lambda: all(path.exists() for path in files))
        workers = [int(path.read_text()) for path in files]
        if ending == signal.SIGINT:
            os.killpg(parent.pid, ending)  # as a terminal does: to everyone
        else:
            parent.send_signal(ending)
        _, said = parent.communicate(timeout=PATIENCE)
        for pid in workers:
            _wait_until_gone(pid)
        assert said.count("Traceback") == (1 if ending == signal.SIGINT else 0)  # the script's own, no worker's
    finally:
        parent.kill()
        parent.wait()


def _wait_for(met: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < until
        time.sleep(0.02)


def _wait_until_gone(pid: int) -> None:
    def gone() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        except (FileNotFoundError, ProcessLookupError):
            return True
        return state == "Z" and threads == 1  # ended, not yet waited for; a thread that still ends has its files open

    _wait_for(gone)
