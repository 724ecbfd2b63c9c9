"""The benchmark measures what it says and fails when it should; its figures are not tested, they are measured."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import round as module
from benchmarks.flower_venv import NoFlowerError, flower_python
from benchmarks.noop.side import Layout, Side
from benchmarks.round import FLOWER, OURS, OURS_TLS, PLAIN, PLAIN_TLS, main, noop_ratios, noop_rounds
from benchmarks.simulator import Ratio

WITHIN = {OURS: (0.04, 0.06), PLAIN: (0.02, 0.03), OURS_TLS: (0.05, 0.05), PLAIN_TLS: (0.04, 0.02)}


def test_all_systems_take_turns_over_plain_text_and_tls() -> None:
    took = noop_rounds(Layout(devices=4, processes=2, weights=300), turns=2, flower_by=None)
    assert list(took) == [OURS, PLAIN, OURS_TLS, PLAIN_TLS]
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in took.values())


def test_devices_are_spread_over_processes_and_none_is_lost() -> None:
    assert Layout().shares() == [(0, 16), (16, 16), (32, 16), (48, 16)]
    assert Layout(devices=5, processes=3).shares() == [(0, 2), (2, 2), (4, 1)]
    assert Layout(devices=1, processes=3).shares() == [(0, 1)]


@pytest.mark.parametrize("part", ["ours", "plain"])
def test_a_device_that_answers_otherwise_is_no_figure(part: str) -> None:
    """The server compares each mean with what it sent."""
    wrong = (
        "import runpy, sys, numpy as np; np.array_equal = lambda a, b: False;"
        f" sys.argv[0] = 'x'; runpy.run_module('benchmarks.noop.{part}', run_name='__main__')"
    )
    side = Side(part, [sys.executable, "-c", wrong], Layout(devices=2, processes=1, weights=10))
    with side, pytest.raises(RuntimeError, match="mean of equal vectors is another one"):
        side.rounds(1)


def test_a_server_that_does_not_start_says_why() -> None:
    side = Side("broken", [sys.executable, "-c", "raise SystemExit('no port is free')"], Layout(devices=1))
    with pytest.raises(RuntimeError, match=r"broken: its server has ended: no port is free"), side:
        pass


def test_each_is_compared_with_its_like() -> None:
    found = noop_ratios({**WITHIN, FLOWER: (0.2, 0.1)})
    assert [(ratio.name, ratio.value, most) for ratio, most in found] == [
        ("ours / plain gRPC", 2.0, 2.0),
        ("ours, TLS / plain gRPC, TLS", pytest.approx(1.875), 2.0),
        ("ours / Flower", pytest.approx(0.4), 0.5),
    ]


@pytest.mark.parametrize(
    ("figures", "code"),
    [
        ((2.0, 2.0, 4.0, 1.2), 0),
        ((2.1, 1.0, 9.0, 1.0), 1),
        ((1.0, 2.1, 9.0, 1.0), 1),
        ((1.0, 1.0, 1.9, 1.0), 1),
        ((1.0, 1.0, 9.0, 1.3), 1),
    ],
)
def test_a_ratio_beyond_its_limit_is_the_exit_code_and_the_table_is_there(
    figures: tuple[float, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, tls, flower, cluster = figures
    took = {OURS: (ours,), PLAIN: (1.0,), OURS_TLS: (tls,), PLAIN_TLS: (1.0,), FLOWER: (flower,)}
    monkeypatch.setattr(module, "flower_python", lambda: Path("python"))
    monkeypatch.setattr(module, "noop_rounds", lambda *_: took)
    wall, cpu = Ratio("cluster / bare compute", (cluster,), (1.0,)), Ratio("the same, CPU", (9.0,), (1.0,))
    monkeypatch.setattr(module, "overhead", lambda *_: (wall, cpu))  # CPU has no limit
    assert main(["--no-limits"]) == 0
    assert main([]) == code
    printed = capsys.readouterr().out
    for figure in (ours, tls, ours / flower, cluster):
        assert f"{figure:.2f}" in printed
    assert "NOT COMPARED" not in printed


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--flower", "required"), 1), (("--flower", "off"), 0)])
def test_without_flower_the_rest_is_measured_and_it_is_said_aloud(
    options: Sequence[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> Path:
        raise NoFlowerError("no index")

    monkeypatch.setattr(module, "flower_python", none)
    monkeypatch.setattr(module, "noop_rounds", lambda *_: WITHIN)
    assert main(["--cluster-turns", "0", *options]) == code
    printed = capsys.readouterr().out
    assert ("NOT COMPARED WITH FLOWER: no index" in printed) == ("off" not in options)
    assert f"{noop_ratios(WITHIN)[1][0].value:.2f}" in printed


def test_flower_that_cannot_be_installed_is_told_from_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(NoFlowerError, match=r"flwr==\S+ cannot be installed into .*: "):
        flower_python(tmp_path / "venv")
    assert not (tmp_path / "venv" / ".ready").exists()


def test_flower_is_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / ".ready").touch()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was called"))
    assert flower_python(tmp_path) == tmp_path / "bin" / "python"
