"""Zones whose edges do not answer, before their leases run out: said only if others wait for them too."""

from dataclasses import replace

import pytest

from cloud.coordinator import resumed, tick
from cloud.metrics import STATE, ZONES, of_zones
from cloud.status import run_status
from sgfusion.plan import ZoneState
from sgfusion.waiting import Waiting
from tests.cloud.coordinated import Run
from tests.cloud.values import NAMES


@pytest.fixture
def training(planned: Run) -> Run:
    """All zones train, and report every second."""
    for name in NAMES:
        planned.report(name)
    planned.pass_time(20, alive=NAMES)
    return planned


def silent(run: Run, name: str = "birch", seconds: float = 10) -> list[float]:
    """Seconds after which the zone does not answer, by halves, if all others go on; ash waits for it from 3 s on."""
    began, since = run.now, []
    while (after := run.now - began) < seconds:
        run.now += 0.5
        wait = Waiting(7, after + 0.5, (run.state.zones[name].number,)) if after >= 3 else None
        for other in NAMES:
            if other != name:
                run.report(other, waiting=wait if other == "ash" else None)
        run.take(tick(run.state, run.now))
        if run.state.zones[name].unanswering:
            since.append(run.now - began)
    return since


def test_a_zone_that_others_wait_for_and_that_is_silent_does_not_answer(training: Run) -> None:
    assert silent(training)[0] == 3.5, "as soon as anybody waits for it"
    status = run_status(training.state, training.now, {}, "")
    assert status.zones[1].standing == "not answering"
    metrics = dict(of_zones(status))
    assert {key for key, value in metrics[ZONES].items() if value} == {("training",), ("not answering",)}
    assert [state for (zone, state), value in metrics[STATE].items() if zone == "birch" and value] == ["not answering"]
    training.report("ash")
    training.take(tick(training.state, training.now + 0.5))
    assert training.state.zones["birch"].unanswering, "nobody waits any more, and nothing is heard of it either"
    change = training.report("birch")
    assert [zone.name for zone in change.zones] == ["birch"], "whoever looks has to hear of it"
    assert run_status(training.state, training.now, {}, "").zones[1].standing == "training"


def test_who_reports_or_is_waited_for_by_nobody_is_not_blamed(training: Run) -> None:
    training.report("ash", waiting=Waiting(7, 30.0, (1,)))
    for _ in range(20):
        training.now += 1
        for name in NAMES:
            training.report(name, waiting=training.state.zones[name].waiting)
        assert not training.take(tick(training.state, training.now)).zones
    training.report("ash")
    training.pass_time(14, alive=("ash", "cedar", "elm", "fir"))
    assert not training.state.zones["birch"].unanswering


def test_a_zone_that_is_silent_for_long_between_reports_has_twice_as_long(training: Run) -> None:
    for _ in range(4):
        training.pass_time(4, alive=("ash", "cedar", "elm", "fir"))
        training.report("birch")
    assert silent(training, seconds=12)[0] == 8.5


def test_a_zone_that_has_said_what_it_waits_for_is_silent_until_its_next_report_is_long_due(training: Run) -> None:
    training.report("birch", waiting=Waiting(9, 3.0, (), ("u1",)))
    assert silent(training, seconds=18)[0] == 15.5, "half a lease"


def test_a_zone_that_is_lost_or_done_is_called_so(training: Run) -> None:
    silent(training, seconds=31)
    zone = run_status(training.state, training.now, {}, "").zones[1]
    assert (zone.standing, training.state.zones["birch"].unanswering) == ("lost", False)
    training.report("birch", ZoneState.DONE)
    assert silent(training) == []


def test_a_cloud_that_comes_back_blames_nobody_for_its_absence(training: Run) -> None:
    assert silent(training)
    stood_still = tick(replace(training.state, ticked=training.now - 20), training.now)
    assert [zone.name for zone in stood_still.zones] == ["birch"], "whoever looks has to hear of it"
    training.state = resumed(training.state, training.now)
    assert not training.state.zones["birch"].unanswering
    assert silent(training)[0] == 3.5
