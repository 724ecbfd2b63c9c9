"""What `sgfusion up` says of a cluster while it starts it."""

import io
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from console import up
from console.cluster import LocalCluster, Service
from sgfusion.runfile import load_run_file
from tests.console.commands import ROOT

DEMO = ROOT / "experiments" / "demo.toml"


class Starting:
    """A cluster whose cloud comes to serve, and of which there is something to tell meanwhile."""

    def __init__(self) -> None:
        self.services = {"cloud": Service("cloud", lambda: (), Path("cloud.log"))}
        self.looks = 0

    def address(self, _name: str) -> str | None:
        return "127.0.0.1:1" if self.looks else None

    def revive(self) -> list[str]:
        self.looks += 1
        return ["cloud is frozen (stopped by a signal); kill -CONT 7 lets it go on"]


def test_who_is_frozen_while_the_cluster_starts_is_named() -> None:
    """The cluster says it once: what is not printed then is never."""
    screen = Console(record=True, width=100, file=io.StringIO())
    cluster = cast(LocalCluster, Starting())
    up._until_served(cluster, ["cloud"], "cloud", lambda *_: None, screen)
    assert screen.export_text() == "cloud is frozen (stopped by a signal); kill -CONT 7 lets it go on\n"


def test_the_watch_is_told_how_long_the_start_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones enrol meanwhile, and each of them is told."""
    told: list[float] = []

    class Watched:
        def __init__(self, _cluster: object, _screen: Console, *, before: float, **_: object) -> None:
            told.append(before)

        async def to_the_end(self) -> None:
            return None

    def start(*_: object) -> None:
        clock[0] += 30.0

    clock = [1000.0]
    monkeypatch.setattr(up, "Watch", Watched)
    monkeypatch.setattr(up, "_start", start)
    monkeypatch.setattr("console.up.time.monotonic", lambda: clock[0])
    up._trained(LocalCluster(tmp_path, load_run_file(DEMO), {"north": ("u1",)}), tmp_path, Console(quiet=True))
    assert told == [30.0]
