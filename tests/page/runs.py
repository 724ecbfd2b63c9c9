"""Small finished runs in folders of the tests' own, served by `sgfusion view`."""

import json
import math
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from device.sources.outlines import cells
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.distance import zone_distances
from sgfusion.runfile_geography import Rings, places_toml

PATIENCE = 200.0
"""Seconds for a process on a machine with much else to do."""
MARKUP = "<img src=x onerror=\"document.title='owned'\"> & <b>bold</b>"
"""What a text may say without it becoming part of the page."""

RUN = """
name = "{name}"
seed = 3
rounds = {rounds}
[task]
{task}
[data]
source = "generated_zones"
{classes}
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
HEXES = ("841f519ffffffff", "841f511ffffffff", "841f51bffffffff")
"""Cells of H3's, side by side: the last of the many zones. The ten before these are outlines, all others points."""
OUTLINES = 10


# A cell of H3's, an outline with a point beside it, three points; two zones lie nowhere, and two have one distribution.
CELL = "841f09dffffffff"
ISLES = [(54.0, 19.4), (54.3, 19.6), (54.6, 19.4)]
CLASSES = {
    "cell": (1.0, 0.0, 0.0),
    "even": (0.5, 0.0, 0.5),
    "hel": (0.0, 1.0, 0.0),
    "isles": (0.0, 0.0, 1.0),
    "lost": (0.4, 0.2, 0.4),
    "strayed": (0.1, 0.8, 0.1),
    "twin": (0.5, 0.0, 0.5),
}
"""The shares of class 0, 1 and 2 in each zone. The mean class is 1 in all but two, which says nothing of them."""
NUMBERS = {"task": 'name = "linear"', "classes": ""}


def four_zones() -> str:
    return RUN.format(
        **NUMBERS,
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
        **NUMBERS,
        name="many",
        rounds=3,
        devices=1,
        kinds=5,
        names=_quoted(MANY),
        places=places_toml(many_places()),
        epsilon=10.0,
        sharpness=30.0,
        every=1,
    )


def many_places() -> dict[str, Rings]:
    """Around a city, the farther out the thinner: points, some of the outermost outlines, and cells in the north."""
    turn = math.pi * (3 - math.sqrt(5))  # the seeds of a sunflower: nobody covers another
    spots = [
        (52.2 + reach * math.sin(turn * n), 21.0 + 1.6 * reach * math.cos(turn * n))
        for n in range(len(MANY) - len(HEXES))
        for reach in [0.2 + 2.4 * (n / len(MANY)) ** 0.8]
    ]
    places: dict[str, Rings] = {
        name: (((round(north, 3), round(east, 3)),),) for name, (north, east) in zip(MANY, spots, strict=False)
    }
    for name, (north, east) in list(zip(MANY, spots, strict=False))[-OUTLINES:]:
        corners = [(math.sin(corner), math.cos(corner)) for corner in (0.2, 1.4, 2.6, 3.6, 5.0)]
        places[name] = (tuple((round(north + 0.18 * up, 3), round(east + 0.3 * right, 3)) for up, right in corners),)
    return places | {name: cells([cell])[cell] for name, cell in zip(MANY[-len(HEXES) :], HEXES, strict=True)}


def classes() -> str:
    """Labels that are classes, and a metric that is better the higher it is."""
    places: dict[str, Rings] = {
        "cell": cells([CELL])[CELL],
        "even": (((53.8, 18.4),),),
        "hel": (((54.6, 18.8), (54.8, 18.3), (54.7, 18.4)), ((54.4, 18.7),)),  # as in docs/run-file.md
        "isles": tuple((place,) for place in ISLES),
        "twin": (((54.9, 17.2),),),
    }
    return RUN.format(
        task='name = "activity"\nclasses = 3',
        classes="classes = 3",
        name="classes",
        rounds=2,
        devices=1,
        kinds=2,
        names=_quoted(tuple(CLASSES)),
        places=places_toml(places),
        epsilon='"off"',
        sharpness=5.0,
        every=1,
    )


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def simulate(folder: Path) -> None:
    """Results of all three in `four`, `many` and `classes`, with what four zones come to alone, as `sgfusion up` writes
    them; what 115 come to alone is made up.
    """
    (folder / "four.toml").write_text(four_zones())
    (folder / "many.toml").write_text(many_zones())
    (folder / "classes.toml").write_text(classes())
    started = [
        _started("simulate", folder / "classes.toml", "--out", folder / "classes"),
        _started("simulate", folder / "four.toml", "--out", folder / "four"),
        _started("simulate", folder / "four.toml", "--method", "sgeofl", "--out", folder / "alone"),
        _started("simulate", folder / "many.toml", "--out", folder / "many"),
    ]
    for process in started:
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    _know_alone(folder / "four", json.loads((folder / "alone" / "summary.json").read_text()))
    _know_alone(folder / "many", _made_up(json.loads((folder / "many" / "summary.json").read_text())))
    _trouble(folder / "four")
    _relabel(folder / "classes")


def _relabel(folder: Path) -> None:
    """Histograms whose likeness anybody can tell, and the tree's distances after them."""
    known = json.loads((folder / "zones.json").read_text())
    for name, shares in CLASSES.items():
        known["zones"][name]["histogram"] = shares
    (folder / "zones.json").write_text(json.dumps(known))
    summary = json.loads((folder / "summary.json").read_text())
    summary["metric"]["unit"] = "%"  # of the accuracy, and not of the labels
    (folder / "summary.json").write_text(json.dumps(summary))
    tree = ZoneTree.from_json((folder / "dendrogram.json").read_bytes())
    distances = zone_distances([CLASSES[name] for name in tree.zones])
    (folder / "dendrogram.json").write_text(ZoneTree(tree.zones, tree.dendrogram, distances).to_json())


def _made_up(summary: dict[str, Any]) -> dict[str, Any]:
    """Alone two zones of three are worse, by 30 % at most: nobody trains 115 zones once more to look at colours."""
    for number, zone in enumerate(summary["zones"].values()):
        zone["test"] *= 1.1 + 0.2 * math.sin(number)
    summary["pooled"]["test"] *= 1.1
    return summary


def _know_alone(folder: Path, alone: dict[str, Any]) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    for name, zone in summary["zones"].items():
        zone["alone"] = alone["zones"][name]["test"]
    summary["pooled"]["alone"] = alone["pooled"]["test"]
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
