"""`sgfusion join` before any process is started: whose data a zone that joins brings, and what is refused."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from console import joining
from console.joining import Joined, joining_run
from console.processes import tell
from console.reach import Reached
from console.watch import InFolder
from sgfusion.errors import DataError, InputError, RunFileError, UnavailableError
from sgfusion.runfile import load_run_file
from sgfusion.wire.service import METRICS, announce, announced
from simulator.resolve import resolved
from tests.cluster.keys import run_async
from tests.console.commands import sgfusion
from tests.console.test_live import text

RUN = """
name = "shores"
seed = 1
rounds = 4
[task]
name = "linear"
[data]
source = "table"
path = "{path}"
device = "phone"
zone = "region"
label = "steps"
features = ["cadence"]
[optimiser]
rate = 0.0001 # cadences are not scaled: with a tenth it diverges within thirty rounds
[zones]
names = ["lake", "mountain"]
"""


def write_table(path: Path, *regions: str) -> Path:
    rows = [f"{region}-{phone},{region},{10 * row},{row}" for region in regions for phone in "ab" for row in range(5)]
    path.write_text("\n".join(["phone,region,cadence,steps", *rows]) + "\n", "utf-8")
    return path


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """As `sgfusion up` leaves it in its state: resolved, by absolute paths."""
    table = write_table(tmp_path / "steps.csv", "lake", "mountain", "valley", "coast")
    given = tmp_path / "given.toml"
    given.write_text(RUN.format(path=table), "utf-8")
    path = tmp_path / "state" / "run.toml"
    path.parent.mkdir()
    path.write_text(resolved(load_run_file(given)).to_toml(), "utf-8")
    return path


def test_a_zone_that_joins_is_the_last_one_and_has_its_own_devices(run_file: Path) -> None:
    run, devices = joining_run(run_file, "valley", ())
    assert run.zones.names == ("lake", "mountain", "valley")
    assert devices == ("valley-a", "valley-b")


def test_data_of_its_own_may_be_elsewhere(run_file: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "more.csv", "lake", "mountain", "harbour")
    run, devices = joining_run(run_file, "harbour", [f"data.path={tmp_path / 'more.csv'}"])
    assert devices == ("harbour-a", "harbour-b")
    assert run.data.model_dump()["path"].endswith("more.csv")


def test_what_cannot_join_is_told_what_could(run_file: Path) -> None:
    for zone, asked in (
        ("moon", ""),
        ("vally", " Did you mean 'valley'?"),
        ("Valley!", " Did you mean 'valley'?"),  # a name that no zone can have
        ("mountian", " Did you mean 'mountain'? It is one of the run's own."),
    ):
        with pytest.raises(DataError) as refused:
            joining_run(run_file, zone, ())
        assert str(refused.value) == f"--zone {zone!r} is not in the data.{asked} These can join: coast, valley"
    with pytest.raises(RunFileError, match="'lake' is one of the run's own"):
        joining_run(run_file, "lake", ())
    with pytest.raises(RunFileError, match="seed, task, histogram and update must stay"):
        joining_run(run_file, "valley", ["histogram.epsilon=5.0"])


def test_a_zone_of_one_device_is_asked_about_before_it_joins(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "steps.csv").open("a", encoding="utf-8") as table:
        table.writelines(f"lake-a,mountian,{10 * row},{row}\n" for row in range(3))

    def stop(_: Joined) -> None:
        raise DataError("no cluster here")

    monkeypatch.setattr(joining, "of_folder", lambda _: Reached("", None))
    monkeypatch.setattr(joining, "state_of", lambda _: run_file.parent)
    monkeypatch.setattr(Joined, "prepare", stop)
    said = {}
    for zone in ("mountian", "valley"):
        screen = Console(record=True, width=100, file=io.StringIO())
        with pytest.raises(DataError, match="no cluster here"):
            joining.join(tmp_path, zone, (), screen)
        said[zone] = screen.export_text()
    assert "note: one device alone is in zone mountian (3 samples; is it 'mountain'?). Other" in said["mountian"]
    assert "note" not in said["valley"]


def test_a_zone_that_has_joined_is_not_started_twice(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "of_folder", lambda _: Reached("", None))
    monkeypatch.setattr(joining, "state_of", lambda _: run_file.parent)
    there = run_file.parent / "joined" / "valley"
    there.mkdir(parents=True)
    tell(there, "sgfusion join", [])
    with pytest.raises(InputError, match=rf"^zone valley has joined already: sgfusion join \(process {os.getpid()}\)"):
        joining.join(tmp_path, "valley", (), Console(quiet=True))


def test_its_state_is_apart_and_its_cloud_is_the_clusters(run_file: Path, tmp_path: Path) -> None:
    run, devices = joining_run(run_file, "valley", ())
    joined = Joined(run_file.parent, run, "valley", devices, lasting=tmp_path, secure=True)
    before = run_file.read_bytes()
    (run_file.parent / "cloud").mkdir()
    (run_file.parent / "cloud" / "address").write_text("127.0.0.1:7070\n")
    joined.prepare()
    joined.forget_addresses()
    assert run_file.read_bytes() == before
    assert joined.address("cloud") == "127.0.0.1:7070"
    assert joined.folder == run_file.parent / "joined" / "valley"
    made = {path.name for path in (tmp_path / "certs").iterdir() if path.is_dir()}
    assert made == {"edge-valley", "device-valley-a", "device-valley-b"}


def test_its_metrics_have_a_list_of_their_own_and_the_clouds_stay_the_clusters(run_file: Path, tmp_path: Path) -> None:
    run, devices = joining_run(run_file, "valley", ())
    joined = Joined(run_file.parent, run, "valley", devices, lasting=tmp_path, secure=False)
    announce(run_file.parent / "cloud", "http://127.0.0.1:1/metrics", METRICS)
    joined.prepare()
    assert {path.name: path.read_text() for path in tmp_path.glob("targets*")} == {"targets-valley.json": "[]\n"}
    announce(joined.folder / "edges" / "valley", "http://127.0.0.1:2/metrics", METRICS)
    announce(joined.folder / "hosts" / "devices-0", "http://127.0.0.1:3/metrics", METRICS)
    joined.revive()
    listed = json.loads((tmp_path / "targets-valley.json").read_bytes())
    assert {each["labels"]["instance"]: each["targets"] for each in listed} == {
        "edge-valley": ["127.0.0.1:2"],
        "devices-of-valley": ["127.0.0.1:3"],
    }
    joined.stop()
    assert (tmp_path / "targets-valley.json").read_text() == "[]\n"
    assert announced(run_file.parent / "cloud", METRICS) == "http://127.0.0.1:1/metrics"


def test_where_no_cluster_runs_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = sgfusion(capsys, "join", tmp_path, "--zone", "valley")
    assert refused.code == 1
    assert f"no cluster runs in {tmp_path}: start one" in refused.error
    (tmp_path / "summary.json").write_text("{}")
    over = sgfusion(capsys, "join", tmp_path, "--zone", "valley")
    assert f"has the results of a run that is over: sgfusion view {tmp_path} shows them" in " ".join(over.error.split())


def test_the_watch_is_told_how_long_the_start_took(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The zone may enrol meanwhile, and that is told."""
    clock, told = [1000.0], list[float]()

    class Watched:
        def __init__(self, *_: object, before: float, **_more: object) -> None:
            told.append(before)

        async def until_finished(self) -> None:
            return None

    def start(_joined: Joined) -> None:
        clock[0] += 30.0

    monkeypatch.setattr(joining, "of_folder", lambda _: Reached("127.0.0.1:1", None))
    monkeypatch.setattr(joining, "state_of", lambda _: run_file.parent)
    monkeypatch.setattr(joining, "TakingPart", Watched)
    monkeypatch.setattr(joining, "_until_fetched", lambda _: None)
    monkeypatch.setattr(Joined, "start", start)
    monkeypatch.setattr("console.joining.time.monotonic", lambda: clock[0])
    joining.join(run_file.parent, "valley", (), Console(quiet=True))
    assert told == [30.0]


@pytest.mark.parametrize(("before", "ends"), [(True, False), (False, True)])
def test_what_up_has_entered_counts_if_it_was_not_there_before(
    run_file: Path, monkeypatch: pytest.MonkeyPatch, before: bool, ends: bool
) -> None:
    """Also while our own processes start, which takes long on a busy machine."""
    entry = run_file.parent / "cluster" / "finished.json"
    entry.parent.mkdir()
    seen = list[bool]()

    def enter(_joined: object = None) -> None:
        entry.write_text(json.dumps({"fingerprint": run_file.parent.name}))

    class Watched:
        def __init__(self, *_: object, entered: Callable[[], bool], **_more: object) -> None:
            seen.append(entered())

        async def until_finished(self) -> None:
            return None

    if before:
        enter()
    monkeypatch.setattr(joining, "of_folder", lambda _: Reached("127.0.0.1:1", None))
    monkeypatch.setattr(joining, "state_of", lambda _: run_file.parent)
    monkeypatch.setattr(joining, "TakingPart", Watched)
    monkeypatch.setattr(joining, "_until_fetched", lambda _: None)
    monkeypatch.setattr(Joined, "start", enter)
    joining.join(run_file.parent, "valley", (), Console(quiet=True))
    assert seen == [ends]


def test_a_run_that_finished_unheard_has_finished_all_the_same(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`up` stops the cloud as soon as it has the models; on a busy machine that is before our next look."""
    run, devices = joining_run(run_file, "valley", ())
    joined = Joined(tmp_path / "cluster" / "mark", run, "valley", devices, lasting=tmp_path / "cluster", secure=False)
    entry, looks = tmp_path / "cluster" / "finished.json", []

    def revive(_joined: Joined) -> list[str]:
        looks.append(1)
        if len(looks) == 3:
            entry.write_text(json.dumps({"fingerprint": "mark"}))
        return []

    monkeypatch.setattr(Joined, "revive", revive)
    monkeypatch.setattr(Joined, "address", lambda *_: None)
    entry.parent.mkdir()
    entry.write_text(json.dumps({"fingerprint": "another run's"}))
    look = joining.TakingPart(joined, Console(quiet=True), before=0.0, entered=InFolder(tmp_path, "mark").finished)
    assert "Ctrl-C takes the zone out again" in text(look._view()), "it does not stop the run"
    with pytest.raises(UnavailableError, match="it does not serve: sgfusion up was stopped"):
        look._address()
    run_async(look.until_finished())
    assert len(looks) == 3
    away = " ".join(text(look._view()).split())
    assert away.endswith(
        "sgfusion up was stopped, and goes on if it is typed again, or is starting. Ctrl-C takes the zone out again"
    )
