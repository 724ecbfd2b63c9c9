"""What is fetched of a finished cluster, and how long each of its edges is asked: by a clock of the test's own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from rich.console import Console

from console import watching
from console.watching import FETCH_WITHIN, Fetched, Watch
from sgfusion.errors import UnavailableError
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys, retrying
from tests.cloud.clouds import ISSUER
from tests.cloud.page.runs import the_run, trained_cloud
from tests.cluster.keys import OPERATOR, run_async

T = TypeVar("T")
PATIENCE = 200.0
"""Seconds that a first fit may take, on a machine with much else to do."""
SECONDS = 10.0
"""That a person may wait for who has most likely gone."""


@dataclass
class Dialled:
    """A cluster of which the cloud alone is real."""

    run: RunFile
    cloud: str

    def operator(self) -> Keys:
        return ISSUER.keys(OPERATOR)

    def address(self, _name: str) -> str:
        return self.cloud

    def revive(self) -> list[str]:
        return []


class Edges:
    """All hand out their models but one, and how long it is asked for its own."""

    def __init__(self, gone: str, *, silent: bool) -> None:
        self._gone, self._silent = gone, silent
        self.now = 0.0

    async def model(self, _channel: object, zone: str, _kind: str, *, timeout: float) -> tuple[int, str, object]:
        if zone != self._gone:
            return 2, "", np.zeros(1, np.float32)
        self.now += timeout if self._silent else 0.0  # nobody answers, or the host says that nobody listens there
        raise UnavailableError(f"{zone} is gone")

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def ask(self, call: Callable[[], Awaitable[T]], *, budget_seconds: float) -> T:
        return await retrying(call, budget_seconds=budget_seconds, clock=lambda: self.now, sleep=self.sleep)


def fetched(folder: Path, edges: Edges, monkeypatch: pytest.MonkeyPatch, *, leaves: str | None = None) -> Fetched:
    """What a run of ash, birch and cedar has come to after two rounds."""
    monkeypatch.setattr(watching, "fetch_model", edges.model)
    monkeypatch.setattr(watching, "retrying", edges.ask)

    async def work() -> Fetched:
        async with trained_cloud(folder, rounds=2) as (cluster, _):
            if leaves is not None:
                await cluster.service.leave(leaves)
            return await Watch(Dialled(the_run(), cluster.address), Console(quiet=True)).fetch()

    return run_async(work(), PATIENCE)


@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
def test_a_zone_that_has_left_is_asked_for_its_model_for_seconds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    edges = Edges("cedar", silent=silent)
    found = fetched(tmp_path, edges, monkeypatch, leaves="cedar")
    assert set(found.models) == {"ash", "birch"}
    assert found.notes == ("cedar has left the run, and took its model along",)
    assert [zone.zone for zone in found.others] == ["cedar"]
    assert 0 < edges.now <= SECONDS


def test_one_that_is_still_of_the_run_is_asked_for_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its edge may be about to start again."""
    edges = Edges("cedar", silent=False)
    found = fetched(tmp_path, edges, monkeypatch)
    assert found.notes == ("cedar: its edge does not hand out its model: cedar is gone",)
    assert edges.now >= FETCH_WITHIN
