"""The benchmark of the page measures what it says, and fails when it should; its figures are measured, not tested."""

import asyncio

import pytest

from benchmarks import page as module
from benchmarks.page import IDLE, OFF, WATCHED, Side, beyond, main, measure, table_of
from benchmarks.page_edges import ROUND_SECONDS

Capture = pytest.CaptureFixture[str]


def sides(idle: float = 0.11, watched: float = 0.14, worst: float = 0.6) -> list[Side]:
    return [
        Side(OFF, shares=[0.2, 0.1, 0.1]),
        Side(IDLE, shares=[0.2, idle, idle]),
        Side(WATCHED, viewers=2, shares=[0.9, watched, watched], lateness=[0.2, 0.3, worst]),
    ]


def test_real_clouds_are_measured_and_every_round_comes_to_the_viewer() -> None:
    zones = 115
    found = asyncio.run(measure(zones=zones, viewers=2, seconds=2 * ROUND_SECONDS, turns=2))
    assert [side.name for side in found] == [OFF, IDLE, WATCHED]
    assert all(len(side.shares) == 2 and min(side.shares) > 0 for side in found)
    assert [len(side.lateness) for side in found] == [0, 0, 2 * 2 * zones]
    assert min(found[2].lateness) >= 0
    # 1.1 of the cloud without a page, by the benchmark: what shows here is a page that costs several times as much.
    assert found[2].share < 2 * found[0].share


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (sides(), []),
        (sides(idle=0.16), ["page, nobody looks: 6.0 % of a core, at most 5 are wanted"]),
        (sides(watched=0.151), ["page, viewers: 5.1 % of a core, at most 5 are wanted"]),
        (sides(worst=1.25), ["page, viewers: a round came after 1.25 s"]),
    ],
)
def test_limits(measured: list[Side], said: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert beyond(measured) == said

    async def known(*_: object) -> list[Side]:
        return measured

    monkeypatch.setattr(module, "measure", known)
    assert main([]) == (1 if said else 0)
    assert all(line in capsys.readouterr().out for line in said)


def test_the_table_compares_with_no_page() -> None:
    rows = [list(column.cells) for column in table_of(sides()).columns]
    assert rows[0] == [OFF, IDLE, WATCHED]
    assert rows[1] == ["10.0", "11.0", "14.0"]
    assert rows[2] == ["", "+1.0", "+4.0"]
    assert rows[3] == ["", "1.10", "1.40"]
    assert rows[4] == ["", "", "0.30"]
    assert rows[6] == ["", "", "0.60"]
