"""The page on clusters: its commands run as they stand, as real processes, and its tables are the code's.

Its run has fewer rounds here. Where it is to last while commands are typed, devices wait where they would compute.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer.main

from console.main import app
from sgfusion.reports import STANDINGS
from tests.pages import other_ports, type_in, types
from tests.slow_task import write_slow_task

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")
WITHIN = 540
"""Seconds for all of the page, on a machine with much else to do."""
PORTS = (7070, 7071, 7072, 7073)
ROUNDS = 100


def blocks(language: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (run,) = blocks("toml")
    assert "rounds = 600\n" in run
    (tmp_path / "harbour.toml").write_text(run.replace("rounds = 600\n", f"rounds = {ROUNDS}\n"), "utf-8")
    return tmp_path


def slowed(place: Path) -> Path:
    slow = write_slow_task(place, seconds=0.05)
    run = (place / "harbour.toml").read_text("utf-8")
    (place / "harbour.toml").write_text(run.replace('name = "linear"', f'name = "{slow}"'), "utf-8")
    return place


def typed(script: str, place: Path, changes: Mapping[str, str] = {}) -> str:
    """What a shell prints that is given the commands, on ports that nobody else has."""
    ports = [port for port in PORTS if f"127.0.0.1:{port}" in script]
    return type_in(script, place, {**changes, **other_ports(*ports)}, within=WITHIN)


@types("docs/cluster.md#By hand")
@pytest.mark.timeout(WITHIN + 30)
def test_a_cluster_by_hand(place: Path) -> None:
    by_hand = PAGE.partition("\n## By hand\n")[2].partition("\n## ")[0]
    printed = typed("\n".join(blocks("sh", by_hand)), slowed(place), {"[0-9]*/600'": f"[0-9]*/{ROUNDS}'"})
    assert '"finished": true' in printed
    assert re.search(rf"north .* training .* \d+/{ROUNDS} .* 3/3 ", printed)
    assert re.search(rf"north .* done .* {ROUNDS}/{ROUNDS} .* 4/3 ", printed)  # with the device that came later
    assert "zone hills joined" in printed
    assert {path.name for path in (place / "exported" / "north").iterdir()} >= {"north.safetensors", "MODEL_CARD.md"}
    goes_on = re.search(r"goes on after round (\d+)", (place / "north.log").read_text())
    assert goes_on is not None
    assert 0 < int(goes_on[1]) <= ROUNDS
    for log in ("cloud", "coast", "devices", "d3", "hills", "hills-devices"):
        assert "stops: SIGTERM" in (place / f"{log}.log").read_text(), log
    _, *listed = [line.split("|")[2].strip() for line in section("What is where").splitlines() if line.startswith("| ")]
    assert [path for path in listed if path != "stderr" and not (place / path.strip("`")).is_dir()] == []


@types("docs/cluster.md#`sgfusion up`")
@pytest.mark.timeout(WITHIN + 30)
def test_a_cluster_by_one_command(place: Path) -> None:
    printed = typed("".join(blocks("sh", section("`sgfusion up`"))), place)
    assert "results/harbour" in printed
    assert (place / "exported" / "coast" / "MODEL_CARD.md").exists()
    assert len(list((place / "results" / "harbour" / "models").iterdir())) == 2
    assert len((place / "results" / "plain" / "rounds.jsonl").read_text().splitlines()) == 2 * 5
    assert not (place / "results" / "plain" / "cluster" / "certs").exists()
    _, *listed = [line.split("|")[3].strip() for line in section("What is where").splitlines() if line.startswith("| ")]
    for path in listed:
        assert len(list(place.glob(path.strip("`").rstrip("/").replace("<run>", "?" * 16 + "*")))) == 1, path


@pytest.mark.timeout(WITHIN + 30)
def test_services_on_several_hosts(place: Path) -> None:
    """Each host is a folder with its own keys and nothing else. All are this machine, and listen to it alone."""
    (block,) = blocks("text", section("On several hosts"))
    hosts = dict(re.findall(r"^(cloud host|edge host|device) +(sgfusion (?:.*\\\n)*.*)$", block, re.MULTILINE))
    folders = {"cloud host": ["cloud", "operator"], "edge host": ["edge-north"], "device": ["device-d0"]}
    script = "sgfusion certs harbour.toml\n"
    for host, keys in folders.items():
        moved = " ".join(f"certs/{key}" for key in keys)
        script += f"mkdir '{host}'; mv {moved} '{host}'; cp harbour.toml '{host}'\n"
        script += f"(cd '{host}'; exec {hosts[host]}) 2> '{host}.log' &\n"
    for name in ("cloud.example", "north.example", "0.0.0.0"):  # noqa: S104 (not bound: replaced)
        script = script.replace(name, "127.0.0.1")
    look = "sgfusion status --cloud 127.0.0.1:7070 --certs 'cloud host/operator' 2> waiting.log"
    printed = typed(f"{script}until {look} | grep 'north .*gathering .* 1/3 '; do sleep 0.5; done\n", place)
    assert "127.0.0.1:" in printed  # where the edge says that others reach it


def section(heading: str) -> str:
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]


def test_every_state_of_a_zone_is_explained() -> None:
    states = section("What a status says").partition("| words |")[0]
    listed = re.findall(r"^\| `([\w ]+)` \|", states, re.MULTILINE)
    assert sorted(listed) == sorted(STANDINGS)


def test_every_option_is_one_of_its_command() -> None:
    commands = typer.main.get_group(app).commands
    named = re.findall(r"sgfusion (\w+)((?: (?!&|2>)[^\n`|]*)?)", PAGE)
    assert {command for command, _ in named} == {
        "certs",
        "cloud",
        "doctor",
        "edge",
        "device",
        "follow",
        "leave",
        "status",
        "export",
        "up",
        "predict",
        "join",
        "simulate",
    }
    for command, rest in named:
        parameters = commands[command].params
        options = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
        assert set(re.findall(r"(?<![-\w])--[a-z][a-z-]*", rest)) <= options, f"sgfusion {command}{rest}"
