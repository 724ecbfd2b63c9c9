"""Outcomes of other settings, other data or other code are never mixed."""

import importlib
from pathlib import Path

import pytest

from sgfusion.runfile import parse_run_file
from simulator import suite_folder
from simulator.suite_folder import fingerprint
from tests.run_files import BASE


def test_it_is_the_same_for_the_same_and_other_for_another_method_or_setting() -> None:
    run = parse_run_file(BASE)
    assert fingerprint(run, "fedavg") == fingerprint(parse_run_file(BASE), "fedavg")
    assert fingerprint(run, "fedavg") != fingerprint(run, "ifca")
    assert fingerprint(run, "fedavg") != fingerprint(parse_run_file(BASE, ["seed=2"]), "fedavg")
    placed = parse_run_file(BASE, ["zones.places={ash=[[[50, 20]]]}"])  # how a map looks decides nothing
    assert fingerprint(run, "fedavg") == fingerprint(placed, "fedavg")


def test_it_changes_with_the_code_that_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    run = parse_run_file(BASE)
    before = fingerprint(run, "fedavg")
    suite_folder._code.cache_clear()
    assert fingerprint(run, "fedavg") == before
    read = Path.read_bytes

    def altered(path: Path) -> bytes:
        return read(path) + (b"# a change" if path.name == "fusion.py" else b"")

    suite_folder._code.cache_clear()
    monkeypatch.setattr(Path, "read_bytes", altered)
    assert fingerprint(run, "fedavg") != before
    suite_folder._code.cache_clear()


def test_it_changes_with_your_own_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "my_fingerprinted_task.py"
    module.write_text("task = 1\n")
    importlib.invalidate_caches()
    run = parse_run_file(BASE, ["task.name=my_fingerprinted_task:task"])
    before = fingerprint(run, "fedavg")
    module.write_text("task = 2\n")
    assert fingerprint(run, "fedavg") != before
