"""What `sgfusion up` and `sgfusion status` show of a run, from its status alone."""

import asyncio
import io
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import grpc.aio
import pytest
from rich.console import Console, RenderableType

from console.live import EventLog, concerns, in_trouble, live_view, recent_events, shown_zones, totals
from console.looking import A_MOMENT, Look, Patience
from console.reach import Reached
from console.status import status_lines, status_table, to_json
from console.watch import Elsewhere
from sgfusion.evaluation import Metric, Score
from sgfusion.plan import ZoneState
from sgfusion.reports import NOT_YET, Attendance, Event, RunStatus, ZoneEvaluation, ZoneStatus
from sgfusion.waiting import Waiting
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.status import from_rpc_error

RMSE = Metric("RMSE", "bpm", root=True, lower_is_better=True)
NOBODY = Elsewhere(Reached("127.0.0.1:1", None))
"""A cluster that has nothing to tell by itself."""


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


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (100, ["not answering", "?/2", "942/30000", "123.46", "2.000", "swietokrzy"]),
        (80, ["not answering", "?/2", "942/30000", "123.46", "2.000"]),
        (70, ["not answering", "?/2", "942/30000", "2.000"]),
        (60, ["not answering", "942/30000", "2.000"]),
        (50, ["not answering", "942/30000"]),
        (40, ["not answering", "942/30000"]),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_no_number_that_is_cut(width: int, shown: list[str]) -> None:
    named = "zachodniopomorskie"
    zones = [
        zone(0, named, round=942, drawn=(1,), loss=123.456, unanswering=True),
        zone(1, "swietokrzyskie", round=942),
    ]
    screen = Console(width=width, record=True, file=io.StringIO())
    screen.print(live_view(replace(status(*zones), rounds=30_000), seconds=3, doing=""))
    lines = screen.export_text().splitlines()
    assert all(len(line) <= width for line in lines)
    found, *cells = re.split(r"\s{2,}", next(line for line in lines if "zachod" in line).strip())
    assert found == named if width > 40 else found.endswith("…")
    assert [cell.rstrip("…")[: len(part)] for cell, part in zip(cells, shown, strict=True)] == shown
    assert any("drawn last" in line for line in lines) == (width == 100)


def test_the_totals_are_over_all_zones() -> None:
    done = zone(1, "south", ZoneState.DONE, round=8, attendance=Attendance(3, ("u3",), {"u4": "gone"}))
    said = totals(status(zone(0, "north"), done))
    assert said == "2 zones: 1 training, 1 done · round 4 to 8 of 8 · devices 3/5 · validation RMSE 2.000 pooled"


def test_devices_of_zones_that_are_not_heard_of_are_not_said_to_attend() -> None:
    for silent in (zone(1, "south", unanswering=True), zone(1, "south", ZoneState.LOST)):
        run = status(zone(0, "north"), silent)
        assert "· devices 2/4 (2 unheard of) ·" in totals(run)
        for shown in (live_view(run, seconds=1, doing=""), status_table(run, 120)):
            (row,) = [line for line in text(shown).splitlines() if "south" in line and "4/8" in line]
            assert " ?/2 " in row, "as the totals say"
    unsaid = zone(1, "south", unanswering=True, attendance=Attendance(0, ("u1",)))
    assert "· 0 devices (1 unheard of) ·" in totals(status(unsaid))


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
    assert many == [*(f"event {i}" for i in range(7)), "… and at least 43 more events"], "the cloud sends no more"
    assert log.new([Event(70.0 + i, f"event {i}") for i in range(9)])[-1] == "… and 2 more events"


def test_what_happened_while_the_cluster_was_started_is_told_too() -> None:
    """Edges enrol before all processes are there, and so before the watch begins: of six zones two were named."""
    now = 1e6
    events = (Event(now - 100, "of an earlier life"), *(Event(now - 20 + n, f"zone {n} enrolled") for n in range(6)))
    look = Look(NOBODY, Console(file=io.StringIO()), before=30.0)
    look._take(status(zone(0, "north"), events=events, time=now))
    assert look._events() == [f"zone {n} enrolled" for n in range(6)]


def test_that_the_cloud_is_waited_for_is_said_after_a_moment() -> None:
    printed = io.StringIO()
    look = Look(NOBODY, Console(file=printed, width=200))
    look._began += 3600  # whatever else this machine does, the moment is not over
    look._look()
    assert printed.getvalue() == ""
    look._began -= 3600 + A_MOMENT
    look._look()
    assert printed.getvalue().endswith(" s  waits for the cloud\n")


def test_what_is_of_concern_is_said_in_a_few_lines_each_thing_once() -> None:
    gone = Attendance(2, ("u1",), {"u2": "its stream has ended"})
    many = Attendance(9, (), {f"u{n}": "late" for n in range(5)})
    zones = (
        zone(0, "north", attendance=gone),
        zone(1, "south", attendance=gone, overdue="1 devices answered, missing: u2"),
        zone(2, "west", ZoneState.DIVERGED, diverged="a gradient is not finite"),
        zone(3, "east", left_out={0: "no answer within 60 s"}),
    )
    assert concerns(status(*zones)) == [
        "south: 1 devices answered, missing: u2",
        "west: diverged: a gradient is not finite",
        "north: missing: u2 (its stream has ended)",
        "east: without north (no answer within 60 s)",
    ]
    more = concerns(status(*zones, zone(4, "far", attendance=many), overdue="4 of 6 zones have enrolled"))
    assert more[0] == "4 of 6 zones have enrolled"
    assert more[-1] == "… and 2 more"
    assert len(more) == 5
    assert concerns(status(zone(4, "far", attendance=many))) == ["far: missing: u0, u1, u2 and 2 more (late)"]
    assert concerns(status(zone(0, "calm"))) == []


def test_devices_that_start_with_their_edge_are_counted_and_not_missed() -> None:
    """`up` again after Ctrl-C: nothing is gone."""
    starting = zone(0, "north", attendance=Attendance(3, ("u1",), {"u2": NOT_YET, "u3": NOT_YET}))
    assert concerns(status(starting)) == []
    assert "devices 1/3" in totals(status(starting))
    assert not any("missing" in line for line in status_lines(status(starting), 0.0))
    assert not in_trouble(starting)
    late = replace(starting, overdue="1 devices answered, missing: u2, u3")
    assert concerns(status(late)) == ["north: 1 devices answered, missing: u2, u3"]
    assert f"north: missing: u2, u3 ({NOT_YET})" in status_lines(status(late), 0.0)
    one = replace(starting, attendance=Attendance(3, ("u1",), {"u2": NOT_YET, "u3": "its stream has ended"}))
    assert concerns(status(one)) == ["north: missing: u3 (its stream has ended)"]


def test_who_holds_others_up_is_named_first() -> None:
    wait = Waiting(12, 5.4, (1,))
    birch = zone(1, "birch")
    zones = (zone(0, "ash", waiting=wait), birch, zone(2, "elm", waiting=wait))
    line = "birch: 2 zones wait for it, the longest 5 s"
    assert concerns(status(*zones)) == [line]
    assert line in list(status_lines(status(*zones), 0.0))
    gone = replace(birch, state=ZoneState.LOST)
    assert concerns(status(zones[0], gone, zones[2])) == [
        line,  # also of one that is lost: who waits for it has not gone on yet
        "birch: lost: nothing is heard of its edge. Is it running, and its host? "
        "Who draws it waits deadlines.peer, once",
    ]
    assert concerns(status(zones[0], replace(birch, state=ZoneState.LEFT), zones[2])) == []
    diverged = replace(birch, state=ZoneState.DIVERGED, diverged="a gradient is not finite")
    assert concerns(status(zones[0], diverged, zones[2])) == [  # as on the page
        line,
        "birch: diverged: a gradient is not finite",
    ]
    own = zone(0, "ash", waiting=Waiting(12, 70.0, (), ("u1",)))
    assert concerns(status(own)) == ["ash: round 12 waits 70 s for its device u1"]
    assert concerns(status(replace(own, overdue="missing: u1"))) == ["ash: missing: u1"]


def test_the_pace_is_shown_once_there_are_rounds() -> None:
    assert "34.5 rounds/min" in text(live_view(status(zone(0, "north")), seconds=1, doing="", pace=34.5))
    assert "rounds/min" not in text(live_view(status(zone(0, "north", round=0)), seconds=1, doing="", pace=0.0))


def test_a_long_line_of_concern_takes_one_row() -> None:
    worried = status(zone(0, "north", overdue="waits for " + ", ".join(f"device-{n}" for n in range(40))))
    lines = text(live_view(worried, seconds=1, doing=""), width=80).splitlines()
    assert sum("waits for device-0" in line for line in lines) == 1
    assert lines[-1].endswith("…")


def test_events_of_before_are_told_by_the_clouds_clock_not_by_ours() -> None:
    """A cloud whose clock is a year behind, or ahead, has news all the same."""
    for now in (1e6, 4e9):
        printed = io.StringIO()
        look = Look(None, Console(file=printed, width=200), recent=2)  # type: ignore[arg-type]
        before = tuple(Event(now - 30 + n, f"event {n}") for n in range(3))
        look._take(status(zone(0, "north"), events=before, time=now))
        assert look._events() == []
        *ages, begins = printed.getvalue().splitlines()
        assert ages == ["    29 s ago  event 1", "    28 s ago  event 2"]
        assert begins == "   0 s  watching: seconds from here on are since it began"
        look._take(status(zone(0, "north"), events=(*before, Event(now + 1, "news")), time=now + 1))
        assert look._events() == ["news"]
        plain = Look(None, Console(file=printed), recent=0)  # type: ignore[arg-type]
        plain._take(status(zone(0, "north"), events=(*before, Event(now, "just now")), time=now))
        assert plain._events() == ["just now"]
    assert recent_events((), 0.0, 5) == []


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


def test_who_has_left_is_no_trouble_and_who_is_lost_is() -> None:
    left = zone(1, "south", ZoneState.LEFT, round=2, plan=1)
    behind = zone(2, "west", plan=1)
    gone = zone(3, "east", ZoneState.LOST)
    found = replace(status(zone(0, "north", plan=2), left, behind, gone), plan=2)
    lines = list(status_lines(found, now=100.0))
    assert "round 4 of 8" in lines[0]
    assert [line for line in lines if "plan" in line] == ["west: still trains by plan 1"]
    assert concerns(found) == [line for line in lines if line.startswith("east: lost: nothing is heard of its edge.")]
    assert len(concerns(found)) == 1


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


def test_without_a_terminal_a_silent_cloud_is_told_at_once_and_its_return_too() -> None:
    printed = io.StringIO()
    look = Look(NOBODY, Console(file=printed, width=200))
    look._take(status(zone(0, "north")))
    look._look()
    look._began -= 3600  # an hour later lines come three minutes apart
    look._hearing.unanswered(time.monotonic() + 5)
    look._look()
    look._look()
    look._take(status(zone(0, "north")))
    look._look()
    said = [re.sub(r"\d+ s$", "… s", re.sub(r"^ *\d+ s  ", "", line)) for line in printed.getvalue().splitlines()]
    assert said == [
        "1 zone: 1 training · round 4 of 8 · devices 2/2 · validation RMSE 2.000 pooled",
        "the cloud does not answer: nothing was heard of it for … s",
        "the cloud answers again: nothing was heard of it for … s",
    ]


def test_that_a_zone_is_lost_is_explained_once_and_nobody_asks_whether_a_frozen_edge_runs() -> None:
    printed, frozen = io.StringIO(), set[str]()
    look = Look(NOBODY, Console(file=printed, width=200), frozen=lambda: frozen)

    def said(*zones: ZoneStatus) -> str:
        look._take(status(*zones))
        look._said = -3600.0  # long ago
        look._look()
        return printed.getvalue().splitlines()[-1]

    long = "south: lost: nothing is heard of its edge. Is it running, and its host? Who draws it waits deadlines.peer"
    south = zone(1, "south", ZoneState.LOST)
    assert long in said(south)
    assert said(replace(south, round=5)).endswith(" · south: lost")
    said(zone(1, "south"))
    assert long in said(south), "it was heard of meanwhile"
    frozen.add("east")
    assert said(south, zone(2, "east", ZoneState.LOST)).endswith(
        "· south: lost · east: lost: nothing is heard of its edge, which is frozen. "
        "Who draws it waits deadlines.peer, once"
    )
    assert "which is frozen" in text(look._view())


@pytest.mark.parametrize("before", [False, True], ids=["never heard", "heard before"])
def test_a_stream_that_breaks_for_want_of_an_answer_is_silence_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """gRPC gives up a frozen cloud after 40 s, and says so in words of its own: it was known long before."""
    printed = io.StringIO()
    look = Look(NOBODY, Console(file=printed, width=200))
    if before:
        look._take(status(zone(0, "north")))
    look._away = "the cloud is away: no connection to it"  # as of another try
    broken = grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "Stream removed (ping timeout)"
    )

    async def never(_seconds: float) -> None:
        raise asyncio.CancelledError

    async def breaks(_client: object) -> AsyncIterator[RunStatus]:
        for error in (from_rpc_error(broken),):  # what follows makes it a generator
            raise error
        yield status()

    monkeypatch.setattr(CloudClient, "watch_status", breaks)
    monkeypatch.setattr("console.looking.asyncio.sleep", never)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(look._follow())
    look._look()
    (line,) = printed.getvalue().splitlines()
    assert re.fullmatch(r" +\d+ s  the cloud does not answer: nothing was heard of it for \d+ s", line)


def test_a_zone_that_does_not_answer_is_called_so_by_every_view() -> None:
    zones = (zone(0, "north"), zone(1, "coast", unanswering=True), zone(2, "west", ZoneState.DONE))
    run = status(*zones)
    for shown in (live_view(run, seconds=1, doing=""), status_table(run, 120)):
        (row,) = [line for line in text(shown).splitlines() if "coast" in line and "4/8" in line]
        assert "not answering" in row
    assert totals(run).startswith("3 zones: 1 training, 1 not answering, 1 done · ")
    assert json.loads(to_json(run))["zones"][1]["unanswering"]
    assert shown_zones(zones, 1) == (zones[1],)


def test_an_address_is_shown_whole_or_not_at_all() -> None:
    """A state or a round of many letters takes the room that an address had."""
    short, long = (status(zone(0, "north", unanswering=wide)) for wide in (False, True))
    width = next(n for n in range(60, 120) if "127.0.0.1:0" in text(status_table(short, n), n))
    assert "127" not in text(status_table(long, width), width)
    assert "not answering" in text(status_table(long, width), width)


def test_all_of_the_live_view_fits_a_small_terminal() -> None:
    """What is too high loses its last lines: who is late, and how to stop."""
    look = Look(NOBODY, Console(file=io.StringIO(), width=100, height=24, force_terminal=True))
    look._take(status(*(zone(number, f"zone-{number:02d}") for number in range(30)), zone(30, "west", ZoneState.LOST)))
    lines = text(look._view(), width=100).rstrip("\n").splitlines()
    assert len(lines) == 24
    assert "Ctrl-C" in lines[-2]
    assert lines[-1].startswith("west: lost")
