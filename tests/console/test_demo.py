"""The demonstration, from the command line to the files it leaves."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from sgfusion.dendrogram_file import ZoneTree
from sgfusion.privacy import Ledger
from sgfusion.runfile import load_run_file

ROOT = Path(__file__).parents[2]
FEW = ("--set", "rounds=20", "--set", "hrg.restarts=1")


def sgfusion(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "console.main", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo")
    done = sgfusion("demo", "experiments/demo.toml", "--out", out, *FEW)
    assert done.returncode == 0, done.stderr
    assert "of 16 zones" in done.stdout
    return out


def test_it_leaves_a_results_folder(folder: Path) -> None:
    run = load_run_file(folder / "run.toml")
    assert run.rounds == 20
    tree = ZoneTree.from_json((folder / "dendrogram.json").read_text())
    assert tree.zones == run.zones.names
    rounds = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    assert len(rounds) == 16 * 20
    assert all(set(map(int, line["attention"])) == set(line["drawn"]) and not line["left_out"] for line in rounds)
    assert (folder / "dendrogram.png").read_bytes().startswith(b"\x89PNG")


def test_the_summary_is_that_of_the_models(folder: Path) -> None:
    from console.generated_zones import GeneratedZones, generate_zones

    run = load_run_file(folder / "run.toml")
    summary = json.loads((folder / "summary.json").read_text())
    data = generate_zones(run.data.options_as("data", GeneratedZones), 16, run.seed)
    won = 0
    for name, zone in zip(run.zones.names, data, strict=True):
        theta = safetensors.numpy.load_file(folder / "models" / f"{name}.safetensors")["theta"]
        x, y = zone.test
        rmse = summary["rmse"][name]
        assert rmse["sgfusion"] == pytest.approx(np.sqrt(np.mean((x @ theta - y) ** 2)), rel=1e-12)
        assert rmse["before"] == pytest.approx(np.sqrt(np.mean(y**2)), rel=1e-12)
        assert rmse["alone"] < rmse["before"]
        won += rmse["sgfusion"] < rmse["alone"]
    assert summary["zones_won_by_sgfusion"] == won


def test_every_device_has_spent_its_epsilon_once(folder: Path) -> None:
    ledgers = sorted(folder.glob("devices/*/*/*.ledger.json"))
    assert len(ledgers) == 16 * 4
    assert all(Ledger(path, budget=10).spent == 10 for path in ledgers)


def test_run_again_it_gives_the_same_models(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "models").iterdir()}
    assert sgfusion("demo", "experiments/demo.toml", "--out", folder, *FEW).returncode == 0
    assert {path.name: path.read_bytes() for path in (folder / "models").iterdir()} == before


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("hrg.shedule=paper", "hrg.shedule = 'paper': unknown key, did you mean schedule?"),
        ("data.devises=3", "data.devises = 3: unknown key, did you mean devices?"),
        ("task=3", "should be a section, [task]"),
        ("sampler.kind=none", "sampler.kind = 'none': the demonstration knows 'hrg' only"),
        ("zones.names=[]", "zones.names is empty"),
        ("task.bogus=1", "task.bogus = 1: unknown key"),
        ("hrg.from=t.json", "the demonstration fits a dendrogram of its own"),
        ("sharpness=1", "did you mean hrg.sharpness?"),
        ("task.name=heart_rate", "task.name = 'heart_rate': the demonstration knows 'linear' only"),
    ],
)
def test_a_bad_setting_is_a_message_and_not_a_traceback(override: str, says: str, tmp_path: Path) -> None:
    done = sgfusion("demo", "experiments/demo.toml", "--out", tmp_path, "--set", override)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_to_is_a_message(out: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = sgfusion("demo", "experiments/demo.toml", "--out", tmp_path / out, *FEW)
    assert done.returncode == 1
    assert re.match(r"error: .*file.*: (File exists|Not a directory)", done.stderr)


def test_a_single_zone_trains_alone_and_other_zones_models_go(folder: Path) -> None:
    done = sgfusion("demo", "experiments/demo.toml", "--out", folder, *FEW, "--set", 'zones.names=["lubuskie"]')
    assert done.returncode == 0, done.stderr
    assert "of 1 zones" in done.stdout
    assert [path.name for path in (folder / "models").iterdir()] == ["lubuskie.safetensors"]


def test_without_a_terminal_it_says_what_it_is_at(tmp_path: Path) -> None:
    done = sgfusion("demo", "experiments/demo.toml", "--out", tmp_path, "--set", "rounds=1", "--set", "hrg.restarts=1")
    phases = [line for line in done.stdout.splitlines() if line.endswith(" ...")]
    assert phases == ["private histograms ...", "dendrogram ...", "each zone alone ...", "SGFusion ...", "results ..."]


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", sgfusion("--version").stdout)


def test_files_that_are_not_its_own_are_left_alone(folder: Path) -> None:
    mine = folder / "models" / "resnet.safetensors"
    mine.write_bytes(b"mine")
    assert sgfusion("demo", "experiments/demo.toml", "--out", folder, *FEW).returncode == 0
    assert mine.read_bytes() == b"mine"
