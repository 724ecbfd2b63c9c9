"""`sgfusion simulate`, from the command line to the files it leaves."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO

import numpy as np
import pytest
import safetensors.numpy
import tomli_w

from console import results, simulate
from console.main import METHODS as NAMED
from console.main import main
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.durable import replace_file
from sgfusion.runfile import load_run_file
from simulator.methods.registry import METHODS
from simulator.outcome import Outcome
from simulator.suite_folder import SuiteFolder
from simulator.work import Advance, ThisProcess, attempt
from tests.console.commands import ROOT, files, kill_once, sgfusion, start_sgfusion
from tests.simulator.tiny_suite import RUN, write_suite

Capture = pytest.CaptureFixture[str]
ZONES = ["north", "south", "west"]


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    return write_suite(tmp_path).with_name("tiny.toml")


@pytest.fixture(autouse=True)
def no_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer than all the rest; the tests that look at them have them."""
    if "figure" not in request.node.name:
        monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)


def test_the_figure_has_the_runs_name_and_says_if_its_data_is_synthetic(
    run_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    from simulator.world import World

    def title(name: str) -> str:
        assert sgfusion(capsys, "simulate", run_file, "--set", f"name={name}", "--out", tmp_path / "out").code == 0
        return titles.pop()

    titles: list[str] = []

    def save(figure: Figure, file: IO[bytes], **_: object) -> None:
        titles.append("; ".join(axes.get_title("left") for axes in figure.axes))
        file.write(b"a figure")

    monkeypatch.setattr(Figure, "savefig", save)
    first = title("tiny")
    assert first.startswith("tiny (synthetic)\nDendrogram: L = ")
    assert "κ = 1\nChance that the row's zone draws the column's" in first
    assert title("Synthetic-hearts").startswith("Synthetic-hearts\nDendrogram: L = ")
    monkeypatch.setattr(World, "synthetic", False)
    assert title("tiny").startswith("tiny\nDendrogram: L = ")


def test_it_leaves_a_results_folder_with_a_figure(run_file: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    done = sgfusion(capsys, "simulate", run_file, "--out", out)
    assert done.code == 0, done.error
    assert load_run_file(out / "run.toml") == load_run_file(run_file)
    assert ZoneTree.from_json((out / "dendrogram.json").read_text()).zones == tuple(ZONES)
    rounds = [json.loads(line) for line in (out / "rounds.jsonl").read_text().splitlines()]
    assert [(line["zone"], line["round"]) for line in rounds] == [(z, t) for z in range(3) for t in (1, 2, 3)]
    assert (out / "dendrogram.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["method"], summary["title"], summary["seed"]) == ("sgfusion", "SGFusion", 9)
    assert summary["synthetic"] is True
    assert summary["models"] == list(summary["zones"]) == ZONES
    assert summary["drawn"] == pytest.approx(np.mean([len(line["drawn"]) for line in rounds]))
    for name in ("SGFusion, seed 9", "RMSE on the test split", "The data is synthetic", *ZONES):
        assert name in done.out


def test_it_does_not_replace_a_clusters_results(run_file: Path, tmp_path: Path, capsys: Capture) -> None:
    state = tmp_path / "out" / "cluster" / "0123"
    state.mkdir(parents=True)
    (state / "run.toml").write_text("")
    done = sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out")
    assert done.code == 1
    assert "is of a cluster (sgfusion up): a simulation does not replace its results. Give another --out" in " ".join(
        done.error.split()
    )
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["cluster"]


def test_the_summary_is_that_of_the_kept_models(run_file: Path, tmp_path: Path, capsys: Capture) -> None:
    from simulator.world import load_world

    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out").code == 0
    world = load_world(load_run_file(run_file))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    total, labels = 0.0, 0
    for zone in world.data.zones:
        path = tmp_path / "out" / "models" / f"{zone.name}.safetensors"
        theta = safetensors.numpy.load_file(path)["theta"]
        for split, key in (("test", "test"), ("validation", "validation")):
            score = world.learner.evaluate(theta, getattr(zone, split))
            assert summary["zones"][zone.name][key] == world.task.metric.value(*score)
        total, labels = total + world.learner.evaluate(theta, zone.test)[0], labels + len(zone.test or ())
    assert summary["pooled"]["test"] == pytest.approx((total / labels) ** 0.5)


def test_workers_change_no_byte(run_file: Path, tmp_path: Path, capsys: Capture) -> None:
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "one", "--workers", "1").code == 0
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "two", "--workers", "2").code == 0
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "auto").code == 0
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "auto")


def test_left_to_itself_it_takes_more_processes_for_long_work(
    run_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: list[int] = []

    class Counted(ThisProcess):
        def __init__(self, workers: int) -> None:
            pools.append(workers)

    monkeypatch.setattr(simulate, "ProcessPool", Counted)
    monkeypatch.setattr(simulate, "cores", lambda: 2)
    for worth, started in ((1e9, []), (0.0, [2])):
        monkeypatch.setattr(simulate, "WORTH_A_POOL", worth)
        assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out").code == 0
        assert pools == started


def test_a_method_may_be_asked_for_and_the_models_of_another_go(
    run_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert sgfusion(capsys, "simulate", run_file, "--out", out, "--method", "fedavg").code == 0
    mine = out / "models" / "mine.safetensors"
    mine.write_bytes(b"mine")
    assert {path.name for path in (out / "models").iterdir()} == {"global.safetensors", "mine.safetensors"}
    assert (out / "rounds.jsonl").read_text() == ""
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["method"], summary["drawn"]) == ("fedavg", None)
    arguments = ("--method", "top-k-sgfusion", "--set", "sampler.k=1")
    assert sgfusion(capsys, "simulate", run_file, "--out", out, *arguments).code == 0
    assert {path.stem for path in (out / "models").iterdir()} == {*ZONES, "mine"}
    assert load_run_file(out / "run.toml").sampler.k == 1


@pytest.mark.parametrize("method", ["sgfusion", "top-k-sgfusion", "delta-z", "ifca"])
def test_the_summary_has_the_command_that_repeats_the_run_from_its_folder(
    method: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file = write_suite(tmp_path).with_name("tiny.toml")
    arguments = ["--method", method, *(["--set", "sampler.k=1"] if method == "top-k-sgfusion" else [])]
    assert sgfusion(capsys, "simulate", run_file, *arguments, "--out", tmp_path / "out").code == 0
    monkeypatch.chdir(tmp_path / "out")
    program, *again = shlex.split(json.loads(Path("summary.json").read_text())["again"])
    assert program == "sgfusion"
    assert sgfusion(capsys, *again, "--out", tmp_path / "again").code == 0
    assert files(tmp_path / "again") == files(tmp_path / "out")


def test_a_zone_without_test_labels_has_no_value_and_the_file_is_json(
    run_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Outcome.from_json.__func__  # type: ignore[attr-defined]

    def without_labels(text: str) -> Outcome:
        outcome: Outcome = read(
            Outcome, re.sub(r'"north":{"total":[^,]*,"count":\d+', '"north":{"total":0.0,"count":0', text)
        )
        return outcome

    monkeypatch.setattr(Outcome, "from_json", without_labels)
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out").code == 0
    text = (tmp_path / "out" / "summary.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["zones"]["north"]["test"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--set", "hrg.shedule=paper"), "hrg.shedule = 'paper': unknown key, did you mean schedule?"),
        (("--set", "data.devises=3"), "data.devises = 3: unknown key, did you mean devices?"),
        (("--set", "sampler.k=3"), "k = 3 belongs to kind 'top-k'"),
        (("--method", "fedavgg"), "method = 'fedavgg': unknown, did you mean fedavg?"),
        (
            ("--method", "chi-sgfusion", "--set", "sampler.chi=7"),
            "error: sampler.chi = 7: a zone of this run has 2 others to draw from: set it to no more than that",
        ),
    ],
)
def test_what_is_wrong_is_a_message_and_not_a_traceback(
    arguments: tuple[str, ...], says: str, run_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    done = sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out", *arguments)
    assert done.code == 1
    assert says in done.error
    assert "Traceback" not in done.error
    assert not (tmp_path / "out" / "unfinished").exists()  # nothing was finished


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ('"sequences"\npath = "{}.npz"', "add the arrays lat and lon to the .npz file"),
        (
            '"table"\npath = "{}.csv"\ndevice = "u"\nzone = "z"\nlabel = "y"\nfeatures = ["x"]',
            "name the columns of latitude and longitude, in degrees, with data.latitude and data.longitude",
        ),
    ],
)
def test_without_neighbours_a_method_that_needs_them_is_refused_before_any_training(
    source: str, places: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices, zones = np.repeat(["u", "v"], 5), np.repeat(["a", "b"], 5)
    np.savez(tmp_path / "d.npz", x=np.ones((10, 2, 1)), y=np.ones(10), device=devices, zone=zones)
    (tmp_path / "d.csv").write_text("u,z,y,x\n" + "".join(f"u,{zone},1,1\n" for zone in zones))
    task = "name = 'activity'\nclasses = 2"
    run = f"name = 'r'\nseed = 1\nrounds = 1\n[task]\n{task}\n[data]\nsource = {source.format(tmp_path / 'd')}\n"
    (tmp_path / "r.toml").write_text(run)
    trained = _count_training(monkeypatch)
    for method in ("d-zgd", "delta-z", "chi-sgfusion"):
        done = sgfusion(capsys, "simulate", tmp_path / "r.toml", "--method", method, "--out", tmp_path / "out")
        assert done.code == 1
        assert (
            f"gives zones no neighbours, which d-zgd, delta-z, and chi-sgfusion without sampler.chi need: {places}"
            in done.error
        )
        assert trained == []
    chi = ("--method", "chi-sgfusion", "--set", "sampler.chi=1")
    assert sgfusion(capsys, "simulate", tmp_path / "r.toml", *chi, "--out", tmp_path / "out").code == 0


@pytest.mark.parametrize(("k", "noted"), [(2, False), (9, True)])
def test_a_k_beyond_the_other_zones_is_noted(
    k: int, noted: bool, run_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ("--method", "top-k-sgfusion", "--set", f"sampler.k={k}", "--out", tmp_path / "out")
    done = sgfusion(capsys, "simulate", run_file, *arguments)
    assert done.code == 0
    note = (
        "sampler.k = 9: a zone of this run has 2 others to draw from, and draws all of them every round, as the method"
        " all does. Set it to 2 or less"
    )
    assert (f"note: {note}\n" in done.out) == noted
    assert json.loads((tmp_path / "out/summary.json").read_text())["notes"] == ([note] if noted else [])


def test_only_a_method_that_draws_by_the_tree_has_a_figure_of_it(
    run_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    done = sgfusion(capsys, "simulate", run_file, "--out", out)
    assert f"Look at {out / 'dendrogram.png'}." in done.out
    done = sgfusion(capsys, "simulate", run_file, "--out", out, "--method", "fedavg")
    assert "FedAvg: 1 job ..." in done.out
    assert "dendrogram.png" not in done.out
    assert not (out / "dendrogram.png").exists()


def test_without_matplotlib_there_is_no_figure_and_all_the_rest(
    run_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out")
    assert done.code == 0
    assert "no dendrogram.png: figures need matplotlib: in the repository type make install, or pip " in done.out
    assert (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_to_is_a_message(
    out: str, run_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").touch()
    done = sgfusion(capsys, "simulate", run_file, "--out", tmp_path / out)
    assert done.code == 1
    assert re.match(r"error: .*file.*: (File exists|Not a directory)", done.error)


def test_a_task_of_ones_own_is_found_in_the_current_folder(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_own_task.py").write_text(
        "from device.tasks.linear import Options, make_task\nmake_task.options = Options\n"
    )
    run_file = write_suite(tmp_path, run=RUN.replace('"linear"', '"my_own_task:make_task"')).with_name("tiny.toml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out").code == 0


# Killed and stopped

HANGING = """
import time, simulator.work
attempt = simulator.work.attempt
def hang_in_south(function, text, advance):
    if '"zone": "south"' in text:
        time.sleep(1000)
    return attempt(function, text, advance)
simulator.work.attempt = hang_in_south
"""


def test_killed_and_started_again_it_trains_the_rest_to_the_same_files(
    run_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second zone of the process that is killed never ends: it is killed with one zone of three finished."""
    out = tmp_path / "out"
    assert sgfusion(capsys, "simulate", run_file, "--out", out, "--method", "fedavg").code == 0
    last_run = files(out)
    process = start_sgfusion("simulate", run_file, "--out", out, "--workers", "1", first=HANGING)
    kill_once(process, lambda: list(out.glob("unfinished/*/north.json")))
    left = files(out)
    assert {name: left.pop(name) for name in last_run} == last_run
    assert {Path(name).name for name in left} >= {"run.toml", "north.json"}

    trained = _count_training(monkeypatch)
    again = sgfusion(capsys, "simulate", run_file, "--out", out)
    assert again.code == 0, again.error
    assert "SGFusion: 3 jobs, 1 finished earlier" in again.out
    assert trained == ["south", "west"]
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "peace").code == 0
    assert files(out) == files(tmp_path / "peace")


def test_finished_jobs_of_other_settings_are_not_taken(
    run_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(simulate, "write_results", _interrupt)
        stopped = sgfusion(capsys, "simulate", run_file, "--out", out)
    assert stopped.code == 130
    assert "run the same command again to go on" in stopped.out
    trained = _count_training(monkeypatch)
    assert sgfusion(capsys, "simulate", run_file, "--out", out, "--set", "rounds=2").code == 0
    assert trained == ZONES
    assert not (out / "unfinished").exists()


def test_stopped_as_it_writes_it_leaves_files_of_one_run_and_the_next_run_is_whole(
    run_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with FedAvg's results, stopped before each file that SGFusion writes into it; then IFCA there."""
    commands = {name: ("simulate", run_file, "--method", name) for name in ("fedavg", "sgfusion", "ifca")}
    whole = {}
    for name, command in commands.items():
        assert sgfusion(capsys, *command, "--out", tmp_path / name).code == 0
        whole[name] = files(tmp_path / name)
    for stop in range(9):
        out = tmp_path / str(stop)
        shutil.copytree(tmp_path / "fedavg", out)
        calls = count()

        def write_or_stop(path: Path, content: bytes, stop: int = stop, calls: Iterator[int] = calls) -> None:
            if next(calls) == stop:
                raise KeyboardInterrupt
            replace_file(path, content)

        with monkeypatch.context() as patched:
            patched.setattr(results, "replace_file", write_or_stop)
            code = sgfusion(capsys, *commands["sgfusion"], "--out", out).code
        there = {name: content for name, content in files(out).items() if not name.startswith("unfinished")}
        assert (code, len(there)) == ((130, 1 + stop) if stop < 8 else (0, 9))  # the lock, and what was written
        assert there.items() <= whole["sgfusion"].items()
        if stop in (0, 6):
            assert sgfusion(capsys, *commands["ifca"], "--out", out).code == 0
            assert files(out) == whole["ifca"]


def test_two_at_once_do_not_share_a_folder(run_file: Path, tmp_path: Path, capsys: Capture) -> None:
    with SuiteFolder(tmp_path / "out").hold():
        done = sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out")
    assert done.code == 1
    assert "is at work there" in done.error


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def _count_training(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The zones that are trained in this process from now on."""
    trained: list[str] = []

    def counted(function: str, text: str, advance: Advance) -> tuple[str | None, str]:
        trained.append(json.loads(text)["zone"])
        return attempt(function, text, advance)

    monkeypatch.setattr("simulator.work.attempt", counted)
    return trained


@pytest.mark.parametrize("command", ["simulate", "experiment"])
def test_without_torch_it_says_what_to_install(command: str, run_file: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from console.main import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", code, command, str(run_file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert re.fullmatch(r"error: torch cannot be imported \(.*\): .* pip install '\.\[experiments\]'\n", run.stderr)


def test_an_import_that_fails_for_another_reason_is_not_hidden(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "console.simulate", None)
    monkeypatch.setattr(sys, "argv", ["sgfusion", "simulate", str(run_file)])
    with pytest.raises(ModuleNotFoundError, match=r"console\.simulate"):
        main()


def test_help_names_every_method(capsys: Capture) -> None:
    assert tuple(METHODS) == NAMED
    words = sgfusion(capsys, "simulate", "--help").out.split()
    assert {f"{name}," for name in [*METHODS][:-1]} <= {*words}


def test_asking_for_help_does_not_load_torch() -> None:
    code = "import sys, console.main\nsys.argv = ['sgfusion', '--help']\n"
    code += "try: console.main.main()\nexcept SystemExit: pass\n"
    code += "print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "simulate" in run.stdout
    assert run.stdout.endswith("False False\n")


def test_results_say_where_zones_lie(tmp_path: Path, capsys: Capture) -> None:
    """The run file that was given need not: whoever views the folder may not have the data."""
    given = {"source": "synthetic_heart_rate", "country": "norway", "length": 4, "share": 0.02}
    zones = {"names": ["oslo", "hedmark"]}
    document = {"name": "n", "seed": 1, "rounds": 1, "task": {"name": "heart_rate", "size": "small"}}
    (tmp_path / "n.toml").write_text(tomli_w.dumps({**document, "data": given, "zones": zones}))
    out = tmp_path / "out"
    for run_file in (tmp_path / "n.toml", out / "run.toml"):  # and the same again from what was written
        done = sgfusion(capsys, "simulate", run_file, "--out", out)
        assert done.code == 0, done.error
        assert load_run_file(out / "run.toml").zones.places == {
            "oslo": (((59.95, 10.75),),),
            "hedmark": (((61.4, 11.3),),),
        }
