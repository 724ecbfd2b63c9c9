"""Small finished runs in folders of the tests' own, served by `sgfusion view`."""

import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 200.0
"""Seconds for a process on a machine with much else to do."""
MARKUP = "<img src=x onerror=\"document.title='owned'\"> & <b>bold</b>"
"""What a text may say without it becoming part of the page."""

RUN = """
name = "{name}"
seed = 3
rounds = {rounds}
[task]
name = "linear"
[data]
source = "generated_zones"
devices = {devices}
samples = 6
features = 8
kinds = {kinds}
contrast = 0.5
difference = 0.2
noise = 1.0
[zones]
names = [{names}]
{places}
[histogram]
epsilon = {epsilon}
[hrg]
sharpness = {sharpness}
[optimiser]
rate = 0.05
[evaluation]
every = {every}
"""
# Two squares side by side, a triangle north of them, a point in the east.
PLACES = """
[zones.places]
ash = [[[50.0, 14.0], [50.0, 16.0], [52.0, 16.0], [52.0, 14.0]]]
birch = [[[50.0, 16.0], [50.0, 18.0], [52.0, 18.0], [52.0, 16.0]]]
cedar = [[[52.0, 14.0], [52.0, 18.0], [53.5, 16.0]]]
elm = [[[51.0, 20.0]]]
"""
FOUR = ("ash", "birch", "cedar", "elm")
MANY = tuple(f"zone-{number:03d}" for number in range(115))


def four_zones() -> str:
    return RUN.format(
        name="four",
        rounds=8,
        devices=3,
        kinds=2,
        names=_quoted(FOUR),
        places=PLACES,
        epsilon=10.0,
        sharpness=5.0,
        every=2,
    )


def many_zones() -> str:
    return RUN.format(
        name="many",
        rounds=3,
        devices=1,
        kinds=5,
        names=_quoted(MANY),
        places="",
        epsilon='"off"',
        sharpness=30.0,
        every=1,
    )


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def simulated(folder: Path) -> tuple[Path, Path]:
    """Results of both, with what four zones come to alone, as `sgfusion up` writes them."""
    folder.mkdir()
    (folder / "four.toml").write_text(four_zones())
    (folder / "many.toml").write_text(many_zones())
    started = [
        _started("simulate", folder / "four.toml", "--out", folder / "four"),
        _started("simulate", folder / "four.toml", "--method", "sgeofl", "--out", folder / "alone"),
        _started("simulate", folder / "many.toml", "--out", folder / "many"),
    ]
    for process in started:
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    _know_alone(folder / "four", folder / "alone")
    _trouble(folder / "four")
    return folder / "four", folder / "many"


def _know_alone(folder: Path, alone: Path) -> None:
    summary, other = (json.loads((each / "summary.json").read_text()) for each in (folder, alone))
    for name, zone in summary["zones"].items():
        zone["alone"] = other["zones"][name]["test"]
    summary["pooled"]["alone"] = other["pooled"]["test"]
    (folder / "summary.json").write_text(json.dumps(summary))


def _trouble(folder: Path) -> None:
    """A peer that did not answer in ash's last round, and an event: both speak in markup."""
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    last = max((line for line in lines if line["zone"] == 0), key=lambda line: line["round"])
    last["attention"].pop("3", None)
    last["left_out"] = {"3": MARKUP}
    last["drawn"] = sorted({*last["drawn"], 3})
    (folder / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    known = json.loads((folder / "zones.json").read_text())
    known["events"] = [{"time": 1.7e9, "text": f"said {MARKUP}"}]
    (folder / "zones.json").write_text(json.dumps(known))


def _started(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "console.main", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@contextmanager
def viewed(folder: Path) -> Iterator[str]:
    """Its page's URL, served by `sgfusion view` in a process of its own."""
    process = _started("view", folder, "--page", "127.0.0.1:0")
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", said)):
            line = process.stdout.readline()
            assert line, f"sgfusion view has ended: {said}"
            said += line
        late.cancel()
        yield found[0]
    finally:
        late.cancel()
        process.terminate()
        process.communicate(timeout=PATIENCE)


def answer(url: str, path: str) -> Any:
    """What the page's server says there."""
    with urllib.request.urlopen(f"{url}{path}", timeout=30) as response:  # noqa: S310 (our own server)
        return json.load(response)
