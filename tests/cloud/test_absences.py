"""Who is gone and who is back, as events that an operator wants to see; time is a number."""

from dataclasses import replace

import pytest

from cloud import coordinator
from cloud.coordinator import resumed, tick
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance
from sgfusion.wire.words import LONGEST_TEXT
from tests.cloud.coordinated import Run
from tests.cloud.values import NAMES

HERE = ("u1", "u2", "u3")


def attended(*here: str, late: tuple[str, ...] = (), departures: int = 0) -> Attendance:
    """Of the three devices of a zone."""
    gone = {device: "its stream has ended" for device in HERE if device not in here}
    return Attendance(3, here, {**gone, **dict.fromkeys(late, "has not answered within 60 s")}, departures)


def news(run: Run, *reports: Attendance, name: str = "ash", seconds: int = 12) -> list[str]:
    """What is told after reports of a zone's devices, a tenth of a second apart; the others say nothing new."""
    told = len(run.state.events)
    for attendance in reports:
        run.now += 0.1
        run.report(name, run.state.zones[name].said, attendance=attendance)
    for _ in range(seconds):
        run.now += 1
        for zone in NAMES:
            known = run.state.zones[zone]
            if known.leased:
                run.report(zone, known.said, attendance=known.attendance)
        run.take(tick(run.state, run.now))
    return run.texts[told:]


@pytest.fixture
def attending(planned: Run) -> Run:
    """All devices of all zones attend, and have for a while."""
    for name in NAMES:
        planned.report(name, attendance=attended(*HERE))
    assert news(planned) == []
    return planned


def test_devices_of_a_zone_that_go_one_by_one_are_one_event_and_their_return_another(attending: Run) -> None:
    assert news(attending, attended("u1", "u2"), attended("u1"), attended()) == [
        "zone ash: 3 of 3 devices are gone: u1, u2, u3 (its stream has ended)"
    ]
    assert news(attending, attended("u2"), attended("u2", "u3")) == [], "not all are back"
    assert news(attending, attended(*HERE)) == ["zone ash: all 3 devices attend again"]
    assert news(attending, attended("u1", "u2")) == ["zone ash: 1 of 3 devices is gone: u3 (its stream has ended)"]
    assert news(attending, attended("u1")) == ["zone ash: 2 of 3 devices are gone: u2, u3 (its stream has ended)"]


MOMENT = "zone ash: devices were gone for a moment, and attend again: 3 streams ended"


def test_devices_that_are_gone_and_back_at_once_are_an_event_too(attending: Run) -> None:
    assert news(attending, attended("u1"), attended(), attended("u1"), attended(*HERE)) == [MOMENT]


def test_also_if_no_report_saw_them_gone_for_the_edge_counts(attending: Run) -> None:
    assert news(attending, attended(*HERE, departures=3)) == [MOMENT]
    assert news(attending, seconds=60) == []
    assert news(attending, attended(*HERE, departures=4)) == [
        "zone ash: a device was gone for a moment, and attends again"
    ]
    assert news(attending, attended(*HERE, departures=4)) == [], "an edge says the same count again"


def test_who_was_told_gone_and_comes_and_goes_is_not_said_to_attend(attending: Run) -> None:
    gone = "zone ash: 1 of 3 devices is gone: u3 (its stream has ended)"
    assert news(attending, attended("u1", "u2", departures=1)) == [gone]
    assert news(attending, attended("u1", "u2", departures=2)) == [f"{gone}; a stream ended meanwhile"]


def test_nor_is_another_that_went_when_it_came(attending: Run) -> None:
    news(attending, attended("u1", "u2", departures=1))
    told = news(attending, attended(*HERE, departures=1), attended("u2", "u3", departures=2))
    assert told == ["zone ash: 1 of 3 devices is gone: u1 (its stream has ended); a stream ended meanwhile"]


def test_a_line_that_fails_again_and_again_is_an_event_a_minute(attending: Run) -> None:
    told = [text for n in range(1, 21) for text in news(attending, attended(*HERE, departures=3 * n), seconds=5)]
    assert told == [MOMENT, "zone ash: devices were gone for a moment, and attend again: 33 streams ended within 56 s"]


def test_devices_that_come_and_go_without_an_end_are_told_of(attending: Run) -> None:
    told = len(attending.state.events)
    for half in range(1, 25):
        attending.now += 0.5
        attending.report("ash", attendance=attended(*HERE, departures=half))
        attending.take(tick(attending.state, attending.now))
    assert attending.texts[told:] == [
        "zone ash: devices were gone for a moment, and attend again: 21 streams ended within 10 s"
    ]


def test_a_device_that_is_only_late_is_no_event(attending: Run) -> None:
    assert news(attending, attended(*HERE, late=("u2",)), seconds=3) == []


def test_nor_are_devices_that_go_and_come_while_they_gather_or_the_zone_has_ended(attending: Run) -> None:
    for n, said in enumerate((ZoneState.GATHERING, ZoneState.DONE, ZoneState.TRAINING)):
        attending.report("ash", said, attendance=attended(*HERE, departures=5 * n))
        told = news(attending, attended(*HERE, departures=5 * n + (said is not ZoneState.TRAINING)))
        assert not [text for text in told if "moment" in text] or said is ZoneState.TRAINING


def test_a_zone_of_one_device(attending: Run) -> None:
    one = Attendance(1, ("u1",))
    assert news(attending, one, replace(one, attending=(), missing={"u1": "its stream has ended"}), one) == [
        "zone ash: a device was gone for a moment, and attends again"
    ]
    assert news(attending, Attendance(1, (), {"u1": "its stream has ended"})) == [
        "zone ash: 1 of 1 devices is gone: u1 (its stream has ended)"
    ]
    assert news(attending, one) == ["zone ash: its device attends again"]


@pytest.mark.parametrize("said", [ZoneState.GATHERING, ZoneState.DONE, ZoneState.DIVERGED])
def test_while_devices_gather_and_when_a_zone_has_ended_they_come_and_go(attending: Run, said: ZoneState) -> None:
    attending.report("ash", said, attendance=attended(*HERE))
    told = news(attending, attended("u1"))
    assert not [text for text in told if "gone" in text]


@pytest.mark.parametrize("said", [ZoneState.DONE, ZoneState.DIVERGED])
def test_who_was_told_gone_is_told_back_also_when_the_zone_has_ended_meanwhile(attending: Run, said: ZoneState) -> None:
    assert len(news(attending, attended("u1"))) == 1
    attending.report("ash", said, attendance=attended(*HERE))
    assert news(attending, attended(*HERE)) == ["zone ash: all 3 devices attend again"]


def test_devices_have_time_to_find_an_edge_that_was_started_anew(attending: Run) -> None:
    attending.take(coordinator.enrol(attending.state, "ash", "ash:1", attending.now, life=1))
    assert news(attending, attended(), attended("u2"), seconds=8) == []
    assert news(attending, attended(*HERE)) == []
    attending.take(coordinator.enrol(attending.state, "ash", "ash:1", attending.now, life=2))
    assert news(attending, attended("u2"), seconds=8) == []
    assert news(attending) == ["zone ash: 2 of 3 devices are gone: u1, u3 (its stream has ended)"]


def test_a_cloud_that_comes_back_says_so_and_gives_devices_time_too(attending: Run) -> None:
    attending.state = resumed(attending.state, attending.now)
    change = attending.take(coordinator.back(attending.state, attending.now, attending.now - 12.3))
    assert [event.text for event in change.events] == ["the cloud is back: its state was last written 12 s ago"]
    assert change.to_store
    assert news(attending, attended(), seconds=8) == []
    assert len(news(attending)) == 1
    (event,) = coordinator.back(attending.state, attending.now, attending.now + 5).events
    assert event.text == "the cloud is back", "a clock was set back"


def test_a_cloud_that_comes_back_knows_what_it_told(attending: Run) -> None:
    assert len(news(attending, attended("u1"))) == 1
    attending.state = resumed(attending.state.with_zone(attending.state.zones["ash"].stored()), attending.now)
    assert news(attending) == [], "it stands among the events"
    assert news(attending, attended(*HERE)) == ["zone ash: all 3 devices attend again"]


def test_devices_have_time_to_find_an_edge_that_goes_on_after_it_was_lost(attending: Run) -> None:
    """Its streams broke while it was frozen, and it does not enrol: to itself nothing happened."""
    told = len(attending.state.events)
    for _ in range(35):
        attending.now += 1
        for zone in NAMES[1:]:
            attending.report(zone, attendance=attended(*HERE))
        attending.take(tick(attending.state, attending.now))
    assert news(attending, attended(), attended("u2"), seconds=8) == ["zone ash is heard of again"]
    assert news(attending, attended(*HERE)) == []
    assert len(attending.state.events) == told + 2
    assert len(news(attending, attended())) == 1, "it is not quiet for ever"


def test_what_is_told_of_devices_is_short_whatever_their_edge_says(attending: Run) -> None:
    why = {f"u{number:03}": f"{number} " + 999 * "x" for number in range(300)}
    (text,) = news(attending, Attendance(300, (), why))
    assert text.startswith("zone ash: 300 of 300 devices are gone: u000 (0 xxx")
    assert len(text) <= len("zone ash: ") + LONGEST_TEXT


def test_a_cloud_that_stood_still_says_so(attending: Run) -> None:
    attending.now += 20
    change = attending.take(tick(attending.state, attending.now))
    assert [event.text for event in change.events] == ["the cloud stood still for 20 s: leases begin anew"]
    assert news(attending) == []
