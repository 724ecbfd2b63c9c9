"""docs/quickstart.md as a stranger types it, in order: its clusters are real processes. For the sake of time the
demonstration is made small, and waits where it would compute, so that it lasts until a zone has joined. `make demo`,
which .ci/run types for real, is here what the simulator makes of it.
"""

import json
import re
from pathlib import Path

import pytest

from cloud.page.picture import zone_part
from console.joining import joining_run
from device.sources.synthetic_countries import COUNTRIES
from sgfusion.runfile import load_run_file
from simulator.resolve import resolved
from tests.pages import PATIENCE, ROOT, looked_at, page, script, type_in, types, write_files
from tests.slow_task import write_slow_task

PAGE = "docs/quickstart.md"
SMALL = {"share = 0.3": "share = 0.05", "length = 300": "length = 8", "rounds = 30": "rounds = 3"}
FEWER = '"lubelskie", "podlaskie", "swietokrzyskie"'
UP = "sgfusion up experiments/demo.toml --set rounds=400 --out results/long --no-alone\n"
ANOTHER_TERMINAL = "until grep -q ' training' up.log; do sleep 0.1; done\n"
JOIN = "sgfusion join --zone mazowieckie\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with what the page needs of the repository: three of the demonstration's zones, with little data."""
    text = (ROOT / "experiments" / "demo.toml").read_text("utf-8")
    text = re.sub(r"^names = .*$", f"names = [{FEWER}]", text, flags=re.MULTILINE)
    for ours, other in SMALL.items():
        assert ours in text
        text = text.replace(ours, other)
    slow = write_slow_task(tmp_path, seconds=0.01, task="heart_rate")
    assert 'name = "heart_rate"' in text
    text = text.replace('name = "heart_rate"', f'name = "{slow}"')
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "demo.toml").write_text(text, "utf-8")
    return tmp_path


@pytest.mark.timeout(PATIENCE + 30)
@types("docs/quickstart.md", but=["make demo"])
def test_the_page(place: Path) -> None:
    assert write_files(PAGE, place) == ["mine.toml"]
    changes = {
        "make demo\n": "sgfusion simulate experiments/demo.toml --out results/demo\n",
        'export PATH="$PWD/.venv/bin:$PATH"\n': "",  # it has the command already
        **looked_at("sgfusion view results/demo", "demo.json"),
        UP: f"{UP.strip().replace('400', '60')} > up.log 2>&1 &\nup=$!\n{ANOTHER_TERMINAL}",
        JOIN: f"{JOIN}wait $up\n",
        "sgfusion doctor\n": "sgfusion doctor > doctor.txt || [[ $? == 1 ]]\n",  # whatever this machine's troubles
        **looked_at("sgfusion view results/mine", "mine.json"),
    }
    printed = type_in(script(PAGE), place, changes)
    assert re.search(r"RMSE \S+ bpm on the \d+ test samples of zone lubelskie", printed)
    assert (place / "results" / "export" / "MODEL_CARD.md").exists()
    assert "zone mazowieckie with 5 devices joins the cluster in results/long. Ctrl-C takes it out again\n" in printed
    said = re.search(r"`(plan 2 over) 7( zones: zone mazowieckie joined)`", page(PAGE))
    assert said is not None
    assert f"{said[1]} 4{said[2]}" in (place / "up.log").read_text()
    joined = json.loads((place / "results" / "long" / "summary.json").read_text())
    assert list(joined["zones"]) == ["lubelskie", "podlaskie", "swietokrzyskie", "mazowieckie"]
    assert (place / "results" / "long" / "models" / "mazowieckie.safetensors").exists()
    for file, zones in (("demo.json", 3), ("mine.json", 3)):
        assert len(json.loads((place / file).read_text())["zones"]) == zones
    assert re.search(r"\d+ fine, \d+ worth a look, \d+ broken", (place / "doctor.txt").read_text())
    mine = json.loads((place / "results" / "mine" / "summary.json").read_text())
    assert mine["pooled"]["test"] < mine["pooled"]["before"] / 5
    (place / "mine.toml").write_text((place / "mine.toml").read_text().replace('"minutes"', '"minuts"'), "utf-8")
    sooner = type_in("sgfusion simulate mine.toml --out results/try 2>&1 || [[ $? == 1 ]]\n", place, {})
    assert "did you mean 'minutes'" in " ".join(sooner.split())
    assert not (place / "results" / "try").exists()


def test_any_zone_that_joins_the_demo_has_a_place_on_its_map(tmp_path: Path) -> None:
    """The page's own, mazowieckie, stood below all others, "without a known place"."""
    cluster = resolved(load_run_file(ROOT / "experiments" / "demo.toml"))
    (tmp_path / "run.toml").write_text(cluster.to_toml(), "utf-8")
    everybody = COUNTRIES["poland"].zones
    others = [zone for zone in everybody if zone not in cluster.zones.names]
    assert "mazowieckie" in others
    for number, zone in enumerate(others, len(cluster.zones.names)):
        joining_run(tmp_path / "run.toml", zone, ())  # it may
        # What the cloud's page says of a zone comes from the run as the cloud was started with.
        assert zone_part(number, zone, cluster, (0.0, 0.0))["place"] == [[list(everybody[zone])]]


def test_the_demo_is_what_the_page_says() -> None:
    text = (ROOT / "experiments" / "demo.toml").read_text("utf-8")
    names = re.search(r"^names = \[(.*)\]$", text, re.MULTILINE)
    assert names is not None
    assert len(names[1].split(",")) == 6
    assert "six zones' edges and their 47 devices" in page(PAGE)
    assert "@$(BIN)/sgfusion up experiments/demo.toml" in (ROOT / "Makefile").read_text()
