"""`sgfusion view`: the page of what `simulate` has written, in a process of its own."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from console import simulate, viewing
from console.processes import tell
from sgfusion.evaluation import Score
from sgfusion.runfile import load_run_file
from sgfusion.wire.service import ADDRESS, PAGE
from simulator.run import train
from simulator.world import load_world
from tests.console.commands import PATIENCE, sgfusion, start_sgfusion
from tests.simulator.tiny_suite import write_suite

Capture = pytest.CaptureFixture[str]
ZONES = ("north", "south", "west")


@pytest.fixture
def folder(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    run_file = write_suite(tmp_path).with_name("tiny.toml")
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out").code == 0
    return tmp_path / "out"


@contextmanager
def viewed(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it prints."""
    first = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whatever the tests ignore
    process = start_sgfusion("view", folder, "--page", "127.0.0.1:0", *arguments, first=first)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line + process.communicate()[0]
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def fetched(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 (our own)
        return json.load(answer)


def test_it_shows_what_simulate_has_written(folder: Path) -> None:
    with viewed(folder) as (process, url):
        found = fetched(f"{url}api/run")
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310
            assert answer.headers["content-type"].startswith("text/html")
        rounds = fetched(f"{url}api/zone/south")["rounds"]
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(PATIENCE) == 0
        assert time.monotonic() - began < 5
        assert process.stdout is not None
        assert process.stdout.read() == "the page is closed\n"
    run = load_run_file(folder / "run.toml")
    world, trained = load_world(run), train(run, "sgfusion", "south")
    assert (found["run"]["name"], found["run"]["live"], found["run"]["synthetic"]) == ("tiny", False, True)
    assert [zone["name"] for zone in found["zones"]] == list(ZONES)
    assert found["zones"][1]["histogram"] == pytest.approx(world.histograms[1].tolist(), rel=1e-5, abs=1e-5)
    assert (found["zones"][1]["devices"], found["zones"][1]["epsilon"]) == (2, 1.0)
    assert found["edges"] == pytest.approx(world.task.edges.tolist(), rel=1e-5)
    metric = world.task.metric

    def value(score: Score) -> Any:
        return pytest.approx(metric.value(score.total, score.count), rel=1e-5)

    points = trained.outcome.points
    assert [row[:3] for row in found["series"]["south"]["evaluations"]] == [
        [point.round, value(point.validation["south"]), value(point.test["south"])] for point in points
    ]
    best = [row[0] for row in found["series"]["south"]["evaluations"] if row[3]]
    assert best[-1] == trained.outcome.chosen
    assert [row[0] for row in found["pooled"]] == [0, 2, 3]
    assert [row[1] for row in found["series"]["south"]["rounds"]] == [len(r.drawn) for r in trained.reports]
    assert [{int(zone) for zone in line["attention"]} for line in rounds] == [set(r.drawn) for r in trained.reports]


def test_methods_with_one_model_for_all_zones_have_curves_too(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    run_file = write_suite(tmp_path).with_name("tiny.toml")
    assert sgfusion(capsys, "simulate", run_file, "--method", "fedavg", "--out", tmp_path / "out").code == 0
    with viewed(tmp_path / "out") as (_, url):
        found = fetched(f"{url}api/run")
    assert found["run"]["title"] == "FedAvg"
    assert [row[0] for row in found["series"]["west"]["evaluations"]] == [0, 2, 3]
    assert found["series"]["west"]["rounds"] == []


def test_sigterm_ends_it_too(folder: Path) -> None:
    with viewed(folder) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_the_browser_is_opened_if_asked(folder: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    script = f"import sys; open({str(opened)!r}, 'w').write(sys.argv[1])"
    first = (
        "import signal, webbrowser\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"webbrowser.register('ours', None, webbrowser.GenericBrowser([{sys.executable!r}, '-c', {script!r}, '%s']),"
        " preferred=True)\n"
    )
    process = start_sgfusion("view", folder, "--page", "127.0.0.1:0", "--open", first=first)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        end = time.monotonic() + PATIENCE
        while not (opened.exists() and opened.read_text()):
            assert time.monotonic() < end
            time.sleep(0.02)  # between two looks
        assert opened.read_text() in line
    finally:
        process.kill()
        process.communicate()


def test_what_cannot_be_shown_is_said(tmp_path: Path, capsys: Capture) -> None:
    done = sgfusion(capsys, "view", tmp_path)
    assert done.code == 1
    assert "has no summary.json: give the results folder that" in done.error
    (tmp_path / "a-file").touch()
    assert "a-file is a file: give the results folder of a run" in sgfusion(capsys, "view", tmp_path / "a-file").error
    done = sgfusion(capsys, "view", tmp_path, "--page", "0.0.0.0:80")
    assert (done.code, "shown on this machine alone" in done.error) == (1, True)
    done = sgfusion(capsys, "view", tmp_path, "--page", "80")
    assert (done.code, "expected host:port" in done.error) == (1, True)


def test_without_its_packages_it_says_what_to_install(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, viewing.__name__)
    for name in [name for name in sys.modules if name.startswith("cloud.page.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = sgfusion(capsys, "view", folder)
    assert done.code == 1
    assert "uvicorn cannot be imported" in done.error


def test_of_a_folder_that_is_trained_in_again_the_results_so_far_are_shown_and_said_to_be_such(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewing, "_serve", AsyncMock())
    state = folder / "cluster" / "0123"
    (state / "cloud").mkdir(parents=True)
    tell(state, "sgfusion up", [])
    before = f"{folder} is being trained: {{}}. These are the results that are there"
    assert before.format(f"the cloud in {folder} is away, and sgfusion up starts it again: try again in seconds") in (
        sgfusion(capsys, "view", folder).out
    )
    (state / "cloud" / ADDRESS).write_text("127.0.0.1:1\n")
    (state / "cloud" / PAGE).write_text("http://127.0.0.1:7080/\n")
    assert before.format("its page is http://127.0.0.1:7080/") in sgfusion(capsys, "view", folder).out
    (state / "processes.json").unlink()
    assert "being trained" not in sgfusion(capsys, "view", folder).out
