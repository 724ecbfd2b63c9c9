"""Checkpoints: durable, the previous one kept, a torn one noticed and passed over."""

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge.checkpoints import Checkpoints, Progress
from sgfusion.durable import UNFINISHED
from sgfusion.errors import CheckpointError
from sgfusion.optimiser import Optimiser
from sgfusion.zone_trainer import ZoneState


def progress(round: int, *, best: int = 0, records: tuple[dict[str, Any], ...] = (), worth: float = 1.5) -> Progress:
    start = ZoneState.initial(2, np.arange(5, dtype=np.float32), Optimiser("momentum"))
    state = ZoneState(2, round, start.theta + np.float32(round), start.optimiser)
    return Progress(state, np.full(5, best, np.float32), best, worth, records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    saved = Checkpoints(tmp_path)
    for round in (1, 2, 3):
        saved.save(progress(round, best=round // 2, records=({"round": round},)))
    return tmp_path


def test_what_was_saved_last_is_loaded(folder: Path) -> None:
    loaded = Checkpoints(folder).load()
    assert loaded is not None
    assert loaded.state.round == 3
    assert loaded.state.theta.tolist() == [3, 4, 5, 6, 7]
    assert loaded.best.tolist() == [1] * 5
    assert (loaded.best_round, loaded.best_worth) == (1, 1.5)
    assert loaded.records == [{"round": 1}, {"round": 2}, {"round": 3}]


def test_there_is_none_at_first(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).load() is None


def test_a_worth_that_is_no_number_yet(tmp_path: Path) -> None:
    Checkpoints(tmp_path).save(progress(1, worth=math.inf))
    loaded = Checkpoints(tmp_path).load()
    assert loaded is not None
    assert loaded.best_worth == math.inf


def test_two_are_kept_with_the_models_that_they_name(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "best-00000001.safetensors",
        "records.jsonl",
        "round-00000002.json",
        "round-00000002.safetensors",
        "round-00000003.json",
        "round-00000003.safetensors",
    ]


@pytest.mark.parametrize("name", ["round-00000003.json", "round-00000003.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone"])
def test_a_torn_one_is_passed_over(folder: Path, name: str, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"cut": content[:middle], "flipped": flipped, "empty": b""}[damage])
    with caplog.at_level(logging.WARNING):
        loaded = Checkpoints(folder).load()
    assert loaded is not None
    assert loaded.state.round == 2
    assert loaded.records == [{"round": 1}, {"round": 2}]
    assert ("passed over" in caplog.text) == (name != "round-00000003.json" or damage != "gone")


def test_records_after_the_checkpoint_go_as_their_rounds_are_repeated(folder: Path) -> None:
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"round": 4}\n{"rou')
    again = Checkpoints(folder)
    loaded = again.load()
    assert loaded is not None
    assert len(loaded.records) == 3
    again.save(progress(4, best=1, records=({"round": 4},)))
    reloaded = Checkpoints(folder).load()
    assert reloaded is not None
    assert [record["round"] for record in reloaded.records] == [1, 2, 3, 4]


def test_what_a_failed_write_left_of_the_records_goes(folder: Path) -> None:
    """A disk that was full for a moment: half a line, and the next save goes on after the last whole one."""
    saved = Checkpoints(folder)
    saved.load()
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"rou')
    saved.save(progress(4, best=1, records=({"round": 4},)))
    loaded = Checkpoints(folder).load()
    assert loaded is not None
    assert [record["round"] for record in loaded.records] == [1, 2, 3, 4]


def test_a_torn_one_does_not_count_among_those_kept(folder: Path) -> None:
    (folder / "round-00000003.json").write_bytes(b"{}")
    saved = Checkpoints(folder)
    saved.load()
    saved.save(progress(3, best=1, records=({"round": 3},)))
    (folder / "round-00000003.safetensors").unlink()
    loaded = Checkpoints(folder).load()
    assert loaded is not None
    assert loaded.state.round == 2


def test_if_none_is_whole_it_says_so(folder: Path) -> None:
    for path in folder.glob("round-*.json"):
        path.write_bytes(b"{}")
    with pytest.raises(CheckpointError, match=r"none of .* is whole"):
        Checkpoints(folder).load()


def test_what_a_killed_writer_left_is_swept(folder: Path) -> None:
    (folder / f".round-00000004.json.12345678{UNFINISHED}").write_bytes(b"half")
    Checkpoints(folder)
    assert not list(folder.glob(f".*{UNFINISHED}"))
