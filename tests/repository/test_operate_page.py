"""docs/operate.md on a real cluster, the one of docs/cluster.md: copied, restored and given other keys while it trains.

Its devices wait where they would compute, so that the run outlasts the page.
"""

import configparser
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from cloud.store import VERSION
from console.certs import CA_DAYS, KEPT
from console.main import app
from tests.pages import PATIENCE, blocks, other_ports, page, type_in, types, write_files
from tests.slow_task import write_slow_task

PAGE, CLUSTER = "docs/operate.md", "docs/cluster.md"
WATCH = "sgfusion watch --cloud 127.0.0.1:7070 --certs certs/operator\n"
DOCTOR = "sgfusion doctor --cloud 127.0.0.1:7070 --certs certs/operator --state state/cloud\n"
FROM_THE_EDGE = "sgfusion doctor --cloud 127.0.0.1:7070 --certs certs/edge-north --state state/edge-north\n"
AT_EDGES = "--edge north=127.0.0.1:7071 --edge coast=127.0.0.1:7072"
FROM_A_DEVICE = f"sgfusion doctor {AT_EDGES} --certs certs/device-d0 --state state/device\n"
BEFOREHAND = "sgfusion doctor --state state/edge-north --listen 127.0.0.1:7071\n"
PROGRESS = "state/edge-north/checkpoints/records.jsonl"
HEARD = """python -c "
import sqlite3
cloud = sqlite3.connect('file:state/cloud/cloud.sqlite?mode=ro', uri=True)
print(*cloud.execute('SELECT count(*) FROM rounds WHERE zone = ?', ['north']).fetchone())
\""""
FURTHER = f"""until [[ -e state/cloud/address ]]; do sleep 0.2; done
before=$(wc -l < {PROGRESS}); heard=$({HEARD})
until [[ $(wc -l < {PROGRESS}) -gt $before ]]; do sleep 0.2; done
until [[ $({HEARD}) -gt $heard ]]; do sleep 0.2; done
"""
"""Until the cloud serves, for one that is told to end while it still loads ends by the signal, which the page's `wait`
says; and until the zone north has finished another round and the cloud has one more on its disk, which comes later.
"""
CTRL_C = "kill -INT $!; wait $! || [[ $? == 130 ]]\n"
LISTED = "(cd state/device/ledgers && find . -name '*.json' | sort | xargs sha256sum) >> ledgers.txt\n"


def typed() -> str:
    """The page's commands below those that start the cluster; after each restart, until rounds go on."""
    certs, start, look = [block.text for block in blocks(CLUSTER) if block.language == "sh"][:3]
    assert certs.startswith("sgfusion certs")
    assert look.startswith("until sgfusion status")
    parts = [certs, start, look, LISTED]
    for block in blocks(PAGE):
        if block.language == "sh":
            restarts = "2>> " in block.text
            parts += [block.text, *([f"echo {block.headings[-1]}: goes on\n"] if restarts else [])]
            if restarts:
                parts.insert(-1, FURTHER)
    return "".join([*parts, LISTED, "kill $(jobs -p)\nwait\n"])


@types("docs/operate.md")
@pytest.mark.timeout(PATIENCE + 30)
def test_the_page(tmp_path: Path) -> None:
    write_files(CLUSTER, tmp_path)
    slow = write_slow_task(tmp_path, seconds=0.05)
    run = (tmp_path / "harbour.toml").read_text()
    (tmp_path / "harbour.toml").write_text(run.replace('name = "linear"', f'name = "{slow}"'))
    changes = {
        WATCH: f"{WATCH.strip()} > watched.txt & until grep -q training watched.txt; do sleep 0.2; done\n{CTRL_C}",
        DOCTOR: f"{DOCTOR.strip()} > doctor.txt || [[ $? == 1 ]]\n",  # whatever this machine's troubles
        FROM_THE_EDGE: f"{FROM_THE_EDGE.strip()} > from-the-edge.txt || [[ $? == 1 ]]\n",
        FROM_A_DEVICE: f"{FROM_A_DEVICE.strip()} > from-a-device.txt || [[ $? == 1 ]]\n",
        BEFOREHAND: f"{BEFOREHAND.strip()} > beforehand.txt || [[ $? == 1 ]]\n",
        **other_ports(7070, 7071, 7072),
        "7080": other_ports(7080)["127.0.0.1:7080"].rpartition(":")[2],
    }
    printed = type_in(typed(), tmp_path, changes)
    assert re.findall(r"^(.*): goes on$", printed, re.MULTILINE) == [
        "Edges",
        "Restore",
        "Rotate certificates",
        "The CA",
    ]
    assert "no longer watching; that ends nothing else" in (tmp_path / "watched.txt").read_text()

    for name, state in (
        ("doctor", "cloud"),
        ("from-the-edge", "edge-north"),
        ("from-a-device", "device"),
        ("beforehand", "edge-north"),
    ):
        said = (tmp_path / f"{name}.txt").read_text()
        assert re.search(rf"free\s+for\s+state/{state}\s*$", said, re.MULTILINE), said
    found = (tmp_path / "doctor.txt").read_text()
    assert re.search(r"^✓ cloud ", found, re.MULTILINE), found
    assert not re.search(r"^✗ (cloud|zone|edge)", found, re.MULTILINE), found
    found = (tmp_path / "beforehand.txt").read_text()
    assert re.search(r"^! ports +127\.0\.0\.1:\d+:\s+taken\s+by\s+process\s+\d+", found, re.MULTILINE), found
    found = (tmp_path / "from-the-edge.txt").read_text()
    assert re.search(r"^✓ cloud .* takes us\s+for edge north", found, re.MULTILINE | re.DOTALL), found
    assert re.search(r"^✓ peers +1 of 1 answer", found, re.MULTILINE), found
    found = (tmp_path / "from-a-device.txt").read_text()
    for zone in ("north", "coast"):
        assert re.search(rf"^✓ edge {zone} [^✓✗]*\btakes\s+us\s+for\s+device\s+d0", found, re.MULTILINE), found

    # The copy is whole, and older than what the cloud had at the end: edges have brought it the rest, none missing.
    copied, now = (rounds_of(tmp_path / place / "cloud.sqlite") for place in ("backup", "state/cloud"))
    assert copied == list(range(1, len(copied) + 1))
    assert now == list(range(1, len(now) + 1))
    assert 0 < len(copied) < len(now)
    assert (tmp_path / "backup" / "edge-north" / "checkpoints" / "records.jsonl").stat().st_size > 0

    # Nobody released anything again.
    half = (tmp_path / "ledgers.txt").read_text().splitlines()
    assert len(half) == 2 * 6
    assert half[:6] == half[6:]
    assert len(list((tmp_path / "backup" / "ledgers").rglob("*.json"))) == 6

    assert (tmp_path / "certs" / "ca.crt").read_bytes() != (tmp_path / "certs-before" / "ca.crt").read_bytes()
    assert json.loads((tmp_path / "run.json").read_text())["run"]["name"] == "harbour"
    assert (tmp_path / "operator.p12").stat().st_size > 500


def rounds_of(path: Path) -> list[int]:
    database = sqlite3.connect(path)
    try:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [
            number for (number,) in database.execute("SELECT round FROM rounds WHERE zone = 'north' ORDER BY round")
        ]
    finally:
        database.close()


def test_lives_of_certificates_and_versions_are_those_of_the_code() -> None:
    text = page(PAGE)
    assert f"what ends within {KEPT.days} days" in text
    assert CA_DAYS == 3650
    assert "They last a year, the CA ten." in text
    assert f"`cloud.sqlite is of version {VERSION + 1}, this SGFusion knows up to {VERSION}`" in text


def test_the_unit_of_systemd_is_one_and_starts_an_edge(tmp_path: Path) -> None:
    """What it starts is the command of docs/cluster.md, which is run as it stands."""
    (unit,) = [block.text for block in blocks(PAGE) if block.headings[-1] == "Under systemd"]
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit)
    program, name, *arguments = shlex.split(re.sub(r"\\\n", " ", parsed["Service"]["ExecStart"]))
    assert (Path(program).name, name) == ("sgfusion", "edge")
    asked = typer.main.get_group(app).commands[name].make_context(name, arguments).params
    assert (asked["zone"], asked["devices"], asked["certs"]) == ("north", 3, Path("edge-north"))
    (shown,) = [block.text for block in blocks(CLUSTER) if "On several hosts" in block.headings]
    assert " ".join(["sgfusion", name, *arguments]) in " ".join(re.sub(r"\\\n", " ", shown).split())
    if verify := shutil.which("systemd-analyze"):
        here = unit.replace(program, sys.executable).replace("User=sgfusion\n", "")
        assert complaints(verify, tmp_path / "sgfusion-edge.service", here) == []
        misspelt = here.replace("RestartSec=", "RestrtSec=")
        assert any("RestrtSec" in line for line in complaints(verify, tmp_path / "sgfusion-typo.service", misspelt))


def complaints(verify: str, place: Path, unit: str) -> list[str]:
    """What systemd says of that unit; of others of this machine it may complain too, and then its exit code is 1."""
    place.write_text(unit)
    done = subprocess.run([verify, "verify", place], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in {0, 1}, done.stderr
    return [line for line in (done.stdout + done.stderr).splitlines() if place.name in line]
