"""What an edge tells the cloud is taken by it, whatever devices and peers have said (architecture, Faults)."""

from importlib import metadata
from pathlib import Path

import pytest

from cloud.checks import check_report
from cloud.state import Zone as Entry
from cloud.state import first_state
from edge import zone as module
from edge.memory import Memory
from edge.zone import Zone
from sgfusion.plan import ZoneState
from sgfusion.records import round_to_json
from sgfusion.reports import RoundRecord
from sgfusion.wire.channel import MESSAGE_BYTES
from sgfusion.wire.cloud_messages import report_from_wire, report_to_wire
from tests.cloud.values import a_round, a_run
from tests.edge.zones import RUN


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    found = Zone("ash", Memory(tmp_path), keys=None, expected=1)
    found.take_run(RUN.format(quorum=1.0, deadline=1.0), 0)
    return found


def test_a_report_with_the_longest_texts_is_taken(zone: Zone) -> None:
    zone.overdue, zone.diverged = "x" * 9000, "y" * 9000
    for _ in range(5):
        zone.refusals.count("TensorError")
    report = report_from_wire(report_to_wire(zone.report()))
    assert (len(report.overdue), len(report.diverged)) == (1000, 1000)
    assert report.refusals == {"TensorError": 5}
    assert report.version == metadata.version("sgfusion"), "an operator sees which edges are behind"
    state = first_state(a_run(), started=0.0).with_zone(Entry("ash", 0, "ash:1", ZoneState.TRAINING))
    check_report(state, report)


def test_a_first_wait_is_measured_by_the_shorter_deadline_of_the_run(zone: Zone) -> None:
    assert zone.waits.deadline == 1.0
    zone.take_run(RUN.format(quorum=1.0, deadline=90.0), 0)
    assert zone.waits.deadline == 60.0, "that of peers"


def test_a_new_quorum_counts_without_a_restart_of_the_edge(zone: Zone) -> None:
    """As docs/operate.md says: an edge hears of it when it enrols again."""
    assert zone.devices.needed(10) == 10
    zone.take_run(RUN.format(quorum=0.8, deadline=1.0), 0)
    assert zone.devices.needed(10) == 8


def test_records_of_many_absent_devices_go_in_several_reports(zone: Zone) -> None:
    one = a_round(1)
    absent = {f"device-{number:05}": "has not attended since the edge started" for number in range(500)}
    rounds = [RoundRecord(a_round(n).report, absent, 1, 1, one.loss) for n in range(1, 401)]
    zone.publish([{"round": round_to_json(record)} for record in rounds])
    told: list[RoundRecord] = []
    while True:
        report = zone.report()
        assert len(report_to_wire(report).SerializeToString()) < MESSAGE_BYTES
        assert report.rounds
        told += report.rounds
        if not zone.told(report, 0):
            break
    assert told == rounds


def test_one_record_is_told_however_long(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOLD", 1)
    zone.publish([{"round": round_to_json(a_round(n))} for n in (1, 2)])
    assert [record.report.round for record in zone.report().rounds] == [1]
    assert zone.told(zone.report(), 0)
    assert [record.report.round for record in zone.report().rounds] == [2]
    assert not zone.told(zone.report(), 0)
    assert zone.report().rounds == ()
