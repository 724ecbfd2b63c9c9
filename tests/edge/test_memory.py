"""Which run file an edge's folder takes: the one it has, and one that trains the same."""

from pathlib import Path

import pytest

from edge.memory import Memory
from sgfusion.errors import ContractError
from sgfusion.runfile import parse_run_file
from tests.run_files import BASE


def text(*overrides: str) -> str:
    return parse_run_file(BASE, overrides).to_toml()


@pytest.mark.parametrize("before", [text(), text("zones.places={ash=[[[50.0, 20.0]]]}")])
@pytest.mark.parametrize(
    "now", ["zones.places={ash=[[[51.0, 21.0]]]}", "zones.places={}", "quorum.devices=0.5", "deadlines.peer=3.0"]
)
def test_another_map_or_another_wait_is_no_other_run(before: str, now: str, tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.keep_run(before)
    memory.keep_run(text(now))
    assert memory.run() == text(now)


def test_what_trains_otherwise_is_refused(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.keep_run(text())
    for other in ("seed=99", "zones.names=['ash']", "hrg.sharpness=3.0"):
        with pytest.raises(ContractError, match="holds the progress of another run than the cloud's"):
            memory.keep_run(text(other))
    assert memory.run() == text()
