"""`sgfusion cloud` as a real process: killed at any moment it comes back with the same, and it stops when told."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc.aio
import numpy as np
import pytest

from sgfusion.errors import UnavailableError
from sgfusion.reports import RunStatus
from sgfusion.runfile import parse_run_file
from sgfusion.wire.channel import Keys
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity
from sgfusion.wire.service import PARENT, announced
from sgfusion.zone_tree import fit_zone_tree
from tests.cloud.clouds import planned
from tests.cloud.values import MASSES, MODEL, NAMES, THETA, a_report, a_round, run_text
from tests.cluster.keys import CLOUD, OPERATOR, dialled, keys_in, run_async

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
MANY = tuple(f"zone{number:02d}" for number in range(40))
SLOW = "\n[hrg]\nrestarts = 300\n"
"""A fit of some seconds, for a kill to fall into."""
ENDLESS = "\n[hrg]\nrestarts = 1000000\n"


class Process:
    """A cloud of its own process; its log is in `log`."""

    def __init__(self, folder: Path, text: str, *arguments: str) -> None:
        run_file = folder / "run.toml"
        run_file.write_text(text)
        self.state = folder / "state"
        self.log = folder / "log"
        command = [sys.executable, "-m", "console.main", "cloud", str(run_file), "--state", str(self.state)]
        command += ["--listen", "127.0.0.1:0", *(arguments or ("--insecure",))]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), PARENT: ""}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)

    def wait_for(self, holds: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE
        while not holds():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.01)  # between two looks

    def address(self) -> str:
        self.wait_for(lambda: announced(self.state))
        return announced(self.state) or ""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        (self.state / "address").unlink(missing_ok=True)  # as a reader would, who knows that it is dead


@contextmanager
def started(folder: Path, text: str, *arguments: str) -> Iterator[Process]:
    process = Process(folder, text, *arguments)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()


def histogram_of(zone: str) -> tuple[float, ...]:
    if zone in MASSES:
        return MASSES[zone]
    mass = np.random.default_rng(int(zone[-2:])).dirichlet(np.ones(4))
    return tuple(mass.tolist())


async def arrive(address: str, zones: tuple[str, ...], keys: dict[Identity, Keys] | None = None) -> None:
    for zone in zones:
        me = Identity("edge", zone)
        async with dialled(address, me=me, keys=None if keys is None else keys[me]) as channel:
            client = CloudClient(channel)
            await client.enrol(zone, f"{zone}:1", timeout=60)
            await client.submit_histogram(zone, histogram_of(zone), devices=2, model=MODEL, initial=THETA, timeout=60)


async def dendrogram_at(address: str) -> str:
    """The dendrogram, when there is one."""
    async with dialled(address, me=OPERATOR) as channel:
        client = CloudClient(channel)
        async for status in client.watch_status():
            assert not status.overdue
            if status.plan:
                break
        return (await client.records())[0]


def the_tree(text: str, zones: tuple[str, ...]) -> str:
    run = parse_run_file(text)
    return fit_zone_tree([histogram_of(zone) for zone in zones], zones, run).to_json()


# Kills


def test_the_dendrogram_is_the_same_after_kills_before_during_and_after_the_fit(tmp_path: Path) -> None:
    text = run_text(MANY) + SLOW
    with started(tmp_path, text) as cloud:  # before the fit, with some zones in
        run_async(arrive(cloud.address(), MANY[:15]), PATIENCE)
        cloud.kill()
    with started(tmp_path, text) as cloud:  # during
        begun = cloud.log.read_text().count("fits plan 1")
        run_async(arrive(cloud.address(), MANY[15:]), PATIENCE)
        cloud.wait_for(lambda: cloud.log.read_text().count("fits plan 1") > begun)
        cloud.kill()
        assert ": plan 1 over 40 zones" not in cloud.log.read_text()
    with started(tmp_path, text) as cloud:  # nobody comes: it knows by itself that a fit is due
        tree = run_async(dendrogram_at(cloud.address()), PATIENCE)
        cloud.kill()
    with started(tmp_path, text) as cloud:  # after
        assert run_async(dendrogram_at(cloud.address()), PATIENCE) == tree
        assert cloud.log.read_text().count(": plan 1 over 40 zones") == 1
    assert tree == the_tree(text, MANY)


def test_every_acknowledged_round_outlives_a_kill(tmp_path: Path) -> None:
    text = run_text(rounds=10_000)
    acknowledged = 0

    async def report(cloud: Process, address: str) -> None:
        nonlocal acknowledged
        async with dialled(address, me=Identity("edge", "ash")) as channel:
            client = CloudClient(channel)
            await client.enrol("ash", "ash:1", timeout=60)
            asyncio.get_running_loop().call_later(0.3, cloud.process.kill)
            try:
                while True:
                    number = acknowledged + 1
                    assert await client.report(a_report("ash", round=number, rounds=(a_round(number),))) >= number
                    acknowledged = number
            except UnavailableError:
                return

    async def stored(address: str) -> list[int]:
        async with dialled(address, me=OPERATOR) as channel:
            _, records = await CloudClient(channel).records()
        return [record.report.round for record in records[0].rounds]

    for _ in range(3):
        with started(tmp_path, text) as cloud:
            run_async(report(cloud, cloud.address()), PATIENCE)
            cloud.kill()
        with started(tmp_path, text) as cloud:
            found = run_async(stored(cloud.address()), PATIENCE)
        (cloud.state / "address").unlink(missing_ok=True)
        assert found == list(range(1, len(found) + 1))
        assert len(found) in (acknowledged, acknowledged + 1)
        acknowledged = len(found)
    assert acknowledged > 30


# Ends


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_soon_with_streams_open_and_a_fit_under_way(tmp_path: Path, number: signal.Signals) -> None:
    text = run_text(MANY) + ENDLESS

    async def watched(cloud: Process, address: str) -> None:
        await arrive(address, MANY)
        async with dialled(address, me=OPERATOR) as one, dialled(address, me=Identity("edge", MANY[0])) as two:
            statuses = CloudClient(one).watch_status()
            first: RunStatus = await anext(statuses)
            assert first.plan == 0
            coming = asyncio.create_task(anext(planned(CloudClient(two).watch_plan(MANY[0]))))
            await asyncio.sleep(0.2)
            cloud.process.send_signal(number)
            with pytest.raises(UnavailableError):
                await coming
            code = await asyncio.to_thread(cloud.process.wait, 30)
            assert code == 0, cloud.log.read_text()

    with started(tmp_path, text) as cloud:
        run_async(watched(cloud, cloud.address()), PATIENCE)
        log = cloud.log.read_text()
        assert f"stops: {number.name}" in log
        assert "Traceback" not in log
        assert announced(cloud.state) is None


def test_over_tls_with_the_folders_that_certs_makes(tmp_path: Path) -> None:
    identities = [CLOUD, OPERATOR, *(Identity("edge", zone) for zone in NAMES)]
    keys = keys_in(tmp_path / "certs", identities)

    async def work(address: str) -> None:
        await arrive(address, NAMES, keys)
        async with dialled(address, me=OPERATOR, keys=keys[OPERATOR]) as channel:
            async for status in CloudClient(channel).watch_status():
                if status.plan:
                    break
        with pytest.raises((UnavailableError, grpc.aio.AioRpcError)):
            async with dialled(address, me=OPERATOR) as channel:
                await CloudClient(channel).status(timeout=3)

    with started(tmp_path, run_text(), "--certs", str(tmp_path / "certs" / "cloud")) as cloud:
        run_async(work(cloud.address()), PATIENCE)
        assert f"cloud of woods: serves at {announced(cloud.state)}\n" in cloud.log.read_text()


def refusal(folder: Path, text: str, *arguments: str) -> str:
    with started(folder, text, *arguments) as cloud:
        assert cloud.process.wait(PATIENCE) == 1
        return " ".join(cloud.log.read_text().split())


def test_without_names_it_says_what_to_do(tmp_path: Path) -> None:
    said = refusal(tmp_path, run_text(()))
    assert "error: zones.names is empty" in said
    assert "Name them in the run file" in said


def test_a_given_dendrogram_is_checked_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "tree.json").write_text(the_tree(run_text(NAMES[:3]), NAMES[:3]))
    said = refusal(tmp_path, run_text() + '\n[hrg]\nfrom = "tree.json"\n')
    assert "is over the zones ash, birch, cedar, the run's are ash, birch, cedar, elm, fir" in said


def test_keys_or_none_must_be_said(tmp_path: Path) -> None:
    assert "give --certs DIR" in refusal(tmp_path, run_text(), "--lease", "5")
    assert "give --certs DIR" in refusal(tmp_path, run_text(), "--insecure", "--certs", str(tmp_path))


def test_plain_text_stays_on_this_machine(tmp_path: Path) -> None:
    assert "loopback" in refusal(tmp_path, run_text(), "--insecure", "--listen", "0.0.0.0:0")


def test_another_runs_folder_and_one_in_use_are_refused(tmp_path: Path) -> None:
    with started(tmp_path, run_text()) as cloud:
        address = cloud.address()
        other = tmp_path / "other"
        other.mkdir()
        said = refusal(other, run_text(), "--insecure", "--state", str(cloud.state))
        assert "is in use by another cloud" in said
        assert announced(cloud.state) == address  # the first one's is untouched
        cloud.kill()
    said = refusal(tmp_path, run_text(NAMES[:3]))
    assert "holds the run 'woods', this one is 'woods'; they differ in zones" in said
