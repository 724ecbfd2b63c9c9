"""Hints name our command as a shell finds it."""

import sys
from pathlib import Path

import pytest

from console.concluding import conclusion
from console.typed import typed


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in .venv/bin, which is not on the PATH, and another one on it."""
    for name in (".venv/bin", "others/bin"):
        program = tmp_path / name / "sgfusion"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path


def test_one_that_is_not_on_the_path_is_typed_as_it_was_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in (".venv/bin/sgfusion", str(here / ".venv/bin/sgfusion")):
        monkeypatch.setattr(sys, "argv", [run, "up"])
        assert typed("view", Path("results/demo")) == ".venv/bin/sgfusion view results/demo"
    monkeypatch.setenv("PATH", str(here / "others/bin"))
    assert typed("view") == ".venv/bin/sgfusion view", "a shell would find another one"
    monkeypatch.chdir(here / "others")
    assert typed("view") == f"{here}/.venv/bin/sgfusion view"


def test_one_that_a_shell_finds_is_typed_by_its_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here / ".venv/bin"))
    monkeypatch.setattr(sys, "argv", [".venv/bin/sgfusion", "up"])
    assert typed("view", "my results") == "sgfusion view 'my results'"


def test_who_is_no_program_of_that_name_has_nothing_better(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in ("sgfusion", str(here / "main.py")):
        monkeypatch.setattr(sys, "argv", [run])
        assert typed("status") == "sgfusion status"


@pytest.mark.usefixtures("here")
def test_what_is_said_after_a_run_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/sgfusion", "up"])
    zones = {"elm": {"validation": 1.0, "test": 1.0}}
    summary = {"pooled": {}, "notes": [], "zones": zones, "synthetic": True, "device_gradients": 1, "bytes_sent": 1}
    browser, *following = list(conclusion(summary, Path("results/demo")))[-3:]
    assert browser == "Look at it in a browser: .venv/bin/sgfusion view results/demo"
    assert following == [  # each on a line of its own: a terminal breaks a longer one anywhere
        "Next: .venv/bin/sgfusion export results/demo --zone elm",
        "or: .venv/bin/sgfusion predict results/demo --zone elm",
    ]
