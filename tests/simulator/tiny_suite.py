"""A suite of made-up zones that takes a moment."""

from pathlib import Path

RUN = """
name = "tiny"
seed = 9
rounds = 3
[task]
name = "linear"
[data]
source = "generated_zones"
devices = 2
samples = 10
features = 3
kinds = 2
contrast = 0.25
difference = 0.1
noise = 1.0
[zones]
names = ["north", "south", "west"]
[hrg]
restarts = 1
[evaluation]
every = 2
"""
SUITE = """
name = "few"
run = "tiny.toml"
seeds = [1, 2]
methods = ["sgfusion", "fedavg"]
[entries]
"top-1" = { method = "top-k-sgfusion", set = { "sampler.k" = 1 } }
[data]
near = { "data.contrast" = 0.1 }
far = { "data.contrast" = 0.9 }
"""


def write_suite(folder: Path, suite: str = SUITE, run: str = RUN) -> Path:
    (folder / "tiny.toml").write_text(run, "utf-8")
    (folder / "few.toml").write_text(suite, "utf-8")
    return folder / "few.toml"
