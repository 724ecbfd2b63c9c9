"""The commands of experiments/RESULTS.md and docs/results.md, each typed with its own suite file, and made short: one
seed, one data set, two entries, few zones with little data, one round. They run in this process, which has torch
already; figures, which have tests of their own, are not painted.
"""

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.console.commands import sgfusion
from tests.pages import ROOT, script, types

LINES = [shlex.split(line, comments=True) for line in script("experiments/RESULTS.md").splitlines()]
LINES += [shlex.split(line, comments=True) for line in script("docs/results.md").splitlines()]
SMALL = {
    "sixteen_zones.toml": (),
    "flights.toml": ('zones.names=["ATL","BOS","CLT"]', "data.aircraft=3"),
    "heart_rate.toml": ("zones.min_devices=4", "data.share=0.05", "data.length=4"),
}


@types("experiments/RESULTS.md", "docs/results.md")
@pytest.mark.parametrize("line", LINES, ids=lambda line: Path(line[-1]).stem)
def test_a_command(
    line: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("console.experiment.cores", lambda: 1)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _figure, file, **_: file.write(b"drawn"))
    program, command, file = line
    assert (program, command) == (".venv/bin/sgfusion", "experiment")
    suite = tomllib.loads(Path(file).read_text("utf-8"))
    named = [*suite.get("methods", ()), *suite.get("entries", ())]
    first = suite.get("reference", "sgfusion")
    entries = [first, *(name for name in named if name != first)][:2]
    shorter = ["--seeds", str(suite["seeds"][0]), "--entries", ",".join(entries)]
    shorter += ["--data", next(iter(suite["data"]))] if "data" in suite else []
    for setting in ("rounds=1", "evaluation.every=1", *SMALL[suite["run"]]):
        shorter += ["--set", setting]
    done = sgfusion(capsys, command, file, *shorter, "--out", tmp_path / "out")
    assert done.code == 0, f"{done.out}{done.error}"
    said = json.loads((tmp_path / "out" / "suite.json").read_text())
    assert f"experiment {file}" in said["command"]
    assert (tmp_path / "out" / "report.html").exists()
