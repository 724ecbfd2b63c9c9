"""`sgfusion up` as people type it: the same folder as `simulate`, and what happens when it is interrupted."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil
import pytest

from console.doctor.processes import look_at_processes, process_findings
from tests.cluster.harness import RUN

PATIENCE = 200.0
SAME = ("rounds.jsonl", "dendrogram.json", *(f"models/{zone}.safetensors" for zone in ("ash", "birch", "cedar", "elm")))


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "console.main", *words]


def sgfusion(folder: Path, *words: str) -> str:
    done = subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(folder: Path, *overrides: str) -> Path:
    """The run file of these tests in the folder; overrides are lines at its top."""
    (folder / "run.toml").write_text("\n".join(overrides) + RUN.replace("rounds = 6", "") if overrides else RUN)
    return folder


def assert_same(one: Path, other: Path) -> None:
    for name in SAME:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@contextmanager
def ended(words: list[str], folder: Path, out: IO[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards, whatever happens."""
    process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def left(folder: Path) -> list[psutil.Process]:
    """Processes of a cluster in that folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if any(str(folder) in word for word in line) and "console.main" in line and "up" not in line:
            found.append(process)
    return found


def until(holds: Callable[[], object], patience: float = 120.0) -> None:
    end = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def rounds_of(folder: Path) -> int:
    """The rounds that the zone ash has on disk."""
    names = sorted(path.name for path in folder.glob("cluster/*/edges/ash/checkpoints/round-*.json"))
    return int(names[-1][6:14]) if names else 0


def test_up_and_simulate_write_the_same_folder(tmp_path: Path) -> None:
    written(tmp_path)
    said = sgfusion(tmp_path, "up", "run.toml", "--out", "up")
    sgfusion(tmp_path, "simulate", "run.toml", "--out", "simulated")
    assert_same(tmp_path / "up", tmp_path / "simulated")
    ours, theirs = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("up", "simulated"))
    assert ours["pooled"].items() >= theirs["pooled"].items()
    for key in ("method", "metric", "drawn", "homophily", "parameters", "device_gradients", "bytes_sent"):
        assert ours[key] == theirs[key], key
    for zone, row in theirs["zones"].items():
        assert {key: ours["zones"][zone][key] for key in row} == row
        assert ours["zones"][zone]["alone"] is not None
    assert "alone" in said
    assert re.search(r"^page: http://127\.0\.0\.1:\d+/$", said, re.MULTILINE)
    assert "sgfusion view up" in said
    assert set(re.findall(r"s  zone (\w+) enrolled at", said)) == set(theirs["zones"])
    curves = [json.loads((tmp_path / name / "zones.json").read_text()) for name in ("up", "simulated")]
    for zone in curves[1]["zones"]:
        one, other = (found["zones"][zone] for found in curves)
        assert {key: one[key] for key in other} == other
    assert (curves[0]["edges"], curves[0]["pooled"]) == (curves[1]["edges"], curves[1]["pooled"])
    assert [plan["version"] for plan in curves[0]["plans"]] == [1]
    assert curves[0]["events"]
    assert not left(tmp_path)


def test_a_page_says_what_zones_came_to_alone_in_an_earlier_run(tmp_path: Path) -> None:
    """Nothing of that hangs on who shares with whom: another run in the same folder has it from the start."""
    written(tmp_path)
    sgfusion(tmp_path, "up", "run.toml", "--out", "up", "--page", "off")
    alone = {
        zone: row["alone"] for zone, row in json.loads((tmp_path / "up/summary.json").read_text())["zones"].items()
    }
    words = command("up", "run.toml", "--out", str(tmp_path / "up"), "--set", "hrg.sharpness=1.0")
    words += ["--page", "127.0.0.1:0"]
    with (tmp_path / "said").open("w") as out, ended(words, tmp_path, out) as up:
        until(lambda: "page: http" in (tmp_path / "said").read_text())
        (url,) = re.findall(r"^page: (http://\S+)$", (tmp_path / "said").read_text(), re.MULTILINE)
        with urllib.request.urlopen(f"{url}api/run", timeout=60) as answer:  # noqa: S310 (our own)
            found = json.load(answer)
        up.send_signal(signal.SIGINT)
        up.wait(60)
    assert found["run"]["sharpness"] == 1.0
    assert {zone["name"]: zone["alone"] for zone in found["zones"]} == pytest.approx(alone, rel=1e-5)


def test_with_noise_simulate_takes_ups_dendrogram(tmp_path: Path) -> None:
    written(tmp_path)
    noised = ("--set", "histogram.epsilon=1.0")
    sgfusion(tmp_path, "up", "run.toml", *noised, "--out", "up", "--no-alone")
    sgfusion(tmp_path, "simulate", "run.toml", *noised, "--set", "hrg.from=up/dendrogram.json", "--out", "simulated")
    assert_same(tmp_path / "up", tmp_path / "simulated")


def test_ctrl_c_stops_all_and_a_second_up_goes_on(tmp_path: Path) -> None:
    written(tmp_path, "rounds = 100")
    words = command("up", "run.toml", "--out", str(tmp_path / "up"), "--no-alone")
    with (tmp_path / "said").open("w") as out, ended(words, tmp_path, out) as up:
        until(lambda: rounds_of(tmp_path / "up") >= 5)
        up.send_signal(signal.SIGINT)
        code = up.wait(60)
    said = (tmp_path / "said").read_text()
    assert code == 130, said
    assert "go on" in said
    assert not left(tmp_path)
    assert look_at_processes(tmp_path / "up") == [], "they were stopped in order"
    reached = rounds_of(tmp_path / "up")
    assert 5 <= reached < 100
    sgfusion(tmp_path, "up", "run.toml", "--out", str(tmp_path / "up"), "--no-alone")
    (log,) = (tmp_path / "up" / "cluster").glob("*/logs/edge-ash.log")
    assert f"goes on after round {reached}" in log.read_text()
    sgfusion(tmp_path, "simulate", "run.toml", "--out", "simulated")
    assert_same(tmp_path / "up", tmp_path / "simulated")
    again = sgfusion(tmp_path, "up", "run.toml", "--out", str(tmp_path / "up"), "--no-alone")
    assert "is finished" in again


def test_a_killed_up_leaves_nobody_behind_and_a_killed_service_is_started_again(tmp_path: Path) -> None:
    written(tmp_path, "rounds = 100")
    words = command("up", "run.toml", "--out", str(tmp_path / "up"), "--no-alone")
    with (tmp_path / "said").open("w") as said, ended(words, tmp_path, said) as up:
        until(lambda: rounds_of(tmp_path / "up") >= 5)
        up.kill()
        up.wait(30)
        until(lambda: not left(tmp_path), 60)
        gone = f"sgfusion up (process {up.pid}) was killed, and none of its 7 processes is left"
        # One that is ending has no command line any more, and is there for a moment all the same.
        until(lambda: [each.text for each in process_findings(look_at_processes(tmp_path / "up"))] == [gone], 60)
    with (tmp_path / "said").open("a") as said, ended(words, tmp_path, said) as up:
        reached = rounds_of(tmp_path / "up")
        until(lambda: rounds_of(tmp_path / "up") > reached)
        (edge,) = (p for p in left(tmp_path) if "edge" in p.cmdline() and "birch" in p.cmdline())
        edge.kill()
        assert up.wait(PATIENCE) == 0, (tmp_path / "said").read_text()
    assert "edge-birch" in (tmp_path / "said").read_text()  # it says what it started again
    assert look_at_processes(tmp_path / "up") == []
    sgfusion(tmp_path, "simulate", "run.toml", "--out", "simulated")
    assert_same(tmp_path / "up", tmp_path / "simulated")


def test_up_answers_by_the_deadline_if_devices_are_missing(tmp_path: Path) -> None:
    """A zone whose devices never come (its host cannot start): the command ends with what it waited for."""
    written(tmp_path)
    broken = tmp_path / "broken.py"
    broken.write_text(
        "from device.sources.generated_zones import open_source as made, Options\n"
        "import sys\n"
        "def open_source(options, zones, seed):\n"
        "    if 'device' in sys.argv: raise SystemExit('no data here')\n"
        "    return made(options, zones, seed)\n"
        "open_source.options = Options\n"
    )
    overrides = ["--set", "data.source=broken:open_source", "--set", "deadlines.zones=3.0"]
    words = command("up", "run.toml", *overrides, "--out", "up", "--no-alone")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert "no data here" in done.stderr + done.stdout or "devices attended" in done.stderr + done.stdout
    assert not left(tmp_path)
