"""`sgfusion follow` on a real cluster that it has not started: the results folder of `simulate`, to the byte."""

import json
from pathlib import Path

import pytest

from console import simulate
from sgfusion.runfile import RunFile
from tests.cluster.harness import RUN, Cluster, cluster_of, run_of
from tests.console.commands import files, sgfusion

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)


def reach(cluster: Cluster) -> tuple[str, ...]:
    assert cluster.operator_folder is not None
    return "--cloud", cluster.address("cloud") or "", "--certs", str(cluster.operator_folder)


def write(run: RunFile, path: Path) -> Path:
    path.write_text(run.to_toml(), "utf-8")
    return path


def test_it_watches_to_the_end_and_writes_what_simulate_writes(tmp_path: Path, capsys: Capture) -> None:
    run = run_of("rounds=20")
    path = write(run, tmp_path / "given.toml")
    with cluster_of(run, tmp_path / "cluster") as cluster:
        done = sgfusion(capsys, "follow", path, *reach(cluster), "--out", tmp_path / "followed")
        again = sgfusion(capsys, "follow", path, *reach(cluster), "--out", tmp_path / "followed", "--no-alone")
    assert done.code == 0, done.error
    assert "zone ash is done" in done.out
    assert "training alone: pooled RMSE" in done.out
    assert "RMSE on the test split" in again.out, "a run that is over is told at once"
    assert sgfusion(capsys, "simulate", path, "--out", tmp_path / "simulated").code == 0
    ours, theirs = files(tmp_path / "followed"), files(tmp_path / "simulated")
    names = {name for name in theirs if name not in ("summary.json", "zones.json", ".lock")}
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}
    curves, simulated = (json.loads(each["zones.json"]) for each in (ours, theirs))
    assert [plan["version"] for plan in curves["plans"]] == [1]  # which a simulation has not, nor events
    for zone, row in simulated["zones"].items():  # a cluster knows more of each
        assert {key: curves["zones"][zone][key] for key in row} == row
    assert [curves[key] for key in ("edges", "pooled")] == [simulated[key] for key in ("edges", "pooled")]
    assert {name.partition("/")[0] for name in ours} == {*(n.partition("/")[0] for n in theirs), "alone"}


def test_a_zone_that_joined_is_in_the_table_and_nobody_knows_what_it_comes_to_alone(
    tmp_path: Path, capsys: Capture
) -> None:
    run = run_of("rounds=40")
    given = write(run_of("rounds=40", 'zones.names=["ash","birch","cedar"]'), tmp_path / "given.toml")
    with cluster_of(run, tmp_path / "cluster", start=False) as cluster:
        write(run_of("rounds=40", 'zones.names=["ash","birch","cedar"]'), cluster.folder / "run.toml")
        cluster.start_edges("ash", "birch", "cedar")
        write(run, tmp_path / "all.toml")
        cluster.host("first", zones=("ash", "birch", "cedar"))
        cluster.until_round(3)
        cluster.start_edges("elm")
        (cluster.folder / "run.toml").write_text(run.to_toml(), "utf-8")  # its devices have data of four zones
        cluster.host("late", zones=("elm",))
        done = sgfusion(capsys, "follow", given, *reach(cluster), "--out", tmp_path / "followed")
    assert done.code == 0, done.error
    summary = json.loads((tmp_path / "followed" / "summary.json").read_text())
    assert list(summary["zones"]) == ["ash", "birch", "cedar", "elm"]
    assert summary["zones"]["elm"]["alone"] is None
    assert summary["zones"]["ash"]["alone"] is not None
    assert summary["pooled"]["alone"] is None
    assert (tmp_path / "followed" / "models" / "elm.safetensors").exists()
    assert "training alone" not in done.out.replace("train alone", "")


def test_it_says_what_it_cannot_reach(tmp_path: Path, capsys: Capture) -> None:
    path = write(run_of("deadlines.zones=1.0"), tmp_path / "given.toml")
    nowhere = sgfusion(capsys, "follow", path, "--cloud", "127.0.0.1:1", "--insecure", "--out", tmp_path / "out")
    assert nowhere.code == 1
    assert "nothing has changed for 1 s" in nowhere.error
    assert "127.0.0.1:1" in nowhere.error
    neither = sgfusion(capsys, "follow", path, "--out", tmp_path / "out")
    assert (neither.code, "--cloud HOST:PORT" in neither.error) == (1, True)


def test_where_devices_alone_have_the_data_nothing_is_compared(tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "houses.csv"
    rows = [f"{zone},{device},{i % 7},{i % 5}" for zone in ("a", "b") for device in ("x", "y") for i in range(20)]
    table.write_text("\n".join(["zone,device,size,price", *rows]))
    text = RUN.replace('names = ["ash", "birch", "cedar", "elm"]', 'names = ["a", "b"]')
    head, _, rest = text.partition("[data]")
    columns = 'source = "table"\nzone = "zone"\ndevice = "device"\nfeatures = ["size"]\nlabel = "price"\n'
    run = run_of(text=f'{head}[data]\n{columns}path = "{table}"\n[zones]{rest.partition("[zones]")[2]}')
    path = write(run, tmp_path / "given.toml")
    with cluster_of(run, tmp_path / "cluster") as cluster:
        cluster.until(lambda status: status.finished)
        table.rename(tmp_path / "elsewhere.csv")
        refused = sgfusion(capsys, "follow", path, *reach(cluster), "--out", tmp_path / "followed")
        done = sgfusion(capsys, "follow", path, *reach(cluster), "--out", tmp_path / "followed", "--no-alone")
    assert refused.code == 1
    assert "there is no such file" in refused.error
    assert "give --no-alone" in refused.error
    assert done.code == 0, done.error
    assert sorted(path.stem for path in (tmp_path / "followed" / "models").iterdir()) == ["a", "b"]
