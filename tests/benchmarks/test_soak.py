"""Memory that grows is found, memory that jumps is not taken for it, and a real cluster can be looked at."""

import pytest

from benchmarks import soak as module
from benchmarks.soak import Memory, main, measured, soak, soak_run

TIMES = tuple(10.0 * n for n in range(101))


def rising(by: float, start: float = 80.0) -> Memory:
    return Memory("edge-ash", TIMES, tuple(start + by * at / 1000 for at in TIMES), 1234)


@pytest.mark.parametrize(
    ("memory", "flat"),
    [
        (rising(0.0), True),
        (rising(2.9), True),
        (rising(3.1), False),
        (rising(-50.0), True),
        (rising(5.9, start=200.0), True),  # 3 % of 200
        (rising(6.1, start=200.0), False),
    ],
)
def test_growth_is_judged_by_megabytes_or_by_share_whichever_allows_more(memory: Memory, flat: bool) -> None:
    assert memory.flat is flat


def test_a_jump_is_not_a_slope() -> None:
    jumps = tuple(80.0 + (5.0 if n % 2 else 0.0) for n in range(101))
    assert Memory("cloud", TIMES, jumps).flat


def test_a_row_says_how_much_and_how_fast() -> None:
    assert rising(2.0).row() == ("edge-ash", "80.0", "82.0", "+2.00", "+7.2", "1,234", "flat")
    assert rising(4.0).row()[-1] == "grows"


def test_what_happens_while_it_warms_up_does_not_count() -> None:
    samples = [(0.0, {"cloud": 10.0}), (1.0, {"cloud": 90.0}), (2.0, {"cloud": 91.0})]
    assert measured(samples, 1.0, {}) == [Memory("cloud", (1.0, 2.0), (90.0, 91.0))]
    with pytest.raises(SystemExit, match="run for longer"):
        measured(samples, 2.0, {})


@pytest.mark.parametrize(("by", "code"), [(0.5, 0), (9.0, 1)])
def test_a_process_that_grows_is_the_exit_code(
    by: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "soak", lambda *_: [rising(by), rising(0.0)])
    assert main(["--minutes", "1", "--no-limits"]) == 0
    assert main(["--minutes", "1"]) == code
    assert ("grows" in capsys.readouterr().out) is bool(code)


def test_every_process_of_a_real_cluster_is_looked_at() -> None:
    found = {memory.process: memory for memory in soak(soak_run(2), seconds=4, every=0.5)}
    assert list(found) == ["cloud", "edge-z00", "edge-z01", "devices-0"]
    assert all(min(memory.megabytes) > 20 for memory in found.values())
    assert found["edge-z00"].rounds > 0
    assert found["edge-z01"].rounds > 0
