"""What is said of long work: bars on a terminal, lines now and then without one."""

import io

from rich.console import Console

from console.progress import JobBars, QuietBars, told
from simulator.work import Work


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def works(*costs: float) -> list[Work]:
    return [Work(f"job {i}", "m:f", "", "g", cost) for i, cost in enumerate(costs)]


def test_without_a_terminal_there_is_a_line_at_every_tenth_with_the_time_left() -> None:
    screen, clock = Console(file=io.StringIO(), width=100), Clock()
    jobs = works(*[1.0] * 40)
    with JobBars(screen, clock) as bars:
        bars.stage("training", jobs, 10)
        for job in jobs:
            clock.now += 1
            bars.started(job)
            bars.advanced(job, 1, 2)
            bars.finished(job, "")
    lines = _lines(screen)
    assert lines[:3] == [
        "training: 50 jobs, 10 finished earlier ...",
        "training: 14 of 50 jobs, 36 s left",
        "training: 18 of 50 jobs, 32 s left",
    ]
    assert lines[-1] == "training: 50 of 50 jobs"
    assert len(lines) == 11


def test_without_a_terminal_a_long_job_is_heard_of_too() -> None:
    screen, clock = Console(file=io.StringIO(), width=100), Clock()
    (job,) = works(5.0)
    with JobBars(screen, clock) as bars:
        bars.stage("training", [job], 0)
        bars.started(job)
        for done in range(1, 100):
            clock.now += 7
            bars.advanced(job, done, 1000)
    lines = _lines(screen)
    assert lines[1] == "training: 0 of 1 job, 116 min left"
    assert len(lines) == 1 + 99 // 9  # a line in every 63 seconds


def test_a_costly_job_counts_for_more() -> None:
    screen, clock = Console(file=io.StringIO(), width=100), Clock()
    cheap, costly = works(1.0, 9.0)
    with JobBars(screen, clock) as bars:
        bars.stage("training", [cheap, costly], 0)
        clock.now = 10.0
        for job in (costly, cheap):
            bars.started(job)
        bars.finished(costly, "")
    assert _lines(screen)[-1] == "training: 1 of 2 jobs, 1 s left"


def test_a_reason_to_fail_is_told_once_and_as_it_is() -> None:
    screen = Console(file=io.StringIO(), width=100)
    jobs = works(1, 1, 1)
    with JobBars(screen) as bars:
        bars.stage("training", jobs, 0)
        for job in jobs:
            bars.started(job)
            bars.failed(job, "Traceback\n  in [this]\nKeyError: '[red]'")
    assert [line for line in _lines(screen) if "failed" in line] == ["failed: job 0: KeyError: '[red]'"]


def test_jobs_that_fail_at_once_are_not_counted_again_and_again() -> None:
    screen = Console(file=io.StringIO(), width=100)
    jobs = works(1, 1, 1)
    with QuietBars(screen, lambda: 0.0) as bars:
        bars.stage("training", jobs, 0)
        for job in jobs:
            bars.started(job)
            bars.failed(job, "no luck")
    assert _lines(screen) == ["training: 3 jobs ...", "training: 0 of 3 jobs"]


def test_a_terminal_has_bars_for_what_is_under_way() -> None:
    screen = Console(file=io.StringIO(), width=100, force_terminal=True)
    first, second = works(1, 1)
    with JobBars(screen, lambda: 0.0) as bars:
        bars.stage("training", [first, second], 0)
        bars.started(first)
        bars.finished(first, "")
        bars.started(second)
        bars._bars.refresh()
    written = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "job 1" in written
    assert "1 of 2 jobs" in written


def test_failures_are_told_by_reason() -> None:
    failures = {f"zone {i}": "no data" for i in range(7)} | {"other": "no luck"}
    assert told(failures).splitlines() == [
        "zone 0, zone 1, zone 2, zone 3, zone 4 and 2 more: no data",
        "other: no luck",
    ]


def _lines(screen: Console) -> list[str]:
    text: str = screen.file.getvalue()  # type: ignore[attr-defined]
    return text.splitlines()
