"""What the cloud knows outlives it."""

import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloud.absences import Absence
from cloud.state import EVENTS, Change, Contract, Plan, State, Zone, first_state
from cloud.store import FILE, PAGE, VERSION, Store
from sgfusion.errors import StoreError
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance, Event, ZoneEvaluation
from tests.cloud.values import MASSES, MODEL, NAMES, NAN_SCORE, THETA, a_point, a_round, a_run

ROOT = Path(__file__).parents[2]
FULL = Zone(
    "ash", 0, "127.0.0.1:1", ZoneState.TRAINING, left=True, lost=17.5, histogram=MASSES["ash"], devices=3, round=4,
    drawn=(1, 2), left_out={2: "late"}, loss=0.1 + 0.2, first=a_point(0), last=a_point(4), best=a_point(2, best=True),
    attendance=Attendance(3, ("u1", "u2"), {"u3": "ended"}), overdue="waits", refusals={"InputError": 2}, plan=1,
    diverged="", attention={1: 0.25}, epsilon=10.0, life=2**64 - 1, version="0.1.0",
    absence=Absence(gone=1, told=1),
)  # fmt: skip


def change(state: State, **what: object) -> Change:
    return Change(state, **what)  # type: ignore[arg-type]


def test_a_new_store_holds_the_run_and_its_zones(tmp_path: Path) -> None:
    with Store(tmp_path / "deep" / "state") as store:
        assert store.load(a_run(), 100.0, 30.0) == first_state(a_run(), started=100.0, lease=30.0)
    with Store(tmp_path / "deep" / "state") as store:
        state = store.load(a_run(), 999.0, 20.0)
    assert (state.started, state.lease) == (100.0, 20.0)
    assert [(zone.name, zone.number) for zone in state.zones.values()] == list(zip(NAMES, range(5), strict=True))


def test_when_an_earlier_cloud_wrote_last_is_known(tmp_path: Path) -> None:
    began = time.time()
    with Store(tmp_path) as store:
        store.load(a_run(), began)
        assert store.wrote is None, "there was none"
    for path in tmp_path.glob(f"{FILE}*"):
        os.utime(path, (began - 60, began - 60))
    with Store(tmp_path) as store:
        assert store.wrote is None, "not before it is known whose it was"
        store.load(a_run(), began)
        assert store.wrote == pytest.approx(began - 60, abs=0.01)


def test_when_it_last_wrote_is_known_and_a_write_that_failed_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [10.0, 20.0, 30.0, 40.0]
    monkeypatch.setattr("cloud.store.time", SimpleNamespace(time=lambda: times[0]))
    with Store(tmp_path) as store:
        times.pop(0)
        state = store.load(a_run(), 100.0)
        assert store.committed == 20
        times.pop(0)
        store.save([change(state, zones=(FULL,))])
        assert store.committed == 30
        times.pop(0)
        with pytest.raises(StoreError):
            store.save([change(state, zone="nobody", rounds=(a_round(),))])
        store.rounds("ash")
        assert store.committed == 30


def test_everything_comes_back_to_the_bit(tmp_path: Path) -> None:
    joined = Zone("gum", 5, "h:2", ZoneState.GATHERING)
    plan = Plan(1, "all 5 zones have reported", NAMES, tuple(MASSES[name] for name in NAMES), "{}\n", 12.5)
    contract = Contract(replace(MODEL, edges=(0.0, 0.1, 0.3, 1.0, 2.0)), THETA, "ash")
    events = (Event(1.0, "one"), Event(2.0, "two"))
    with Store(tmp_path) as store:
        state = store.load(a_run(), 100.0)
        store.save([change(state, zones=(FULL, joined), contract=contract, plan=plan, events=events)])
        store.save([change(state, plan=replace(plan, version=2, reason="zone gum joined"))])
    with Store(tmp_path) as store:
        back = store.load(a_run(), 200.0)
        assert store.plans() == [(1, plan.reason, NAMES, 12.5), (2, "zone gum joined", NAMES, 12.5)]
    assert back.zones["ash"] == FULL
    assert back.zones["gum"] == joined
    assert back.plan == replace(plan, version=2, reason="zone gum joined")
    assert (back.contract, back.events) == (contract, events)
    assert back.contract is not None
    assert back.contract.model.edges == (0.0, 0.1, 0.3, 1.0, 2.0)


def test_what_an_earlier_version_did_not_keep_is_not_missed(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        state = store.load(a_run(), 100.0)
        store.save([change(state, zones=(FULL,), contract=Contract(MODEL, THETA, "ash"))])
    rows = sqlite3.connect(tmp_path / FILE)
    rows.execute(
        "UPDATE zones SET standing ="
        " json_remove(standing, '$.attention', '$.epsilon', '$.life', '$.version', '$.told_gone') WHERE name = 'ash'"
    )
    rows.execute("UPDATE contract SET model = json_remove(model, '$.edges')")
    rows.commit()
    rows.close()
    with Store(tmp_path) as store:
        back = store.load(a_run(), 100.0)
    absence = Absence(gone=1)
    assert back.zones["ash"] == replace(FULL, attention={}, epsilon=0.0, life=0, version="", absence=absence)
    assert back.contract == Contract(MODEL, THETA, "ash")


def test_rounds_and_evaluations_come_in_pages_and_replace_themselves(tmp_path: Path) -> None:
    rounds = tuple(a_round(number) for number in range(1, 2 * PAGE + 2))
    points = (a_point(0), a_point(1))
    with Store(tmp_path) as store:
        state = store.load(a_run(), 100.0)
        store.save([change(state, zone="ash", rounds=rounds, evaluations=points)])
        store.save([change(state, zone="birch", rounds=(a_round(1, zone=1),))])
        store.save([change(state, zone="ash", rounds=(a_round(2, loss=9.0),), evaluations=(a_point(1, best=True),))])
        found, after = [], -1
        while page := store.rounds("ash", after):
            assert len(page) <= PAGE
            found += page
            after = page[-1].report.round
        assert tuple(found) == (rounds[0], a_round(2, loss=9.0), *rounds[2:])
        assert store.evaluations("ash") == [a_point(0), a_point(1, best=True)]
        assert store.rounds("birch") == [a_round(1, zone=1)]
        assert store.rounds("cedar") == []


def test_a_score_that_is_no_number_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        state = store.load(a_run(), 100.0)
        store.save([change(state, zone="ash", evaluations=(ZoneEvaluation(1, NAN_SCORE, NAN_SCORE, best=False),))])
        (point,) = store.evaluations("ash")
    assert math.isnan(point.validation.total)


def test_events_are_bounded_to_the_last(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        state = store.load(a_run(), 100.0)
        for start in range(0, 3 * EVENTS, 50):
            store.save([change(state, events=tuple(Event(float(i), str(i)) for i in range(start, start + 50)))])
    with Store(tmp_path) as store:
        events = store.load(a_run(), 100.0).events
    assert [event.text for event in events] == [str(i) for i in range(2 * EVENTS, 3 * EVENTS)]
    rows = sqlite3.connect(tmp_path / FILE)
    assert rows.execute("SELECT count(*) FROM events").fetchone() == (EVENTS,)
    rows.close()


def test_a_batch_is_all_or_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        state = store.load(a_run(), 100.0)
        with pytest.raises(StoreError, match=r"FOREIGN KEY"):
            store.save([change(state, zones=(FULL,)), change(state, zone="nobody", rounds=(a_round(),))])
        store.save([change(state, events=(Event(1.0, "goes on"),))])
    with Store(tmp_path) as store:
        back = store.load(a_run(), 100.0)
    assert back.zones["ash"] == Zone("ash", 0)
    assert back.events == (Event(1.0, "goes on"),)


def test_a_store_of_another_run_is_refused_and_both_are_named(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.load(a_run(), 100.0)
        with pytest.raises(
            StoreError,
            match=r"cloud\.sqlite holds the run 'woods', this one is 'trees'; they differ in name, seed: give this run "
            r"another --state",
        ):
            store.load(a_run("name=trees", "seed=6"), 100.0)
        with pytest.raises(StoreError, match="they differ in hrg"):
            store.load(a_run("hrg.sharpness=2.0"), 100.0)


def test_how_long_to_wait_may_change(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.load(a_run(), 100.0)
        state = store.load(a_run("quorum.zones=0.5", "deadlines.zones=10.0"), 200.0)
        assert (state.started, state.run.quorum.zones) == (100.0, 0.5)
        assert store.load(a_run("quorum.zones=0.5"), 200.0).started == 100.0


def test_where_zones_lie_on_a_map_may_change(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.load(a_run(), 100.0)
        state = store.load(a_run("zones.places={ash=[[[50.0, 20.0]]]}"), 200.0)
        assert (state.started, state.run.zones.places) == (100.0, {"ash": (((50.0, 20.0),),)})
        assert store.load(a_run(), 200.0).started == 100.0
        with pytest.raises(StoreError, match="they differ in zones"):
            store.load(a_run("zones.min_devices=2"), 100.0)


def test_two_clouds_never_share_a_folder(tmp_path: Path) -> None:
    with Store(tmp_path), pytest.raises(StoreError, match=rf"{tmp_path} is in use by another cloud"):
        Store(tmp_path)
    Store(tmp_path).close()


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE)
    database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()
    with pytest.raises(StoreError, match=rf"{FILE} is of version 2, this SGFusion knows up to 1"):
        Store(tmp_path)


@pytest.mark.parametrize("damage", ["garbage", "hole", "record"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    with Store(tmp_path) as store:
        state = store.load(a_run(), 100.0)
        rounds = tuple(a_round(number) for number in range(1, 2000))
        store.save([change(state, zone="ash", rounds=rounds)])
    path = tmp_path / FILE
    content = bytearray(path.read_bytes())
    if damage == "garbage":
        path.write_bytes(b"not a database at all" * 1000)
    elif damage == "hole":
        content[8192 : len(content) - 8192] = bytes(len(content) - 16384)
        path.write_bytes(content)
    else:
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("UPDATE zones SET standing = '{}'")
        database.close()
    with pytest.raises(StoreError, match=rf"{path} (cannot be used|holds what no cloud wrote): .* another --state"):  # noqa: SIM117
        with Store(tmp_path) as store:
            store.load(a_run(), 100.0)


WRITER = """
import sys
from pathlib import Path
from cloud.state import Change
from cloud.store import Store
from sgfusion.reports import Event
from tests.cloud.values import a_round, a_run
store = Store(Path(sys.argv[1]))
state = store.load(a_run(rounds=100_000), 0.0)
number = int(sys.argv[2])
while True:
    number += 1
    store.save([Change(state, zone="ash", rounds=(a_round(number, loss=float(number)),), events=(Event(number, "."),))])
    print(number, flush=True)
"""


def test_what_was_acknowledged_is_there_after_a_sigkill_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 (moments, not secrets)
    acknowledged = 0
    for _ in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path, str(acknowledged)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == f"{acknowledged + 1}\n"
        time.sleep(chance.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged + 1, *map(int, writer.stdout.read().split())])
        writer.wait()
        writer.stdout.close()
        with Store(tmp_path) as store:
            store.load(a_run(rounds=100_000), 0.0)
            found, after = [], -1
            while page := store.rounds("ash", after):
                found += [(record.report.round, record.loss) for record in page]
                after = page[-1].report.round
        # One more may have been written and not yet said.
        assert len(found) in (acknowledged, acknowledged + 1)
        assert found == [(number, float(number)) for number in range(1, len(found) + 1)]
        acknowledged = len(found)
