"""The list of a local cluster's metrics that Prometheus reads: who is in it, and when."""

import json
from pathlib import Path
from typing import Any

import pytest

from console import targets as module
from console.targets import Targets
from sgfusion.wire.service import METRICS, announce, announced


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look every time, not twice a second."""
    monkeypatch.setattr(module, "EVERY", 0.0)


def listed(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "targets.json").read_bytes())
    return {each["labels"]["instance"]: (each["targets"], each["labels"]["tier"]) for each in found}


def of(folder: Path) -> Targets:
    names = ("cloud", "edge-ash", "devices-0")
    return Targets(folder / "targets.json", "demo", {name: folder / name for name in names})


@pytest.mark.usefixtures("always")
def test_who_has_said_where_is_listed_until_the_cluster_stops(tmp_path: Path) -> None:
    targets = of(tmp_path)
    targets.forget()
    assert listed(tmp_path) == {}
    announce(tmp_path / "edge-ash", "http://127.0.0.1:1/metrics", METRICS)
    targets.look()
    assert listed(tmp_path) == {"edge-ash": (["127.0.0.1:1"], "edge")}
    announce(tmp_path / "cloud", "http://127.0.0.1:2/metrics", METRICS)
    announce(tmp_path / "devices-0", "http://[::1]:3/metrics", METRICS)
    targets.look()
    assert listed(tmp_path) == {
        "cloud": (["127.0.0.1:2"], "cloud"),
        "devices-0": (["[::1]:3"], "device"),
        "edge-ash": (["127.0.0.1:1"], "edge"),
    }
    (tmp_path / "edge-ash" / METRICS).unlink()  # it has ended: down, and that is what an alert is about
    targets.look()
    assert listed(tmp_path)["edge-ash"] == (["127.0.0.1:1"], "edge")
    announce(tmp_path / "edge-ash", "http://127.0.0.1:9/metrics", METRICS)  # started anew
    targets.look()
    assert listed(tmp_path)["edge-ash"] == (["127.0.0.1:9"], "edge")
    targets.forget()
    assert listed(tmp_path) == {}
    assert announced(tmp_path / "cloud", METRICS) is None  # what one that was killed has left is gone
    targets.look()
    assert listed(tmp_path) == {}


@pytest.mark.usefixtures("always")
def test_labels_are_those_that_rules_and_dashboard_ask_for(tmp_path: Path) -> None:
    targets = of(tmp_path)
    announce(tmp_path / "cloud", "http://127.0.0.1:2/metrics", METRICS)
    targets.look()
    (found,) = json.loads((tmp_path / "targets.json").read_bytes())
    assert found["labels"] == {"job": "sgfusion", "instance": "cloud", "tier": "cloud", "run": "demo"}


def test_nothing_new_is_not_written_and_not_looked_for_all_the_time(tmp_path: Path) -> None:
    targets = of(tmp_path)
    targets.look()
    assert not (tmp_path / "targets.json").exists()
    announce(tmp_path / "cloud", "http://127.0.0.1:2/metrics", METRICS)
    targets.look()  # at once after the last look
    assert not (tmp_path / "targets.json").exists()
