"""A device's answers: computed once, remembered within bounds, and an answer even if its task fails (architecture)."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device.answers import Answers
from device.compute import Compute
from device.main import Hosted, load_devices
from device.tasks.task import load_task
from device.virtual import VirtualDevice, released
from sgfusion.errors import BudgetExceededError, DataError, TaskError
from sgfusion.runfile import RunFile, parse_run_file
from sgfusion.wire.attending import Direction, Evaluated, Failed
from sgfusion.wire.device_rpc import Question
from sgfusion.wire.version import version
from tests.cluster.keys import run_async

RUN = """
name = "a"
seed = 1
rounds = 2
[task]
name = "linear"
[data]
source = "generated_zones"
devices = 2
samples = 6
features = 8
kinds = 2
contrast = 0.5
difference = 0.2
noise = 1.0
[zones]
names = ["ash", "birch"]
[histogram]
epsilon = "off"
"""


class Counting(Compute):
    """Counts what is computed; may be held up, or fail."""

    calls = 0
    failure: BaseException | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.free = threading.Event()
        self.free.set()

    def _with_learner(self, work: Any) -> Any:
        self.calls += 1
        assert self.free.wait(20)
        if self.failure is not None:
            raise self.failure
        return super()._with_learner(work)


def a_device(state: Path, answers: Answers | None = None) -> tuple[VirtualDevice, Counting, RunFile]:
    run = parse_run_file(RUN, ())
    task = load_task(run)
    (data, *_) = load_devices(run, task, Hosted(zones=("ash",)))
    compute = Counting(task, data.train, 1)
    device = VirtualDevice(
        run, task, data, compute=compute, answers=answers or Answers(), release=released(run, task, data, state)
    )
    return device, compute, run


def question(device: VirtualDevice, number: float = 0.0, kind: Any = "direction") -> Question:
    weights = None if kind == "initial" else np.full(device.hello.model.length, number, np.float32)
    return Question(f"{kind}-{number}", kind, weights)


def test_a_device_says_of_which_version_it_is(tmp_path: Path) -> None:
    device, *_ = a_device(tmp_path)
    assert device.hello.version == version()


def test_the_same_question_asked_twice_at_once_is_computed_once(tmp_path: Path) -> None:
    async def work() -> None:
        device, compute, _ = a_device(tmp_path)
        compute.free.clear()
        both = [asyncio.create_task(device.answer(question(device))) for _ in range(2)]
        await asyncio.sleep(0.05)
        both[0].cancel()  # its stream has ended: what it began goes on
        compute.free.set()
        found = await both[1]
        assert isinstance(found, Direction)
        assert found.gradients >= 1
        assert compute.calls == 1
        assert device._pending == {}

    run_async(work())


def test_a_question_that_comes_again_is_answered_from_memory(tmp_path: Path) -> None:
    async def work() -> None:
        device, compute, _ = a_device(tmp_path)
        first = await device.answer(question(device))
        assert await device.answer(question(device)) is first
        assert compute.calls == 1
        other = await device.answer(question(device, kind="evaluation"))
        assert isinstance(other, Evaluated)
        initial = await device.answer(question(device, kind="initial"))
        assert isinstance(initial, Direction)
        assert compute.calls == 3

    run_async(work())


def test_zones_that_ask_the_same_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """What is computed together has one name; a question has one whoever asks."""

    class Naming(Counting):
        async def run(self, question: str, work: Any) -> Any:
            names.append(question)
            return await super().run(question, work)

    async def work() -> None:
        run = parse_run_file(RUN, ())
        task = load_task(run)
        data = load_devices(run, task, Hosted())
        compute = Naming(task, data[0].train, 1)
        for part in data:
            release = released(run, task, part, tmp_path)
            device = VirtualDevice(run, task, part, compute=compute, answers=Answers(), release=release)
            await device.answer(question(device))

    names: list[str] = []
    run_async(work())
    assert names == ["ash/direction-0.0"] * 2 + ["birch/direction-0.0"] * 2


def test_an_answer_is_a_function_of_the_question(tmp_path: Path) -> None:
    """So a restarted device gives the same bytes."""

    async def work() -> None:
        found = []
        for folder in ("a", "b"):
            device, _, _ = a_device(tmp_path / folder)
            answer = await device.answer(question(device, 0.5))
            assert isinstance(answer, Direction)
            found.append((answer.vector.tobytes(), answer.loss, device.hello.histogram.tolist()))
        assert found[0] == found[1]

    run_async(work())


@pytest.mark.parametrize(
    "failure", [TaskError("no such weights"), RuntimeError("secret of the data"), StopIteration(), SystemExit(1)]
)
def test_a_failure_is_an_answer_and_is_tried_anew_next_time(tmp_path: Path, failure: BaseException) -> None:
    async def work() -> None:
        device, compute, _ = a_device(tmp_path)
        compute.failure = failure
        found = await device.answer(question(device))
        ours = isinstance(failure, TaskError)
        assert found == Failed("no such weights" if ours else "the device's task raised RuntimeError")
        compute.failure = None
        assert isinstance(await device.answer(question(device)), Direction)
        assert device._pending == {}

    run_async(work())


def direction(size: int) -> Direction:
    return Direction(np.zeros(size, np.float32))


def test_each_device_has_its_last_answers() -> None:
    answers = Answers(each=2)
    for number in range(3):
        answers.keep("ash/u1", f"q{number}", direction(1))
    answers.keep("ash/u2", "q0", direction(2))
    assert answers.get("ash/u1", "q0") is None
    assert answers.get("ash/u1", "q1") is not None
    assert answers.get("ash/u1", "q2") is not None
    found = answers.get("ash/u2", "q0")
    assert isinstance(found, Direction)
    assert len(found.vector) == 2
    answers.get("ash/u1", "q1")  # asked for again, so it stays longer
    answers.keep("ash/u1", "q3", direction(1))
    assert answers.get("ash/u1", "q2") is None
    assert answers.get("ash/u1", "q1") is not None


def test_memory_is_bounded_by_bytes() -> None:
    answers = Answers(each=100, bytes=40)
    for number in range(4):
        answers.keep("ash/u1", f"q{number}", direction(4))  # 16 bytes
    assert [answers.get("ash/u1", f"q{number}") is not None for number in range(4)] == [False, False, True, True]
    answers.keep("ash/u1", "large", direction(100))  # the last one is kept whatever its size
    assert answers.get("ash/u1", "large") is not None
    assert answers.get("ash/u1", "q3") is None
    answers.keep("ash/u1", "large", direction(1))  # in its place: what it took is free
    answers.keep("ash/u1", "q4", direction(4))
    assert answers.get("ash/u1", "large") is not None


def test_zones_and_devices_that_are_not_there_are_named() -> None:
    run = parse_run_file(RUN, ())
    task = load_task(run)
    with pytest.raises(DataError, match="zone 'elm' has no samples here: there are those of ash, birch"):
        load_devices(run, task, Hosted(zones=("elm",)))
    with pytest.raises(DataError, match=r"no samples of devices \['nobody'\]"):
        load_devices(run, task, Hosted(devices=("nobody",)))
    assert {part.zone for part in load_devices(run, task, Hosted())} == {"ash", "birch"}


def test_a_host_may_have_the_rows_of_its_own_device_alone(tmp_path: Path) -> None:
    """The run file is the same for all, and names zones that other hosts have."""
    rows = "\n".join(["phone,region,cadence,steps", *(f"p1,lake,{10 * row},{row}" for row in range(5))])
    (tmp_path / "mine.csv").write_text(rows, "utf-8")
    table = f'{{source="table", path="{tmp_path / "mine.csv"}", device="phone", zone="region", label="steps"'
    names = 'zones={names=["coast", "lake"], min_devices=2, min_samples=50}'
    run = parse_run_file(RUN, (f'data={table}, features=["cadence"]}}', names))
    task = load_task(run)
    for hosted in (Hosted(), Hosted(zones=("lake",)), Hosted(zones=("lake",), devices=("p1",))):
        assert [(part.zone, part.device) for part in load_devices(run, task, hosted)] == [("lake", "p1")]
    assert load_devices(run, task, Hosted(), ("coast", "lake"))  # whose edges are known besides
    with pytest.raises(DataError, match="--edge: zone 'costa' is not one of the run's: coast, lake"):
        load_devices(run, task, Hosted(), ("costa",))
    unnamed = parse_run_file(RUN, (f'data={table}, features=["cadence"]}}', "zones={min_devices=2}"))
    with pytest.raises(DataError, match="no zone is left: all 1 have fewer than 2 devices"):
        load_devices(unnamed, task, Hosted())  # who names none has those with enough, as everywhere
    with pytest.raises(DataError, match="zone 'coast' has no samples here: there are those of lake"):
        load_devices(run, task, Hosted(zones=("coast",)))
    other = parse_run_file(RUN, (f'data={table}, features=["cadence"]}}', 'zones={names=["coast"]}'))
    with pytest.raises(DataError, match=r"no zone of zones\.names has data here: the source has 'lake'"):
        load_devices(other, task, Hosted())


def test_a_new_release_has_new_numbers_costs_again_and_stays_within_the_budget(tmp_path: Path) -> None:
    run = parse_run_file(RUN, ("histogram={epsilon=0.5, budget=1.0}",))
    task = load_task(run)
    (data, *_) = load_devices(run, task, Hosted(zones=("ash",)))
    first, spent = released(run, task, data, tmp_path)
    assert spent == 0.5
    assert released(run, task, data, tmp_path).histogram.tolist() == first.tolist()
    second, spent = released(run, task, data, tmp_path, "spring")
    assert spent == 1.0
    assert second.tolist() != first.tolist()
    assert released(run, task, data, tmp_path, "spring").histogram.tolist() == second.tolist()
    with pytest.raises(BudgetExceededError, match=r"would exceed the budget of 1\.0"):
        released(run, task, data, tmp_path, "summer")
