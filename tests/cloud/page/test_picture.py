"""Parts of the page's JSON, exact on tiny cases."""

import importlib
import math
from dataclasses import replace

import pytest

from cloud.page.history import LeftOut
from cloud.page.picture import (
    MADE_UP,
    TITLES,
    Likeness,
    alone_of,
    metric_part,
    run_part,
    status_of_zone,
    tree_part,
    waits_part,
    zone_part,
)
from cloud.state import Zone
from device.sources.source import SOURCES
from sgfusion.dendrogram import Dendrogram
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.plan import ZoneState
from sgfusion.reports import NOT_YET, Attendance
from sgfusion.waiting import Waiting
from simulator.methods.method import ZoneMethod
from simulator.methods.registry import METHODS
from tests.cloud.values import RMSE, a_point, a_run

TREE = ZoneTree(
    ("ash", "elm", "fir"),
    Dendrogram.from_merges([[0, 1], [3, 2]]),
    [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]],  # type: ignore[arg-type]
)


def test_the_tree_and_each_zones_own() -> None:
    part = tree_part(TREE, version=3, reason="zone fir joined", sharpness=1.0)
    near = 1 / (1 + math.exp(-1.5))  # distances 1 and 2.5, from a leaf of the lower node
    assert part["branches"]["fir"] == [{"distance": 2.5, "probability": 1.0, "zones": ["ash", "elm"]}]
    assert part["branches"]["ash"] == [
        {"distance": 1.0, "probability": pytest.approx(near, rel=1e-5), "zones": ["elm"]},
        {"distance": 2.5, "probability": pytest.approx(1 - near, rel=1e-5), "zones": ["fir"]},
    ]
    del part["branches"]
    assert part == {
        "version": 3,
        "reason": "zone fir joined",
        "loss": 3.5,
        "zones": ["ash", "elm", "fir"],
        "merges": [[0, 1], [3, 2]],
        "distances": [1.0, 2.5],
        "apart": [[], [1.0], [3.0, 2.0]],
    }


def test_homophily_is_the_mean_distance_to_those_drawn_that_are_leaves() -> None:
    likeness = Likeness(TREE)
    assert likeness.homophily("ash", ["elm", "fir"]) == 2.0
    assert likeness.homophily("ash", ["fir", "gum"]) == 3.0
    assert likeness.homophily("ash", []) is None
    assert likeness.homophily("gum", ["ash"]) is None
    assert Likeness(None).homophily("ash", ["elm"]) is None


def test_a_zone_that_has_never_come() -> None:
    assert status_of_zone(Zone("ash", 0), None, 0, {}) == {
        "number": 0, "name": "ash", "state": "expected", "round": 0, "attending": 0, "expected": 0, "late": {},
        "gone": {}, "attention": {}, "left_out": {}, "left_out_so_far": {}, "best": None, "overdue": "", "refusals": {},
        "leased": False, "diverged": "", "bytes": 0,
    }  # fmt: skip


def test_who_holds_others_up_is_told_unless_it_is_known_to_be_in_trouble() -> None:
    ash, elm, fir = (
        Zone(name, n, "h:1", ZoneState.TRAINING, heard=10.0) for n, name in enumerate(("ash", "elm", "fir"))
    )
    waits = [replace(zone, waiting=Waiting(4, 3.0, (2,))) for zone in (ash, elm)]
    told = [{"zone": "fir", "text": "2 zones wait for it, the longest 5 s"}]
    assert waits_part([*waits, fir], 12.0) == told
    assert waits_part([*waits, replace(fir, lost=11.0)], 12.0) == told, "they have not gone on without it yet"
    assert waits_part([*waits, replace(fir, left=True)], 12.0) == []
    assert waits_part([ash, elm, fir], 12.0) == []


def test_a_zone_that_trains() -> None:
    attendance = Attendance(3, ("u1", "u2"), {"u2": "its answer is 3 s late", "u9": "its stream broke"})
    zone = Zone(
        "elm", 1, "h:1", ZoneState.TRAINING, round=4, drawn=(0, 2), attention={0: 1 / 3}, left_out={2: "late"},
        loss=0.5, first=a_point(0), last=a_point(4, total=16.0), best=a_point(2), attendance=attendance, plan=2,
        refusals={"NaN": 1}, overdue="waits for u9",
    )  # fmt: skip
    assert status_of_zone(zone, RMSE, 77, {2: LeftOut(3, 4, "late")}) == {
        "number": 1, "name": "elm", "state": "training", "round": 4, "attending": 2, "expected": 3,
        "late": {"u2": "its answer is 3 s late"}, "gone": {"u9": "its stream broke"},
        "attention": {0: 0.333333333}, "left_out": {2: "late"},
        "left_out_so_far": {2: {"rounds": 3, "last": 4, "why": "late"}},
        "best": {"round": 2, "validation": 1.41421356, "test": 1.41421356}, "overdue": "waits for u9",
        "refusals": {"NaN": 1}, "leased": True, "diverged": "", "bytes": 77,
    }  # fmt: skip
    starting = replace(zone, overdue="", attendance=Attendance(3, ("u1",), {"u2": NOT_YET, "u9": "its stream broke"}))
    assert status_of_zone(starting, RMSE, 77, {})["gone"] == {"u9": "its stream broke"}, "u2 has not come yet"


@pytest.mark.parametrize(
    ("change", "state", "leased"),
    [
        ({"lost": 5.0}, "lost", False),
        ({"left": True}, "left", False),
        ({"said": ZoneState.DONE, "lost": 5.0}, "done", False),  # its edge is gone; that it has ended stays true
        ({"said": ZoneState.DONE}, "done", True),
        ({"said": ZoneState.DIVERGED, "diverged": "NaN"}, "diverged", True),
    ],
)
def test_states_are_those_of_sgfusion_status(change: dict[str, object], state: str, leased: bool) -> None:
    part = status_of_zone(replace(Zone("ash", 0, "h:1", ZoneState.TRAINING), **change), None, 0, {})  # type: ignore[arg-type]
    assert (part["state"], part["leased"]) == (state, leased)


def test_what_run_it_is() -> None:
    part = run_part(a_run("histogram.epsilon=2.0", "histogram.budget=4.0", "hrg.sharpness=7.0"), live=True, started=9.5)
    version = part.pop("version")
    assert version.count(".") == 2
    assert part == {
        "name": "woods", "seed": 5, "rounds": 20, "task": "linear", "sampler": "hrg", "sharpness": 7.0, "epsilon": 2.0,
        "budget": 4.0, "every": 10, "live": True, "title": "SGFusion", "synthetic": True, "started": 9.5,
        "comparing": False, "simulated": False,
    }  # fmt: skip
    assert run_part(a_run("histogram.epsilon=off"), live=False, synthetic=False)["epsilon"] == "off"


def test_a_zone_with_and_without_a_place() -> None:
    run = a_run("zones.places={ash=[[[50.0, 19.5]]], elm=[[[1.0, 2.0], [1.0, 3.0], [2.0, 2.0]]]}")
    parts = {name: zone_part(number, name, run, (0.5, 1 / 3)) for number, name in enumerate(("ash", "elm", "fir"))}
    assert parts["ash"]["place"] == [[[50.0, 19.5]]]
    assert parts["elm"]["place"] == [[[1.0, 2.0], [1.0, 3.0], [2.0, 2.0]]]
    assert parts["fir"] == {
        "number": 2, "name": "fir", "place": None, "at": [0.5, 0.333333333], "histogram": None, "devices": 0,
        "epsilon": 0.0, "before": None, "alone": None,
    }  # fmt: skip


def test_what_zones_come_to_alone_by_a_summary() -> None:
    zones = {"ash": {"test": 2.0, "alone": 3.0}, "elm": {"test": 4.0, "alone": None}}
    assert alone_of({"method": "sgfusion", "zones": zones}) == {"ash": 3.0}
    assert alone_of({"method": "sgeofl", "zones": zones}) == {"ash": 2.0, "elm": 4.0}
    assert alone_of({}) == {}
    assert metric_part(RMSE) == {"name": "RMSE", "unit": "bpm", "lower_is_better": True, "root": True}
    assert metric_part(None) is None


def test_methods_have_the_simulators_titles() -> None:
    methods = [m for m in METHODS.values() if isinstance(m, ZoneMethod) and m.sampler_kind]
    assert {m.sampler_kind: m.title for m in methods} == TITLES


def test_sources_that_are_made_up_are_known() -> None:
    modules = {name: vars(importlib.import_module(f"device.sources.{name}")) for name in SOURCES}
    made_up = {
        name for name, has in modules.items() if any(getattr(each, "synthetic", 0) is True for each in has.values())
    }
    assert made_up == MADE_UP
