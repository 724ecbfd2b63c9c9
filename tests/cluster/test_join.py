"""`sgfusion join` as people type it: beside a cluster that `sgfusion up` runs, in another terminal."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console.doctor.processes import look_at_processes, process_findings
from console.reach import of_folder
from sgfusion.errors import SGFusionError
from sgfusion.plan import ZoneState
from sgfusion.reports import RunStatus
from tests.cluster.harness import PATIENCE, RUN
from tests.console.test_join import RUN as TABLE_RUN
from tests.console.test_join import write_table
from tests.slow_task import write_slow_task

COMMAND = [sys.executable, "-m", "console.main"]
ENDLESS = 100_000
Running = Sequence[tuple[subprocess.Popen[bytes], Path]]


@contextmanager
def started(*arguments: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a process that is asked to end, as by Ctrl-C, if it is still there."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], cwd=log.parent, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def until(folder: Path, seen: Callable[[RunStatus], bool], running: Running) -> None:
    """Look until it is seen; who runs must go on to run."""
    end = time.monotonic() + PATIENCE
    while True:
        for process, log in running:
            assert process.poll() is None, log.read_text()
        try:
            if seen(of_folder(folder).ask(lambda client: client.status())):
                return
        except SGFusionError:
            pass  # not there yet
        assert time.monotonic() < end
        time.sleep(0.1)  # between two looks


def of(name: str, status: RunStatus) -> tuple[ZoneState, int]:
    return next(((zone.state, zone.round) for zone in status.zones if zone.zone == name), (ZoneState.EXPECTED, 0))


def listed(out: Path, of: str = "") -> list[dict[str, Any]]:
    """What Prometheus is told of the cluster, or of a zone that joined."""
    found: list[dict[str, Any]] = json.loads((out / "cluster" / f"targets{of}.json").read_bytes())
    return found


def target_of(instance: str, targets: list[dict[str, Any]]) -> str:
    ((target,),) = [each["targets"] for each in targets if each["labels"]["instance"] == instance]
    return str(target)


def answered(target: str) -> str:
    with urllib.request.urlopen(f"http://{target}/metrics", timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def prometheus_can_read_who_joined(out: Path) -> None:
    """By names that nobody of the cluster's own list has: else two processes would be one to Prometheus."""
    joined, own = listed(out, "-elm"), listed(out)
    every = {"job": "sgfusion", "run": "cluster"}
    assert [each["labels"] for each in joined] == [
        {**every, "instance": "devices-of-elm", "tier": "device"},
        {**every, "instance": "edge-elm", "tier": "edge"},
    ]
    assert not {each["labels"]["instance"] for each in joined} & {each["labels"]["instance"] for each in own}
    assert 'sgfusion_device_attending{zone="elm"} 3.0' in answered(target_of("devices-of-elm", joined))
    assert 'sgfusion_edge_devices{state="attending",zone="elm"} 3.0' in answered(target_of("edge-elm", joined))


def test_a_zone_joins_leaves_by_ctrl_c_and_comes_back_where_it_was(tmp_path: Path) -> None:
    text = RUN.replace(', "elm"]', "]").replace("rounds = 6", f"rounds = {ENDLESS}")
    slow = write_slow_task(tmp_path, seconds=0.1)
    (tmp_path / "run.toml").write_text(text.replace('"linear"', f'"{slow}"'), "utf-8")
    out, cluster, zone = tmp_path / "results" / "woods", tmp_path / "up.log", tmp_path / "join.log"
    with started("up", "run.toml", "--out", Path("results", "woods"), "--no-alone", log=cluster) as up:
        until(out, lambda s: all(z.round >= 1 for z in s.zones), [(up, cluster)])
        with started("join", "--zone", "elm", log=zone) as join:  # it finds the one that runs
            until(out, lambda s: of("elm", s)[1] >= 2 and s.plan == 2, [(up, cluster), (join, zone)])
            until(out, lambda _: len(listed(out, "-elm")) == 2, [(up, cluster), (join, zone)])
            prometheus_can_read_who_joined(out)
            ours, theirs = look_at_processes(out)
            assert (ours.keeper.name, ours.keeper.pid) == ("sgfusion up", up.pid)
            assert (theirs.keeper.name, theirs.keeper.pid) == ("sgfusion join", join.pid)
            assert [process.name for process in theirs.processes] == ["edge-elm", "devices-0"]
            assert {finding.verdict for finding in process_findings([ours, theirs])} == {"ok"}
        assert join.returncode == 130
        first = "zone elm with 3 devices joins the cluster in results/woods. Ctrl-C takes it out again"
        assert zone.read_text().splitlines()[0] == first
        assert (listed(out, "-elm"), len(listed(out))) == ([], 1 + 3 + 2)  # the cluster's own list is as it was
        assert answered(target_of("cloud", listed(out)))
        assert "zone elm has left the run" in zone.read_text()
        assert [group.keeper.name for group in look_at_processes(out)] == ["sgfusion up"]
        until(out, lambda s: of("elm", s)[0] is ZoneState.LEFT and s.plan == 3, [(up, cluster)])
        (edge_log,) = out.glob("cluster/*/joined/elm/logs/edge-elm.log")
        assert "goes on after round" not in edge_log.read_text()
        with started("join", out, "--zone", "elm", log=zone) as join:
            until(out, lambda s: of("elm", s)[0] is ZoneState.TRAINING and s.plan == 4, [(up, cluster), (join, zone)])
        assert "goes on after round" in edge_log.read_text()
    assert up.returncode == 130


def test_a_zone_that_joined_goes_on_when_the_cluster_was_stopped_and_started_again(tmp_path: Path) -> None:
    """Its cloud is then at another port, and the zone's edge would wait for it where it was."""
    text = RUN.replace(', "elm"]', "]").replace("rounds = 6", f"rounds = {ENDLESS}")
    slow = write_slow_task(tmp_path, seconds=0.1)
    (tmp_path / "run.toml").write_text(text.replace('"linear"', f'"{slow}"'), "utf-8")
    out, cluster, zone = tmp_path / "results", tmp_path / "up.log", tmp_path / "join.log"
    again = ("up", "run.toml", "--out", "results", "--no-alone")
    with started(*again, log=cluster) as up:
        until(out, lambda s: all(z.round >= 1 for z in s.zones), [(up, cluster)])
        with started("join", out, "--zone", "elm", log=zone) as join:
            until(out, lambda s: of("elm", s)[1] >= 2, [(up, cluster), (join, zone)])
            before = of_folder(out).ask(lambda client: client.status())
            up.send_signal(signal.SIGINT)
            assert up.wait(PATIENCE) == 130
            with started(*again, log=cluster) as up_again:
                running = [(up_again, cluster), (join, zone)]
                until(out, lambda s: of("elm", s)[1] > of("elm", before)[1] + 2, running)
                until(out, lambda s: of("elm", s)[0] is ZoneState.TRAINING, running)
        assert "the cluster was started again, its cloud is at 127.0.0.1:" in zone.read_text()


def test_a_zone_joins_with_a_file_of_its_own(tmp_path: Path) -> None:
    """As docs/own-data.md has it: the path is that of the folder where one types."""
    write_table(tmp_path / "steps.csv", "lake", "mountain")
    write_table(tmp_path / "more.csv", "harbour")
    text = TABLE_RUN.format(path="steps.csv").replace("rounds = 4", f"rounds = {ENDLESS}")
    slow = write_slow_task(tmp_path, seconds=0.1)
    (tmp_path / "run.toml").write_text(text.replace('"linear"', f'"{slow}"'), "utf-8")
    out, cluster, zone = tmp_path / "results", tmp_path / "up.log", tmp_path / "join.log"
    with started("up", "run.toml", "--out", "results", "--no-alone", log=cluster) as up:
        until(out, lambda s: all(z.round >= 1 for z in s.zones), [(up, cluster)])
        with started("join", "results", "--zone", "harbour", "--set", "data.path=more.csv", log=zone) as join:
            until(out, lambda s: of("harbour", s)[1] >= 1 and s.plan == 2, [(up, cluster), (join, zone)])
