"""A real Prometheus under a test's hand, in a folder of its own, on a free port of the loopback device."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pages import DIRECT

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "observability"
RULES = FOLDER / "rules.yml"
PATIENCE = 120.0
"""Seconds for something to be seen, on a machine with much else to do."""


def program(name: str) -> str:
    """`prometheus` or `promtool`; a skip where it is missing, or a failure with SGFUSION_REQUIRE_PROMETHEUS=1."""
    found = shutil.which(name)
    if found is None:
        reason = f"no {name} here: Debian's package `prometheus` has it"
        if os.environ.get("SGFUSION_REQUIRE_PROMETHEUS") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found


def alerts() -> dict[str, dict[str, Any]]:
    """The rules, by the alert's name."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def hurried(text: str) -> str:
    """The rules with minutes as seconds, and the two minutes that a cloud may be away as six seconds."""
    for pattern, new in ((r"for: (\d+)m", r"for: \1s"), (r"\[(\d+)m\]", r"[\1s]"), (r"> 120\b", "> 6")):
        assert re.search(pattern, text), pattern
        text = re.sub(pattern, new, text)
    return text


@dataclass(frozen=True)
class Series:
    """One element of a result."""

    labels: Mapping[str, str]
    value: float


class QueryError(AssertionError):
    """Prometheus does not take an expression."""


@dataclass
class Prometheus:
    """The running one."""

    url: str
    log: Path

    def get(self, path: str, **parameters: str) -> Any:
        """What an API call gives."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with DIRECT.open(f"{self.url}/api/v1/{path}{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(f"{path} {parameters}: {error.read().decode()}") from None

    def query(self, expression: str) -> list[Series]:
        """The elements of an instant vector, or the one of a scalar."""
        found = self.get("query", query=expression)
        if found["resultType"] == "scalar":
            return [Series({}, float(found["result"][1]))]
        return [Series(each["metric"], float(each["value"][1])) for each in found["result"]]

    def number(self, expression: str) -> float:
        """The one value of an expression; NaN if there is none."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return found[0].value if found else float("nan")

    def up(self) -> set[str]:
        """Instances that were read the last time."""
        return {each["labels"]["instance"] for each in self.get("targets")["activeTargets"] if each["health"] == "up"}

    def firing(self) -> set[tuple[str, str]]:
        """Alerts that fire, by name, with the zone or the instance that each is of."""
        found = [each for each in self.get("alerts")["alerts"] if each["state"] == "firing"]
        return {(each["labels"]["alertname"], _subject(each["labels"])) for each in found}

    def until(self, holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        """Wait for it; what Prometheus knows if it does not come."""
        end = time.monotonic() + patience
        while not holds():
            assert time.monotonic() < end, f"not within {patience:.0f} s: {what}\n{self.said()}"
            time.sleep(0.1)

    def until_is(self, expression: str, value: float) -> None:
        """Wait until an expression has that value: services are not read at the same moment."""
        self.until(lambda: self.number(expression) == value, f"{expression} is {value}")

    def said(self) -> str:
        targets = {
            each["labels"]["instance"]: (each["health"], each["lastError"])
            for each in self.get("targets")["activeTargets"]
        }
        states = [(each["labels"], each["state"]) for each in self.get("alerts")["alerts"]]
        return f"targets: {targets}\nalerts: {states}\n{self.log.read_text('utf-8')[-2000:]}"


def _subject(labels: Mapping[str, str]) -> str:
    return labels.get("zone") or labels["instance"]


@contextmanager
def scraping(folder: Path, targets: Path, rules: str) -> Iterator[Prometheus]:
    """A Prometheus that reads the targets of a local cluster every other second, and evaluates rules too."""
    folder.mkdir(parents=True)
    (folder / "rules.yml").write_text(rules, "utf-8")
    scrape = {"job_name": "sgfusion", "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}]}
    config = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), "utf-8")
    with started(folder, ["--config.file=prometheus.yml", "--storage.tsdb.path=data"]) as prometheus:
        yield prometheus


@contextmanager
def started(folder: Path, options: Sequence[str]) -> Iterator[Prometheus]:
    """Prometheus with these options, in that folder, on a port of its own; ended whatever happens."""
    binary, log = program("prometheus"), folder / "prometheus.log"
    for _ in range(5):  # somebody else may be quicker to take the port that was free
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [binary, *options, f"--web.listen-address={address}"], cwd=folder, stdout=out, stderr=out
            )
        try:
            prometheus = Prometheus(f"http://{address}", log)
            if _ready(process, prometheus):
                yield prometheus
                return
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    raise AssertionError(f"Prometheus does not start:\n{log.read_text('utf-8')}")


def _ready(process: "subprocess.Popen[bytes]", prometheus: Prometheus) -> bool:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            with DIRECT.open(f"{prometheus.url}/-/ready", timeout=5):
                return True
        except OSError:
            time.sleep(0.05)
    return False
