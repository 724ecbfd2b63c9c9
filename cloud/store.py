"""Everything that the cloud knows, in one SQLite file: what a call has acknowledged is on disk (architecture, Faults).

Write-ahead log with `synchronous = FULL`: a transaction is fsynced when it ends, so a SIGKILL or a power cut takes
nothing that was acknowledged, and nothing half. One process holds the folder's lock; one thread at a time writes.
"""

import fcntl
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from cloud.documents import (
    evaluation_of,
    evaluation_text,
    model_of,
    model_text,
    round_of,
    round_text,
    standing_text,
    with_standing,
)
from cloud.state import EVENTS, LEASE, Change, Contract, Plan, State, Zone, first_state
from sgfusion.durable import fsync_folder, make_folder
from sgfusion.errors import RunFileError, StoreError
from sgfusion.plan import ZoneState
from sgfusion.reports import Event, RoundRecord, ZoneEvaluation
from sgfusion.runfile import RunFile, parse_run_file
from sgfusion.same_run import training_of

FILE = "cloud.sqlite"
LOCK = "cloud.lock"
VERSION = 1
PAGE = 500  # records read at a time
_SCHEMA = """
CREATE TABLE run (id INTEGER PRIMARY KEY CHECK (id = 1), run TEXT NOT NULL, started REAL NOT NULL) STRICT;
CREATE TABLE zones (
  name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, address TEXT NOT NULL, state TEXT NOT NULL,
  left INTEGER NOT NULL, lost REAL, devices INTEGER NOT NULL, histogram TEXT NOT NULL, standing TEXT NOT NULL
) STRICT;
CREATE TABLE contract (
  id INTEGER PRIMARY KEY CHECK (id = 1), model TEXT NOT NULL, initial BLOB NOT NULL,
  zone TEXT NOT NULL REFERENCES zones (name)
) STRICT;
CREATE TABLE plans (
  version INTEGER PRIMARY KEY, reason TEXT NOT NULL, zones TEXT NOT NULL, histograms TEXT NOT NULL,
  dendrogram TEXT NOT NULL, time REAL NOT NULL
) STRICT;
CREATE TABLE rounds (
  zone TEXT NOT NULL REFERENCES zones (name), round INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (zone, round)
) STRICT, WITHOUT ROWID;
CREATE TABLE evaluations (
  zone TEXT NOT NULL REFERENCES zones (name), round INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (zone, round)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, text TEXT NOT NULL) STRICT;
"""


class Store:
    """The cloud's memory in the folder `folder`. May be called from any thread."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.path = folder / FILE
        self.wrote: float | None = None
        """When an earlier cloud last wrote here, once `load` has found a run; None if there was none."""
        self.committed = 0.0
        """When this one last did, in seconds since 1970 by the machine's clock; `load` is a write too."""
        self._mutex = threading.Lock()
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(
                    f"{folder} is in use by another cloud: stop that one, or give this one another --state"
                ) from None
            self._touched = _last_written(self.path)
            with self._named():
                self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
                try:
                    self._open()
                except BaseException:
                    self._database.close()
                    raise
            fsync_folder(folder)
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let the folder go."""
        with self._mutex:
            self._database.close()
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def load(self, run: RunFile, now: float, lease: float = LEASE) -> State:
        """The run as it was when the last cloud ended, or its beginning: `now` is then when it started.

        `quorum` and `deadlines` may be others than before: they say how long to wait, not what to compute.
        """
        with self._named(), self._transaction():
            row = self._database.execute("SELECT run, started FROM run").fetchone()
            if row is None:
                state = first_state(run, started=now, lease=lease)
                self._database.execute("INSERT INTO run VALUES (1, ?, ?)", (run.to_toml(), now))
                self._put_zones(state.zones.values())
                return state
            self._refuse_other(run, row[0])
            self.wrote = self._touched
            self._database.execute("UPDATE run SET run = ?", (run.to_toml(),))
            return self._stored(first_state(run, started=row[1], lease=lease))

    def save(self, changes: Iterable[Change]) -> None:
        """Write the changes, in their order, all or none; on disk when this returns."""
        with self._named(), self._transaction():
            for change in changes:
                self._put(change)

    def rounds(self, zone: str, after: int = -1) -> list[RoundRecord]:
        """The zone's next rounds after that one, in order; some of them at a time, none at the end."""
        return [round_of(text) for text in self._page("rounds", zone, after)]

    def evaluations(self, zone: str, after: int = -1) -> list[ZoneEvaluation]:
        """The zone's next evaluations after that of a round, likewise."""
        return [evaluation_of(text) for text in self._page("evaluations", zone, after)]

    def round(self, number: int) -> dict[str, RoundRecord]:
        """That round of every zone that has had it, in the order of the zones' numbers."""
        query = "SELECT name, record FROM zones CROSS JOIN rounds ON zone = name AND round = ? ORDER BY zones.number"
        with self._named(), self._mutex:
            return {zone: round_of(text) for zone, text in self._database.execute(query, (number,))}

    def plans(self) -> list[tuple[int, str, tuple[str, ...], float]]:
        """All versions so far: number, reason, zones, when."""
        query = "SELECT version, reason, zones, time FROM plans ORDER BY version"
        with self._named(), self._mutex:
            rows = self._database.execute(query).fetchall()
        return [(version, reason, tuple(json.loads(zones)), time) for version, reason, zones, time in rows]

    def _open(self) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StoreError(
                f"{self.path} is of version {version}, this SGFusion knows up to {VERSION}:"
                " use the SGFusion that wrote it, or another --state"
            )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 5000"):
            self._database.execute(f"PRAGMA {pragma}")
        (health,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if health != "ok":
            raise sqlite3.DatabaseError(" ".join(health.split()))
        if version == 0:
            with self._transaction():
                for statement in _SCHEMA.split(";")[:-1]:
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """SQLite does not say which file it speaks of."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be used: {error}. If the file is damaged, restore it from a copy, or start the run"
                " anew with another --state"
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._mutex:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._database.in_transaction:  # SQLite itself rolls back when the disk is full
                    self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
            self.committed = time.time()

    def _refuse_other(self, run: RunFile, text: str) -> None:
        try:
            before = parse_run_file(text, source=f"the run file in {self.path}")
        except RunFileError as error:
            raise StoreError(f"{self.path} holds a run that this SGFusion cannot read: {error}") from error
        one, other = training_of(before), training_of(run)
        if one == other:
            return
        keys = [name for name in RunFile.model_fields if getattr(one, name) != getattr(other, name)]
        raise StoreError(
            f"{self.path} holds the run {before.name!r}, this one is {run.name!r}; they differ in {', '.join(keys)}:"
            " give this run another --state, or go on with the run file that it was started with"
        )

    def _stored(self, state: State) -> State:
        try:
            contract = self._database.execute("SELECT model, initial, zone FROM contract").fetchone()
            return replace(
                state,
                zones=MappingProxyType({zone.name: zone for zone in self._zones()}),
                contract=None if contract is None else Contract(model_of(contract[0]), contract[1], contract[2]),
                plan=self._last_plan(),
                events=self._events(),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self.path} holds what no cloud wrote: {error!r}. Restore the file from a copy, or start the run anew"
                " with another --state"
            ) from error

    def _put(self, change: Change) -> None:
        write = self._database.executemany
        self._put_zones(change.zones)
        if change.contract is not None:
            said = change.contract
            write("INSERT INTO contract VALUES (1, ?, ?, ?)", [(model_text(said.model), said.initial, said.zone)])
        if change.plan is not None:
            plan = change.plan
            lists = (json.dumps(plan.zones), json.dumps(plan.histograms))
            write(
                "INSERT INTO plans VALUES (?, ?, ?, ?, ?, ?)",
                [(plan.version, plan.reason, *lists, plan.tree, plan.time)],
            )
        rounds = [(change.zone, record.report.round, round_text(record)) for record in change.rounds]
        write("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", rounds)
        points = [(change.zone, point.round, evaluation_text(point)) for point in change.evaluations]
        write("INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?)", points)
        if change.events:
            write(
                "INSERT INTO events (time, text) VALUES (?, ?)", [(event.time, event.text) for event in change.events]
            )
            self._database.execute("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (EVENTS,))

    def _put_zones(self, zones: Iterable[Zone]) -> None:
        self._database.executemany(
            "INSERT INTO zones VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
            " address = excluded.address, state = excluded.state, left = excluded.left, lost = excluded.lost,"
            " devices = excluded.devices, histogram = excluded.histogram, standing = excluded.standing",
            [
                (
                    zone.name, zone.number, zone.address, zone.said.value, zone.left, zone.lost, zone.devices,
                    json.dumps(zone.histogram), standing_text(zone),
                )
                for zone in zones
            ],
        )  # fmt: skip

    def _zones(self) -> Iterator[Zone]:
        columns = "name, number, address, state, left, lost, devices, histogram, standing"
        rows = self._database.execute(f"SELECT {columns} FROM zones ORDER BY number")  # noqa: S608 (our own columns)
        for name, number, address, state, left, lost, devices, histogram, standing in rows.fetchall():
            mass = tuple(json.loads(histogram))
            zone = Zone(name, number, address, ZoneState(state), bool(left), lost, histogram=mass, devices=devices)
            yield with_standing(zone, standing)

    def _last_plan(self) -> Plan | None:
        columns = "version, reason, zones, histograms, dendrogram, time"
        row = self._database.execute(f"SELECT {columns} FROM plans ORDER BY version DESC LIMIT 1").fetchone()  # noqa: S608
        if row is None:
            return None
        version, reason, zones, histograms, tree, time = row
        return Plan(
            version, reason, tuple(json.loads(zones)), tuple(tuple(mass) for mass in json.loads(histograms)), tree, time
        )

    def _events(self) -> tuple[Event, ...]:
        rows = self._database.execute("SELECT time, text FROM events ORDER BY id DESC LIMIT ?", (EVENTS,)).fetchall()
        return tuple(Event(*row) for row in reversed(rows))

    def _page(self, table: str, zone: str, after: int) -> list[str]:
        query = f"SELECT record FROM {table} WHERE zone = ? AND round > ? ORDER BY round LIMIT ?"  # noqa: S608 (ours)
        with self._named(), self._mutex:
            return [text for (text,) in self._database.execute(query, (zone, after, PAGE))]


def _last_written(path: Path) -> float | None:
    """Seconds since 1970, before this process has touched it: SQLite's own log is written first."""
    times = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(FileNotFoundError):
            times.append(file.stat().st_mtime)
    return max(times, default=None)
