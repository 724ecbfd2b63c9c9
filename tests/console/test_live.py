"""What `sgfusion up` and `sgfusion status` show of a run, from its status alone."""

import io
import json
import re
from dataclasses import replace

from rich.console import Console, RenderableType

from console.live import EventLog, live_view, shown_zones, totals
from console.status import status_lines, status_table, to_json
from console.watching import Patience
from sgfusion.evaluation import Metric, Score
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance, Event, RunStatus, ZoneEvaluation, ZoneStatus

RMSE = Metric("RMSE", "bpm", root=True, lower_is_better=True)


def zone(number: int, name: str, state: ZoneState = ZoneState.TRAINING, round: int = 4, **more: object) -> ZoneStatus:
    last = ZoneEvaluation(round, Score(4.0, 1), Score(9.0, 1), best=True)
    attendance = more.pop("attendance", Attendance(2, ("u1", "u2")))
    assert isinstance(attendance, Attendance)
    return ZoneStatus(number, name, f"127.0.0.1:{number}", state, round, attendance, last=last, **more)  # type: ignore[arg-type]


def status(*zones: ZoneStatus, **more: object) -> RunStatus:
    return RunStatus("tiny", 8, 1, "all have reported", zones, finished=False, metric=RMSE, **more)  # type: ignore[arg-type]


def text(shown: RenderableType, width: int = 120) -> str:
    screen = Console(width=width, record=True, file=io.StringIO())
    screen.print(shown)
    return screen.export_text()


def test_a_zones_row_names_whom_it_drew_and_who_did_not_answer() -> None:
    north = zone(0, "north", drawn=(1, 2), left_out={2: "frozen"}, loss=0.25)
    view = text(live_view(status(north, zone(1, "south"), zone(2, "west")), seconds=3, doing="Ctrl-C stops it"))
    row = next(line for line in view.splitlines() if " north " in line)
    assert re.split(r"\s{2,}", row.strip()) == [
        *("north", "training", "2/2", "4/8", "0.250", "2.000", "south and west (without west)")
    ]
    assert "   3 s  Ctrl-C stops it" in view


def test_at_80_columns_all_but_the_drawn_zones_is_there_in_full() -> None:
    names = ("kujawsko-pomorskie", "swietokrzyskie", "zachodniopomorskie")
    zones = [zone(number, name, drawn=(1, 2), loss=123.456) for number, name in enumerate(names)]
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(live_view(status(*zones), seconds=3, doing=""))
    lines = screen.export_text().splitlines()
    for name in names:
        row = next(line for line in lines if name in line)
        assert all(part in row for part in ("training", "2/2", "4/8", "123.", "2.000", "swie"))
        assert len(row) <= 80


def test_the_totals_are_over_all_zones() -> None:
    done = zone(1, "south", ZoneState.DONE, round=8, attendance=Attendance(3, ("u3",), {"u4": "gone"}))
    said = totals(status(zone(0, "north"), done))
    assert said == "2 zones: 1 training, 1 done · round 4 to 8 of 8 · devices 3/5 · validation RMSE 2.000 pooled"


def test_of_many_zones_those_in_trouble_and_those_that_lag_are_shown() -> None:
    zones = [zone(number, f"z{number}", round=100 + number) for number in range(50)]
    zones[30] = zone(30, "z30", ZoneState.LOST, round=149)
    zones[40] = zone(40, "z40", round=149, overdue="waits for u1")
    zones[7] = zone(7, "z7", round=3)
    assert [each.zone for each in shown_zones(zones, 5)] == ["z0", "z1", "z7", "z30", "z40"]
    view = text(live_view(status(*zones), seconds=1, doing=""))
    assert "30 more" in view
    assert "z40: waits for u1" in view
    assert len(view.splitlines()) < 40


def test_events_are_told_once_and_very_many_are_one_line() -> None:
    log = EventLog(since=10.0)
    assert log.new([Event(9.0, "of an earlier life"), Event(11.0, "enrolled")]) == ["enrolled"]
    assert log.new([Event(11.0, "enrolled")]) == []
    many = log.new([Event(12.0 + i, f"event {i}") for i in range(50)])
    assert many == [*(f"event {i}" for i in range(7)), "… and 43 more events"]


def test_patience_ends_only_for_who_is_overdue_on_end() -> None:
    patience = Patience(10.0)
    assert patience.lost({"north": "waits for u1"}, 0.0) is None
    assert patience.lost({}, 6.0) is None
    assert patience.lost({"north": "waits for u2"}, 7.0) is None
    assert patience.lost({"north": "waits for u2", "south": "x"}, 16.0) is None
    assert patience.lost({"north": "waits for u3", "south": "x"}, 17.5) == "waits for u3"


def test_the_status_says_who_is_missing_what_is_overdue_and_what_was_refused() -> None:
    north = zone(0, "north", attendance=Attendance(3, ("u1",), {"u2": "its stream ended"}), overdue="waits for u2")
    found = status(north, refusals={"wrong role": 2}, overdue="1 of 2 zones", events=(Event(90.0, "north enrolled"),))
    table = text(status_table(found, 80), width=80)
    assert "tiny: plan 1 (all have reported)" in table
    assert "127.0.0.1:0" in table
    lines = list(status_lines(found, now=100.0))
    assert "north: missing: u2 (its stream ended)" in lines
    assert "overdue: 1 of 2 zones" in lines
    assert "overdue: north: waits for u2" in lines
    assert "refused by cloud: wrong role (2)" in lines
    assert lines[-1] == "    10 s ago  north enrolled"


def test_addresses_are_shown_whole_or_not_at_all() -> None:
    far = replace(zone(0, "kujawsko-pomorskie"), address="edge-kujawsko-pomorskie.example:7070")
    for width, shown in ((80, False), (200, True)):
        table = text(status_table(status(far), width), width=width)
        assert "kujawsko-pomorskie " in table
        assert (far.address in table) == shown
        assert ("address" in table) == shown
    without = text(status_table(status(), 80), width=80)
    assert "tiny" in without


def test_the_status_as_json_has_everything() -> None:
    document = json.loads(to_json(status(zone(0, "north", drawn=(1,)))))
    assert document["zones"][0]["state"] == "training"
    assert document["zones"][0]["attendance"]["attending"] == ["u1", "u2"]
    assert document["metric"]["name"] == "RMSE"
