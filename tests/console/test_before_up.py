"""What `sgfusion up` says before it trains, and what is left of it if it is refused."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from console import follow, simulate, up
from console.reach import Reached
from console.up import Asked
from console.watching import Fetched
from sgfusion.errors import DataError
from sgfusion.runfile import RunFile, load_run_file
from simulator.resolve import resolved
from tests.console.commands import sgfusion
from tests.console.fetched import fetched_of
from tests.simulator.tiny_suite import write_suite

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> RunFile:
    overrides = ("histogram.epsilon=off", "simulation.exact=true")
    return resolved(load_run_file(write_suite(tmp_path).with_name("tiny.toml"), overrides))


@pytest.fixture
def rides(run: RunFile, tmp_path: Path) -> RunFile:
    """A table with a misspelt zone, a missing number, a zone that is too small, and labels in no bin."""
    rows = [f"{zone}-{person},{zone},{i},{i}" for zone in ("Harbour", "Moor") for person in "ab" for i in range(9)]
    rows += ["x,Harbor,1,1", "x,Harbor,2,2", "x,Harbor,3,3", "Moor-a,Moor,,4", "lost,Heath,1,1"]
    (tmp_path / "rides.csv").write_text("\n".join(["rider,zone,length,time", *rows]) + "\n", "utf-8")
    table = {
        "source": "table", "path": str(tmp_path / "rides.csv"), "device": "rider", "zone": "zone", "label": "time",
        "features": ["length"],
    }  # fmt: skip
    document = run.model_dump(by_alias=True, exclude_none=True)
    document |= {"data": table, "task": {"name": "linear", "low": 50, "high": 90}, "zones": {"min_samples": 2}}
    return RunFile.model_validate(document)


def test_notes_on_the_data_are_told_before_it_trains_and_kept(
    rides: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[str] = []

    def trained(_cluster: object, _folder: Path, screen: Console) -> Fetched:
        before.append(screen.export_text(clear=False))
        return fetched_of(resolved(rides))

    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    monkeypatch.setattr(up, "_trained", trained)
    screen = Console(record=True, width=100, file=io.StringIO())
    up.up(rides, Asked(tmp_path / "up", hosts=1, alone=False), screen)
    kept = json.loads((tmp_path / "up" / "summary.json").read_text())["notes"]
    for note in ("1 of 41 samples left out", "1 of 4 zones left out", "40 of 40 labels are outside"):
        (said,) = (each for each in kept if note in each)
        assert f"note: {said}\n" in before[0]
    assert "one device alone is in zone Harbor (3 samples; is it 'Harbour'?)" in before[0]
    below = screen.export_text().partition("SGFusion on a cluster")[2]
    assert all(f"note: {note}" in below for note in kept), "who comes back for the table reads them with it"


def test_simulate_asks_whether_a_zone_is_misspelt_before_it_trains(
    rides: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train_all(*_: object) -> None:
        raise DataError("nobody trains here")

    monkeypatch.setattr(simulate, "train_all", train_all)
    screen = Console(record=True, width=100, file=io.StringIO())
    with pytest.raises(DataError, match="nobody trains here"):
        simulate.simulate(rides, "sgfusion", tmp_path / "out", None, screen)
    said = screen.export_text()
    assert said.count("note: one device alone is in zone Harbor (3 samples; is it 'Harbour'?). Other zones") == 1


def test_follow_tells_them_before_it_watches(rides: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(*_: object, **_more: object) -> None:
        raise DataError("no cluster here")

    monkeypatch.setattr(follow, "Watch", watch)
    screen = Console(record=True, width=100, file=io.StringIO())
    with pytest.raises(DataError, match="no cluster here"):
        follow.follow(rides, Reached("", None), tmp_path / "out", alone=True, screen=screen)
    said = screen.export_text()
    for note in ("1 of 41 samples left out", "1 of 4 zones left out", "40 of 40 labels are outside"):
        assert said.count(f"note: {note}") == 1


@pytest.mark.parametrize("command", ["up", "simulate"])
def test_who_is_refused_leaves_no_folder(command: str, tmp_path: Path, capsys: Capture) -> None:
    run_file = write_suite(tmp_path).with_name("tiny.toml")
    (tmp_path / "rides.csv").write_text("rider,zone,length,time\na,b,1,2\n", "utf-8")
    head, table = run_file.read_text("utf-8").partition("[data]")[0], ["[data]", 'source = "table"']
    table += ['device = "rider"', 'zone = "zone"', 'label = "tiem"', 'features = ["length"]']
    run_file.write_text("\n".join([head, *table, f"path = '{tmp_path / 'rides.csv'}'"]), "utf-8")
    refused = sgfusion(capsys, command, run_file, "--out", tmp_path / "results" / "b1")
    assert refused.code == 1
    assert "did you mean 'time'?" in refused.error
    assert not (tmp_path / "results").exists()


def test_zones_with_one_device_are_named_before_anything_leaves_it(
    run: RunFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def trained(_cluster: object, _folder: Path, screen: Console) -> Fetched:
        said.append(screen.export_text())
        raise DataError("no cluster here")

    monkeypatch.setattr(up, "_trained", trained)
    lone = run.model_copy(update={"data": run.data.model_copy(update={"devices": 1})})
    for each, folder in ((run, "two"), (lone, "one")):
        with pytest.raises(DataError, match="no cluster here"):
            up.up(each, Asked(tmp_path / folder, hosts=1), Console(record=True, width=100, file=io.StringIO()))
    assert "one device alone" not in said[0]
    assert (
        said[1].count("note: one device alone is in each of 3 zones: north, south, west. Other zones get its gradients")
        == 1
    )
