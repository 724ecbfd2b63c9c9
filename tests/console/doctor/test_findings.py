"""One finding a cause: what a frozen, gone or restarted process explains is told with it."""

from dataclasses import replace

from console.doctor.deployment import Answer, deployment_findings
from console.doctor.findings import Finding, broken, by_cause, look, ok
from console.doctor.processes import Group, Process, process_findings
from sgfusion.errors import DeadlineError
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance
from sgfusion.waiting import Waiting
from tests.console.doctor.test_deployment import SEEN, a_status, zone

UP = Process("sgfusion up", 9)
CLOUD = Process("cloud", 12)
ASH = Process("edge-ash", 13, zones=("ash",))
HOST = Process("devices-0", 14, zones=("ash", "birch"))
SILENT = Answer(3.5, DeadlineError("no answer"))
EDGE = "zone ash: its edge at 10.0.0.7:7070 does not answer within 3.5 s"


def told(*findings: Finding) -> list[tuple[str, str, str]]:
    return [(f.check, f.verdict, f.text) for f in by_cause(findings) if f.verdict != "ok"]


def of(*processes: Process) -> list[Finding]:
    return process_findings([Group(UP, processes)])


def test_an_edge_that_is_frozen_is_told_once_also_when_it_is_lost() -> None:
    frozen = of(CLOUD, replace(ASH, state="frozen"), HOST)
    unreached = deployment_findings(replace(SEEN, edges={"ash": SILENT}))
    text = "process 13 is frozen: a signal has stopped it. So " + EDGE
    assert told(*frozen, *unreached) == [("process edge-ash", "broken", text)]
    status = a_status(zone(state=ZoneState.LOST))
    lost = deployment_findings(replace(SEEN, status=status, edges={"ash": SILENT}))
    unheard = "; the cloud has not heard of it for a lease"
    assert told(*frozen, *lost) == [("process edge-ash", "broken", text + unheard)]
    assert told(*lost) == [("zone ash", "broken", EDGE.removeprefix("zone ash: ") + unheard)], "on another host"


def test_a_cloud_that_is_frozen() -> None:
    found = told(*of(replace(CLOUD, state="frozen")), *deployment_findings(replace(SEEN, cloud=SILENT, status=None)))
    cloud = "process 12 is frozen: a signal has stopped it. So cloud: the cloud at 10.0.0.1:7070 does not answer"
    assert [(check, text.startswith(cloud)) for check, _, text in found] == [("process cloud", True)]


def test_an_edge_that_was_just_started_again_and_does_not_serve_yet_is_as_bad_as_that() -> None:
    again = replace(ASH, restarts=1, ago=1.0, ended="by SIGKILL")
    unreached = deployment_findings(replace(SEEN, edges={"ash": SILENT}))
    ((check, verdict, text),) = told(*of(CLOUD, again), *unreached)
    assert (check, verdict) == ("process edge-ash", "broken")
    assert text.endswith(f"by SIGKILL. So {EDGE}")
    assert len(told(*of(CLOUD, replace(again, ago=600.0)), *unreached)) == 2, "that was long ago"


def test_devices_that_are_frozen_and_zones_that_wait_for_each_other() -> None:
    """Elm waits for birch, which waits for its devices; oak has trouble of its own."""
    birch = zone("birch", waiting=Waiting(5, 7.0, (), ("d0",)), address="h:1")
    elm = replace(zone("elm", waiting=Waiting(5, 7.0, (1,)), address="h:2"), number=2)
    oak = zone("oak", attendance=Attendance(2, ("u1",), {"u2": "its stream has ended"}), address="h:3")
    fir = replace(zone("fir", waiting=Waiting(5, 6.0, (2,)), address="h:4"), number=4)
    status = a_status(replace(birch, number=1), elm, replace(oak, number=3), fir)
    seen = replace(SEEN, status=status, edges=dict.fromkeys(("birch", "elm", "oak", "fir"), Answer(0.01)))
    found = told(*of(CLOUD, replace(HOST, state="frozen")), *deployment_findings(seen))
    assert [check for check, _, _ in found] == ["process devices-0", "zone oak"]
    assert "So zone birch: round 5 waits 7 s for its device d0; elm waits 7 s" in found[0][2]
    assert "zone elm: fir waits 6 s for it" in found[0][2]


def test_what_nothing_explains_stays_and_many_effects_are_counted() -> None:
    cause = replace(look("process x", "restarted", "wait"), explains=frozenset({"cloud"}))
    effects = [replace(look(f"zone {n}", "slow", "wait"), of=frozenset({"cloud"})) for n in range(5)]
    other = broken("disk", "full", "make room")
    assert by_cause([ok("a", "well"), *effects, cause, other]) == [
        ok("a", "well"),
        look("process x", "restarted. So zone 0: slow; zone 1: slow; zone 2: slow; and 2 more", "wait"),
        other,
    ]


def test_what_is_broken_goes_before_what_was_only_started_again() -> None:
    """An edge that runs again, and a frozen host of devices: both may be behind it that others wait."""
    again = replace(look("process edge-ash", "started again", "look"), explains=frozenset({"edge ash"}))
    frozen = replace(broken("process devices-0", "frozen", "wake it"), explains=frozenset({"devices of ash"}))
    waits = replace(look("zone elm", "waits", "look"), of=frozenset({"edge ash", "devices of ash"}))
    assert told(again, frozen, waits) == [
        ("process edge-ash", "look", "started again"),
        ("process devices-0", "broken", "frozen. So zone elm: waits"),
    ]
