"""The bare side does what the cluster did; no more, no less."""

from dataclasses import replace

import pytest

from benchmarks import overhead as module
from benchmarks.overhead import Host, Work, overhead, work_of
from sgfusion.errors import UnavailableError
from sgfusion.evaluation import Score
from sgfusion.reports import RoundRecord, ZoneEvaluation, ZoneRecords
from sgfusion.zone_trainer import RoundReport
from tests.cluster.harness import run_of

TWO = ('zones.names=["ash","birch"]', "rounds=60", "evaluation.every=20")


def report(round: int, zone: int, *drawn: int) -> RoundRecord:
    even = dict.fromkeys(drawn, 1.0 / max(1, len(drawn)))
    return RoundRecord(RoundReport(zone, round, drawn, even, {}, 0.1, 1.0, even, 1.0, 0.1), {}, 1, 1, 0.0)


def test_a_direction_is_counted_for_whoever_computed_it() -> None:
    done = ZoneEvaluation(0, Score(1.0, 1), Score(1.0, 1), best=True)
    records = [
        ZoneRecords("ash", (report(1, 0, 1), report(2, 0)), (done,), 1, 1),
        ZoneRecords("birch", (report(1, 1), report(2, 1, 0)), (done, done), 1, 1),
    ]
    assert work_of(records) == Work({"ash": 3, "birch": 3}, {"ash": 1, "birch": 2})


def test_a_run_that_left_somebody_out_is_no_figure() -> None:
    lost = replace(report(1, 0), devices_left_out={"d1": "late"})
    with pytest.raises(UnavailableError, match="round 1 of ash left somebody out"):
        work_of([ZoneRecords("ash", (lost,), (), 1, 1)])


def test_a_bare_host_computes_each_direction_of_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    host, computed = Host(run_of(*TWO), ["birch"]), []
    monkeypatch.setattr(module, "device_direction", lambda _learner, _theta, batch, _update: computed.append(batch))
    host.do(Work({"ash": 100, "birch": 4}, {"ash": 100}))
    assert len(computed) == 4 * 3  # devices
    assert len({id(batch) for batch in computed}) == 3


def test_both_sides_are_measured() -> None:
    wall, cpu = overhead(run_of(*TWO), turns=1)
    assert min(wall.ours + wall.bare) > 0
    assert min(cpu.ours + cpu.bare) > 0
