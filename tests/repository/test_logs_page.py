"""docs/logs.md: its commands run as they stand, its events and tables are the code's."""

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sgfusion.wire.log_lines import FIELDS, LEVELS, json_line, text_line
from sgfusion.wire.logs import FORMAT, LEVEL, OURS, log_format, log_level
from tests.pages import types

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "logs.md").read_text("utf-8")
WITHIN = 280


def typed(script: str, place: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607
        cwd=place,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table after these words."""
    (table,) = re.findall(rf"{re.escape(heading)}.*?\n\n\|[^\n]*\n\|[-|]+\|\n((?:\|[^\n]*\n)+)", PAGE, re.DOTALL)[:1]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table.splitlines()]


@types("docs/logs.md")
def test_commands_run_and_a_request_is_found_in_the_logs_of_every_tier(tmp_path: Path) -> None:
    (tmp_path / "experiments").symlink_to(REPOSITORY / "experiments")
    follow, quiet = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for line in typed(follow, tmp_path).splitlines() if line.startswith('{"time"')]
    events = [json.loads(line) for line in lines]
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    assert {event["request"] for event in events} == {"lubelskie.4"}
    assert any(event["message"] == "zone lubelskie: round 4 begins" for event in events)
    # Zones that draw each other alone keep the same weights: then the question goes on under the other's name.
    shared = re.findall(r"shares direction-\w+ with ([\w.-]+)", "".join(event["message"] for event in events))
    logs = [
        path.read_text("utf-8").splitlines() for path in (tmp_path / "results" / "logs").glob("cluster/*/logs/*.log")
    ]
    asked = {
        (event["tier"], event.get("device"))
        for event in map(json.loads, (line for log in logs for line in log))
        if event.get("request") in ("lubelskie.4", *shared) and event.get("zone") == "lubelskie"
    }
    assert ("edge", None) in asked
    # What the zone's devices were asked goes under the first asker's name; of some round that is the zone itself.
    told: dict[str, set[str]] = {}
    for event in map(json.loads, (line for log in logs for line in log)):
        if event["tier"] == "device" and str(event.get("request", "")).startswith("lubelskie."):
            told.setdefault(event["request"], set()).add(event.get("device", ""))
    assert 7 in {len(devices) for devices in told.values()}, told
    (command,) = re.findall(r"`(jq [^`]*)`", PAGE)
    if shutil.which("jq") or os.environ.get("SGFUSION_REQUIRE_JQ") == "1":
        table = typed(command, tmp_path).splitlines()
        assert sorted(row.split("\t")[-1] for row in table) == sorted(event["message"] for event in events)
    assert re.search(r"\d+ total", typed(quiet, tmp_path))
    # Nothing on a calm machine but where the cloud serves; on a busy one devices may find their edge gone first.
    logs = [
        path.read_text("utf-8").splitlines() for path in (tmp_path / "results" / "quiet").glob("cluster/*/logs/*.log")
    ]
    said = [line for log in logs for line in log if not line.startswith("cloud of demo: serves at ")]
    assert [line for line in said if not re.match(r"\S+Z (WARNING|ERROR) ", line)] == []


def test_the_event_that_is_shown_is_how_we_write_it() -> None:
    (shown,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    text, line = shown.splitlines()
    event = json.loads(line)
    assert json_line(event) == line
    assert text_line(event) == text


def test_every_field_level_and_value_is_explained() -> None:
    fields = rows("The same event in both forms:")
    assert [row[0].strip("`") for row in fields] == ["time", "level", "logger", *FIELDS, "message", "exception"]
    assert re.findall(r"`([A-Z]+)`", fields[1][1]) == list(LEVELS)
    (form, values, _), (level, levels, _) = rows("Two variables of the environment say how:")
    assert (form.strip("`"), level.strip("`")) == (FORMAT, LEVEL)
    for value in re.findall(r"`(\w+)`", values):
        assert log_format({FORMAT: value}) == value
    names = re.findall(r"`(\w+)`", levels)
    assert [logging.getLevelName(log_level({LEVEL: name})) for name in names] == names == list(LEVELS[:-1])


def test_every_logger_of_ours_is_named() -> None:
    sources = [
        path
        for tier in ("sgfusion", "cloud", "edge", "device", "console")
        for path in REPOSITORY.glob(f"{tier}/**/*.py")
    ]
    text = "".join(path.read_text("utf-8") for path in sources)
    ours = {*re.findall(r'getLogger\("([\w.]+)"\)', text)}
    ours |= {OURS + rest for rest in re.findall(r'getLogger\(f"\{OURS\}([\w.]*)"\)', text)}
    (row,) = [row for row in rows("The same event in both forms:") if row[0] == "`logger`"]
    assert set(re.findall(r"`([\w.]+)`", row[1])) == ours
    assert len(ours) > 5


def test_images_write_json() -> None:
    assert "SGFUSION_LOG=json" in (REPOSITORY / "deploy" / "Dockerfile").read_text("utf-8")


@pytest.mark.parametrize(("name", "value"), [(FORMAT, "xml"), (LEVEL, "LOUD")])
def test_a_service_says_which_setting_is_wrong(name: str, value: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "console.main", "edge", "--zone", "ash", "--insecure", "--state", str(tmp_path)]
    environment = {**os.environ, name: value}
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"error: {name} = '{value}'" in io.TextIOWrapper(io.BytesIO(done.stderr)).read()
