"""How long a stage will take, as it is foreseen of its first job: cases that are worked out by hand."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from console import simulate
from console.unfinished import UnfinishedRun
from sgfusion.runfile import load_run_file
from simulator.work import Work
from tests.simulator.tiny_suite import write_suite


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_suite(tmp_path)
    return tmp_path


class Stage:
    """Jobs on a clock of its own, some of them finished before; what is foretold."""

    def __init__(self, folder: Path, costs: list[float], *, before: int = 0) -> None:
        self.works = [Work(f"z{n}", "f", "", "", cost) for n, cost in enumerate(costs)]
        names = {work.name: work.name for work in self.works}
        self.told: list[float] = []
        self._now = 0.0
        kept = UnfinishedRun(folder, load_run_file(folder / "tiny.toml"), "sgeofl")
        self.bars = simulate._Collector(Console(file=io.StringIO()), kept, names)
        self.bars._clock = lambda: self._now
        self.bars.stage("SGeoFL", self.works, before)

    def first(self, seconds: float) -> list[float]:
        """What is foretold while the first job takes so long, a second at a time and at its end."""
        work = self.works[0]
        self.bars.started(work)
        while self._now + 1 < seconds:
            self._now += 1
            self.bars.advanced(work, int(self._now), int(seconds))
        self._now = seconds
        self.bars.finished(work, "{}")
        return self.told


@pytest.mark.parametrize(
    ("cores", "jobs", "seconds", "foreseen"),
    [
        (2, 2, 60.0, 120.0),  # one is left, for which no pool is started: 60 + 60
        (2, 100, 1.0, 50.5),  # known when the first has ended: 1 + 99 / 2
        (16, 4, 60.0, 120.0),  # three are left, for three of the cores: 60 + 180 / 3
        (3, 4, 20.0, 40.0),  # 20 + 60 / 3
        (2, 5, 60.0, 180.0),  # 60 + 240 / 2
        (2, 11, 2.0, 22.0),  # 20 s are not worth a pool: 2 + 20
        (2, 1, 30.0, 30.0),
    ],
)
@pytest.mark.parametrize("before", [0, 5])  # jobs whose results are kept take no time
def test_the_first_job_says_how_long_all_will_take(  # noqa: PLR0917 (of a table)
    cores: int, jobs: int, seconds: float, foreseen: float, before: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "cores", lambda: cores)
    stage = Stage(folder, [2.0] * jobs, before=before)
    stage.bars.foresee(None, stage.told.append)
    assert stage.first(seconds) == [pytest.approx(foreseen)]


def test_jobs_count_by_their_cost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "cores", lambda: 2)
    stage = Stage(folder, [4.0, 3.0, 1.0])
    stage.bars.foresee(None, stage.told.append)
    assert stage.first(40.0) == [pytest.approx(40 + (30 + 10) / 2)]


@pytest.mark.parametrize(("workers", "foreseen"), [(1, 80.0), (2, 40.0), (9, 20.0)])
def test_with_a_number_of_workers_all_begin_at_once(workers: int, foreseen: float, folder: Path) -> None:
    stage = Stage(folder, [1.0] * 4)
    stage.bars.foresee(workers, stage.told.append)
    assert stage.first(20.0) == [pytest.approx(foreseen)]


def test_what_waits_for_a_pool_to_start_says_nothing(folder: Path) -> None:
    stage = Stage(folder, [1.0] * 100)
    stage.first(1.0)
    stage.bars.foresee(None, stage.told.append)
    stage.bars.started(stage.works[1])
    stage._now = 11.0
    stage.bars.advanced(stage.works[1], 1, 10)
    assert stage.told == []
