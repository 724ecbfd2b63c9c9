"""`sgfusion watch` beside real clusters: through a restart of the cloud to the end, on a terminal, in a folder."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cloud.absences import COMING_BACK
from console.reach import enter
from console.watch import InFolder
from simulator.held_folder import is_held
from tests.cluster.harness import PATIENCE, Cluster, cluster_of, run_of
from tests.cluster.test_follow import reach
from tests.console.commands import sgfusion, start_sgfusion
from tests.page.relay import relayed
from tests.unhurried import UNHURRIED

COMMAND = [sys.executable, "-m", "console.main", "watch"]
LOADS_UNTIL = """
import pathlib, sys, time

class Gate:
    @staticmethod
    def find_spec(name, path=None, target=None):
        while name == "console.up" and not pathlib.Path("{gate}").exists():
            time.sleep(0.02)

sys.meta_path.insert(0, Gate)
"""
"""Has `sgfusion up` load for as long as there is no such file."""


class Watching:
    """The command as a process, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], out: int) -> None:
        self.process, self._out, self._said = process, out, b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while piece := os.read(self._out, 65_536):
                self._said += piece
        except OSError:  # a terminal whose other end is gone
            pass

    @property
    def said(self) -> str:
        return self._said.decode("utf-8", "replace")

    def until(self, pattern: str, patience: float = PATIENCE) -> None:
        end = time.monotonic() + patience
        while not re.search(pattern, self.said):
            assert time.monotonic() < end, f"no {pattern!r} in:\n{self.said}"
            assert self.process.poll() is None or re.search(pattern, self.said), self.said
            time.sleep(0.02)

    def ends(self, patience: float = PATIENCE) -> int:
        code = self.process.wait(patience)
        self._reader.join(10)
        return code


@contextmanager
def watching(*arguments: str, terminal: tuple[int, int] | None = None) -> Iterator[Watching]:
    """On a terminal of so many columns and rows, or on a pipe."""
    mine, theirs = os.pipe() if terminal is None else pty.openpty()
    if terminal is not None:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", terminal[1], terminal[0], 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    try:
        yield Watching(process, mine)
    finally:
        process.kill()
        process.wait()
        os.close(mine)


def test_it_goes_on_through_a_restart_of_the_cloud_and_ends_with_the_run(tmp_path: Path) -> None:
    with cluster_of(run_of("rounds=40"), tmp_path) as cluster:
        cluster.until_round(2)
        with cluster.frozen("devices-0"), watching(*reach(cluster)) as watch:
            watch.until(r"s ago  zone \w+ has reported the histogram of 3 devices")
            watch.until(r"s  4 zones: 4 training · round \d+( to \d+)? of 40 · devices 12/12 · validation RMSE")
            cluster.kill("cloud")
            watch.until("the cloud is away: no connection to")
            cluster.start_service("cloud")
            seen = len(watch.said)
            watch.until(rf"(?s).{{{seen},}}4 zones: 4 training")
            os.kill(cluster.pid("devices-0"), signal.SIGCONT)
            assert watch.ends() == 0, watch.said
            lines = watch.said.splitlines()
    assert sum("zone ash is done" in line for line in lines) == 1
    assert lines[-2].startswith("4 zones: 4 done · round 40 of 40 · devices 12/12 · validation RMSE ")
    assert lines[-1] == "The run has finished"


def test_on_a_terminal_it_shows_who_is_gone_and_ctrl_c_ends_the_watching_alone(tmp_path: Path) -> None:
    with cluster_of(run_of(UNHURRIED, "rounds=3000"), tmp_path, hosts=2) as cluster:
        cluster.until_round(1)
        with watching(*reach(cluster), terminal=(80, 24)) as watch:
            watch.until(r"ash +\x1b[^ ]* ?training")
            cluster.kill("devices-1")
            watch.until(r"birch: missing: d0, d1.* \(its stream has ended\)")
            watch.until(r"rounds/min")
            watch.process.send_signal(signal.SIGINT)
            assert watch.ends() == 130
            shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", watch.said)
        assert "Ctrl-C ends the watching, not the run" in shown
        assert "no longer watching; that ends nothing else" in shown
        assert all(len(line) <= 80 for frame in shown.split("\r") for line in frame.splitlines())
        assert not cluster.status().finished
        cluster.refuse_the_dead()


def test_a_cloud_that_is_frozen_is_told_of_and_so_is_its_return_with_and_without_a_terminal(tmp_path: Path) -> None:
    """Its connection is there, and a calm run says nothing either: it has to be asked."""
    with cluster_of(run_of("rounds=100000"), tmp_path) as cluster:
        cluster.until_round(1)
        with watching(*reach(cluster)) as piped, watching(*reach(cluster), terminal=(100, 24)) as shown:
            piped.until("4 zones: 4 training")
            shown.until("4 zones: 4 training")
            with cluster.frozen("cloud"):
                for watch in (piped, shown):
                    watch.until(r"the cloud does not answer: nothing was heard of it for \d+ s")
            for watch in (piped, shown):
                watch.until(r"the cloud answers again: nothing was heard of it for \d+ s")


def test_a_zone_whose_edge_is_frozen_is_not_said_to_train(tmp_path: Path) -> None:
    """Long before its lease runs out, for others wait for it; until it goes on."""
    with cluster_of(run_of("rounds=100000", "sampler.kind=all"), tmp_path) as cluster:
        cluster.until(lambda s: all(zone.round > 5 for zone in s.zones))
        with cluster.frozen("edge-birch"):
            status = cluster.until(lambda s: s.zones[1].standing == "not answering")
            assert [zone.standing for zone in status.zones if zone.zone != "birch"] == ["training"] * 3
            assert status.zones[1].leased
        cluster.until(lambda s: s.zones[1].standing == "training")


def test_devices_whose_lines_are_cut_and_that_are_back_at_once_are_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of("rounds=100000", "zones.names=['ash']")
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges("ash")
        with relayed(f"http://{cluster.address('edge-ash')}") as relay:
            monkeypatch.setattr(cluster, "_place", lambda _: relay.url.removeprefix("http://").rstrip("/"))
            cluster.host("devices", zones=["ash"])
            # The cloud gives devices of a zone that has just come time to gather: until then nothing is news.
            cluster.until(lambda s: s.zones[0].round > 5 and s.time > s.events[-1].time + COMING_BACK)
            relay.cut()
            status = cluster.until(lambda s: "moment" in s.events[-1].text or "attend again" in s.events[-1].text)
    assert status.zones[0].attendance.departures >= 3
    assert "attend" in status.events[-1].text


@contextmanager
def in_a_folder(tmp_path: Path, *overrides: str) -> Iterator[tuple[Path, Cluster]]:
    """A cluster where `sgfusion up` would have it."""
    folder = tmp_path / "results"
    with cluster_of(run_of(*overrides), folder / "cluster" / "mark") as cluster:
        enter(cluster.folder, cluster.operator_folder)
        yield folder, cluster


def ended(folder: Path, mark: str) -> None:
    (folder / "cluster" / "finished.json").write_text(json.dumps({"fingerprint": mark, "summary": ""}))


def test_a_local_run_may_end_while_its_cloud_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its folder says so; what it says of a run before this one is of no concern."""
    with in_a_folder(tmp_path, UNHURRIED, "rounds=2000") as (folder, cluster):
        ended(folder, "another")
        cluster.until_round(1)
        with watching(str(folder)) as watch:
            watch.until("4 zones: 4 training")
            cluster.services["cloud"].signal(signal.SIGTERM)
            watch.until(
                "the cloud is away: it does not serve: sgfusion up was stopped, and goes on if it is typed again"
            )
            assert watch.process.poll() is None
            ended(folder, "mark")
            assert watch.ends() == 0
            assert f"The run has finished: {folder} has its results" in watch.said
        cluster.services["cloud"].wanted = False
    again = sgfusion(capsys, "watch", folder)
    assert (again.code, "The run has finished" in again.out) == (0, True)


def test_a_folder_without_a_cluster_and_a_cloud_that_is_a_stranger_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = sgfusion(capsys, "watch", tmp_path)
    assert (nowhere.code, "no cluster runs in" in nowhere.error) == (1, True)
    neither = sgfusion(capsys, "watch")
    assert (neither.code, "--cloud HOST:PORT" in neither.error) == (1, True)
    assert not InFolder(tmp_path).finished()
    with cluster_of(run_of("zones.names=['ash']"), tmp_path / "one", start=False) as cluster:
        cluster.start_service("cloud")
        cluster.wait_for(["cloud"])
        address = cluster.address("cloud") or ""
        edge = tmp_path / "one" / "certs" / "edge-ash"
        refused = sgfusion(capsys, "watch", "--cloud", address, "--certs", edge)
    assert (refused.code, "operator is needed" in refused.error) == (1, True)


def test_who_looks_while_up_still_loads_is_told_so_and_who_watches_sees_it_train(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a second terminal, in the first seconds of the first one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(run_of(UNHURRIED, "rounds=100000").to_toml(), "utf-8")
    up = start_sgfusion(
        "up", "run.toml", "--out", "results/first", "--no-alone", "--page", "off",
        first=LOADS_UNTIL.format(gate=tmp_path / "gate"),
    )  # fmt: skip
    try:
        end = time.monotonic() + PATIENCE
        while not is_held(Path("results/first")):
            assert up.poll() is None, up.communicate()[0]
            assert time.monotonic() < end
            time.sleep(0.02)  # between two looks
        refused = sgfusion(capsys, "status")
        assert refused.code == 1
        assert "In results/first a sgfusion command is at work" in " ".join(refused.error.split())
        with watching() as found, watching("results/first") as named:
            for watch in (found, named):
                watch.until("still loads: waits for it, 120 s at most")
            (tmp_path / "gate").touch()
            for watch in (found, named):
                watch.until("4 zones: 4 training")
    finally:
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=PATIENCE)
    assert up.returncode == 130
