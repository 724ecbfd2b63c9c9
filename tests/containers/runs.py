"""The run of these tests, and what the simulator makes of it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ZONES = ("ash", "birch", "cedar")
RUN = """
name = "containers"
seed = 3
rounds = {rounds}
[task]
name = "linear"
[data]
source = "generated_zones"
devices = {devices}
samples = 8
features = 8
kinds = 2
contrast = 0.5
difference = 0.2
noise = 1.0
[zones]
names = {zones}
[histogram]
epsilon = "off" # else nobody can make the same tree again
[hrg]
sharpness = 5.0
[optimiser]
rate = 0.02
[evaluation]
every = 20
[simulation]
exact = true
"""


def run_text(rounds: int, *, zones: Sequence[str] = ZONES, devices: int = 2) -> str:
    return RUN.format(rounds=rounds, zones=list(zones), devices=devices)


def simulated(text: str, folder: Path, *overrides: str) -> Path:
    """The results folder of `sgfusion simulate`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "given.toml").write_text(text, "utf-8")
    settings = [word for override in overrides for word in ("--set", override)]
    command = ["simulate", str(folder / "given.toml"), "--out", str(folder / "results"), *settings]
    done = subprocess.run(
        [sys.executable, "-m", "console.main", *command], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return folder / "results"


def rounds_of(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (results / "rounds.jsonl").read_text("utf-8").splitlines()]


def assert_same(found: Path, expected: Path) -> None:
    """The same models to the byte, and the same rounds: draws, what was left out, and every number."""
    for mine, theirs in zip(rounds_of(found), rounds_of(expected), strict=True):
        assert mine == theirs
    models = sorted(path.name for path in (expected / "models").iterdir())
    assert sorted(path.name for path in (found / "models").iterdir()) == models
    assert models
    for name in models:
        assert (found / "models" / name).read_bytes() == (expected / "models" / name).read_bytes(), name
