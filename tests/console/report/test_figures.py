"""What figures are drawn from; how they look was judged by eye."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.figures import PALETTE, drawn
from console.report.curves import (
    banded,
    curve,
    curves_caption,
    evaluated,
    first_seen,
    full_window,
    gradients_a_round,
    learning_curves,
    rounds_differ,
    window,
)
from console.report.line_ends import spaced
from console.report.looks import FAMILIES, looks, method_colour
from console.report.measure import Measure
from console.report.suite_results import Entry, SuiteResults, read_results
from console.report.sweeps import epsilon_sweep, top_k_sweep
from console.report.world import read_world
from console.report.zone_path import ancestors
from tests.console.report.fake_suite import ACCURACY, EPSILONS, NORWAY, RMSE, TOP_K, entry, world, write, write_suite
from tests.console.report.tiny_suite import outcome, write_tiny

VALUES = {"ours": {1: {"a": (16.0, 4), "b": (9.0, 1)}, 2: {"a": (4.0, 4), "b": (1.0, 1)}}}


def test_a_curve_is_pooled_over_zones_and_then_over_seeds(tmp_path: Path) -> None:
    results = read_results(write_tiny(tmp_path, VALUES))
    middle, least, most = curve(results, "d", "ours", [0, 10], "test")
    assert middle == pytest.approx([3 * (5**0.5 + 1) / 2, (5**0.5 + 1) / 2])
    assert least == pytest.approx([3, 1])
    assert most == pytest.approx([3 * 5**0.5, 5**0.5])


def test_a_job_that_ended_early_stays_at_its_last_models(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, VALUES)
    ended = outcome("b", 1, {"b": (9, 1)})
    ended = outcome("b", 1, {"b": (9, 1)}, points=ended.points[:1], chosen=0, diverged="nan")
    write(folder / "jobs/d/ours/1/b.json", ended.to_json())
    _, _, most = curve(read_results(folder), "d", "ours", [0, 10], "test")
    assert most[1] == pytest.approx(((16 + 81) / 5) ** 0.5)


def test_the_window_leaves_out_the_first_rounds_and_who_failed() -> None:
    falling = [([90.0, 21.0, 20.0], [88.0, 20.5, 19.5], [92.0, 22.0, 20.5]), ([90.0, 23.0, 22.0],) * 3]
    low, high = window([*falling, ([90.0, 85.0, 80.0],) * 3], Measure.of(RMSE))
    assert low < 19.5
    assert 22.0 < high < 30
    low, high = window([([0.1, 0.7, 0.8],) * 3, ([0.1, 0.6, 0.7],) * 3], Measure.of(ACCURACY))
    assert 0.5 < low < 0.7
    assert high > 0.8


def test_a_short_line_is_seen_from_its_start_to_its_end() -> None:
    low, high = full_window([([90.0, 21.0],) * 3, ([90.0, 30.0], [80.0, 20.0], [95.0, 40.0])])
    assert (low, high) == pytest.approx((20 - 6, 95 + 6))
    assert full_window([([90.0, 20.0],) * 3, ([90.0, 1e9],) * 3])[1] == pytest.approx(270 + 20)  # it ran away
    assert full_window([([float("nan")],) * 3]) == (0.0, 1.0)


def test_the_picture_begins_where_the_first_line_comes_into_sight() -> None:
    places = [0.0, 50.0, 100.0, 150.0]
    lines = [(places, ([90.0, 30.0, 21.0, 20.0],) * 3), (places, ([90.0, 40.0, 31.0, 22.0],) * 3)]
    assert first_seen(lines, 19.0, 25.5) == 71  # 75, and a twentieth of what is then seen
    assert first_seen(lines, 19.0, 95.0) == 0
    assert first_seen(lines, 1.0, 2.0) == 0
    rising = [(places, ([float("nan"), 0.5, 0.8, 0.9],) * 3)]
    assert first_seen(rising, 0.4, 1.0) == 45
    assert first_seen(rising, 0.65, 1.0) == 71
    assert first_seen([*rising, ([0.0, 750.0], ([0.1, 0.9],) * 3)], 0.65, 1.0) == 41  # 75 still, of a wider picture


def test_with_different_numbers_of_rounds_lines_go_by_gradients_and_end_where_they_end(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, {**VALUES, "other": VALUES["ours"]})
    assert not rounds_differ(read_results(folder), "d")
    for seed in (1, 2):
        for zone in ("a", "b"):
            first, last = outcome(zone, seed, {zone: (4, 1)}).points
            points = (first, last, replace(last, round=40))
            longer = outcome(zone, seed, {zone: (4, 1)}, points=points, rounds=40, device_gradients=60)
            write(folder / f"jobs/d/other/{seed}/{zone}.json", longer.to_json())
    results = read_results(folder)
    assert rounds_differ(results, "d")
    assert [gradients_a_round(results, "d", name) for name in ("ours", "other")] == [6.0, 3.0]
    assert [evaluated(results, "d", name) for name in ("ours", "other")] == [[0, 10], [0, 10, 40]]
    svg = learning_curves(results, "d")["svg"].decode()
    assert "device gradients" in svg
    assert "by device gradients, as entries have different numbers of rounds" in curves_caption(results, "d")
    assert (
        "device gradients"
        not in learning_curves(read_results(write_tiny(tmp_path / "same", VALUES)), "d")["svg"].decode()
    )


def test_a_run_that_ended_early_was_given_as_many_rounds(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, {**VALUES, "other": VALUES["ours"]})
    for seed in (1, 2):
        for zone in ("a", "b"):
            ended = outcome(zone, seed, {zone: (9, 1)})
            ended = outcome(zone, seed, {zone: (9, 1)}, points=ended.points[:1], chosen=0, rounds=0, diverged="nan")
            write(folder / f"jobs/d/other/{seed}/{zone}.json", ended.to_json())
    assert not rounds_differ(read_results(folder), "d")


def test_bands_are_of_those_that_the_comparison_turns_on(swept: SuiteResults, tmp_path: Path) -> None:
    assert banded(swept, "d") == []  # one seed has none
    assert "bands" not in curves_caption(swept, "d")
    several = {**VALUES, "other": VALUES["ours"], "third": VALUES["ours"]}
    few = read_results(write_tiny(tmp_path / "few", several))
    assert [e.name for e in banded(few, "d")] == ["ours", "other", "third"]
    many = [entry(m) for m in ("sgeofl", "random", "sgfusion", "fedavg")]
    results = read_results(write_suite(tmp_path / "many", data={"d": ["a"]}, entries=many, seeds=[1, 2], rounds=[0, 1]))
    assert [e.name for e in banded(results, "d")] == ["random", "sgfusion"]
    assert "bands, of Random and SGFusion, go from the worst seed to the best" in curves_caption(results, "d")


@pytest.fixture
def two_randoms(tmp_path: Path) -> SuiteResults:
    """The settings of the flights suite: the first entry of Random has another sharpness than the reference."""
    entries = [
        entry("sgeofl"), entry("random", optimiser__rate=0.02),
        entry("random", "as-many-slow", optimiser__rate=0.01, hrg__sharpness=3.0),
        entry("random", "as-many", optimiser__rate=0.02, hrg__sharpness=3.0),
        entry("sgfusion", optimiser__rate=0.02, hrg__sharpness=3.0), *TOP_K[:2], *EPSILONS[:2],
    ]  # fmt: skip
    return read_results(write_suite(tmp_path, data={"d": ["a"]}, entries=entries, seeds=[1, 2], rounds=[0, 1]))


def test_of_several_random_entries_the_control_alone_stands_out(two_randoms: SuiteResults) -> None:
    assert [e.name for e in banded(two_randoms, "d")] == ["as-many", "sgfusion"]
    style = looks(two_randoms.suite.entries, two_randoms.suite.reference)
    randoms = [style[name] for name in ("random", "as-many-slow", "as-many")]
    assert len({look.colour for look in randoms}) == 3
    assert randoms[0].width == randoms[1].width == style["sgeofl"].width < randoms[2].width


def test_the_control_stands_beside_sweeps_and_not_the_first_random_entry(two_randoms: SuiteResults) -> None:
    top_k, epsilon = top_k_sweep(two_randoms), epsilon_sweep(two_randoms)
    assert top_k is not None
    assert epsilon is not None
    assert [e.name for e in top_k.beside] == ["sgfusion", "as-many"]
    assert [e.name for e in epsilon.beside] == ["as-many", "sgeofl"]


def test_without_a_control_the_first_random_entry_stands_by_and_has_no_band(tmp_path: Path) -> None:
    entries = [entry("sgfusion", hrg__sharpness=3.0), entry("random"), entry("random", "b", hrg__sharpness=9), *TOP_K]
    results = read_results(write_suite(tmp_path, data={"d": ["a"]}, entries=entries, seeds=[1, 2], rounds=[0, 1]))
    assert [e.name for e in banded(results, "d")] == ["sgfusion"]
    sweep = top_k_sweep(results)
    assert sweep is not None
    assert [e.name for e in sweep.beside] == ["sgfusion", "random"]


def test_a_flat_or_empty_window_has_some_height() -> None:
    assert window([([2.0, 2.0],) * 3], Measure.of(RMSE))[0] < 2.0 < window([([2.0, 2.0],) * 3], Measure.of(RMSE))[1]
    assert window([([float("nan")],) * 3], Measure.of(RMSE)) == (0.0, 1.0)


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.001, 0.2))
def test_labels_stand_apart_in_order_and_within_bounds(places: list[float], gap: float) -> None:
    found = spaced(places, gap, 0.0, 1.0)
    apart = min(gap, 1 / max(1, len(places) - 1))
    assert all(-1e-9 <= spot <= 1 + 1e-9 for spot in found)
    ordered = [found[i] for i in sorted(range(len(places)), key=lambda i: places[i])]
    assert all(b - a >= apart - 1e-9 for a, b in pairwise(ordered))


def test_labels_with_room_stay_where_they_are() -> None:
    assert spaced([0.9, 0.1, 0.5], 0.1, 0, 1) == [0.9, 0.1, 0.5]
    assert spaced([0.5, 0.5], 0.1, 0, 1) == pytest.approx([0.45, 0.55])


def test_a_zones_ancestors_have_all_other_zones_and_probabilities_that_sum_to_one(tmp_path: Path) -> None:
    write(tmp_path / "w.json", json.dumps(world(NORWAY, 3)))
    here = read_world(tmp_path / "w.json")
    assert here is not None
    for z, name in enumerate(NORWAY):
        path = ancestors(here, z)
        assert sorted([name, *(zone for step in path for zone in step.zones)]) == sorted(NORWAY)
        assert sum(step.probability for step in path) == pytest.approx(1)
        for step in path:
            for zone in step.zones:
                assert here.probabilities[z, NORWAY.index(zone)] == step.probability
        assert len(path[-1].zones) + sum(len(step.zones) for step in path[:-1]) == len(NORWAY) - 1


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> SuiteResults:
    entries = [entry("sgfusion"), entry("random"), *TOP_K, *EPSILONS[::2], entry("sgfusion", "sharp", hrg__sharpness=4)]
    folder = write_suite(
        tmp_path_factory.mktemp("swept"), data={"d": ["a", "b"]}, entries=entries, seeds=[1], rounds=[0, 10, 20]
    )
    return read_results(folder)


def test_top_k_is_swept_in_order_of_k_beside_chance(swept: SuiteResults) -> None:
    sweep = top_k_sweep(swept)
    assert sweep is not None
    assert [(k, e.name) for k, e in sweep.entries.items()] == [(k, f"top-{k}") for k in range(1, 8)]
    assert [e.name for e in sweep.beside] == ["sgfusion", "random"]


def test_the_reference_takes_its_place_among_the_epsilons(swept: SuiteResults) -> None:
    sweep = epsilon_sweep(swept)
    assert sweep is not None
    assert [(e, of.name) for e, of in sweep.entries.items()] == [
        (0.1, "eps-0.1"),
        (1.0, "sgfusion"),
        (10.0, "eps-10.0"),
    ]


def test_one_value_is_no_sweep(tmp_path: Path) -> None:
    entries = [entry("sgfusion"), entry("top-k-sgfusion", sampler__k=3)]
    results = read_results(write_suite(tmp_path, data={"d": ["a"]}, entries=entries, seeds=[1], rounds=[0, 1]))
    assert (top_k_sweep(results), epsilon_sweep(results)) == (None, None)


def test_entries_look_different(swept: SuiteResults) -> None:
    style = looks(swept.suite.entries[:9], swept.suite.reference)
    assert style["sgfusion"].colour == PALETTE[0]
    assert len({(look.colour, look.stroke) for look in style.values()}) == 9


def test_a_method_has_its_colour_whatever_the_suite_and_the_reference() -> None:
    methods = [name for _, family in FAMILIES for name in family]
    whole = [Entry(name, name, name, {}) for name in methods]
    style = looks(whole, whole[0])
    assert len({(look.colour, look.stroke) for look in style.values()}) == len(methods)
    for part in (whole[::-1], whole[3:8], whole[1::2]):
        for reference in part:
            for name, look in looks(part, reference).items():
                assert (look.colour, look.stroke) == (style[name].colour, style[name].stroke)
                assert look.colour == method_colour(name)


def test_of_several_entries_of_a_method_the_reference_has_its_colour() -> None:
    entries = [Entry("sgfusion", "sgfusion", "", {})]
    entries += [Entry(f"top-{k}", "top-k-sgfusion", "", {"sampler.k": k}) for k in range(1, 8)]
    style = looks(entries, entries[3])
    assert style["top-3"].colour == method_colour("top-k-sgfusion")
    assert style["sgfusion"].colour == method_colour("sgfusion")
    assert len({(look.colour, look.stroke) for look in style.values()}) == 8


def test_a_figure_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    results = read_results(write_tiny(tmp_path, VALUES))
    first = learning_curves(results, "d")
    assert first == learning_curves(results, "d")
    assert first["png"].startswith(b"\x89PNG")
    assert b"<dc:date>" not in first["svg"]


def test_a_users_own_settings_of_matplotlib_do_not_matter() -> None:
    import matplotlib as mpl

    def draw(figure: object) -> None:
        figure.subplots().plot([1, 2])  # type: ignore[attr-defined]

    usual = drawn(2, 2, draw, "svg")
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 30.0}):
        assert drawn(2, 2, draw, "svg") == usual
        assert mpl.rcParams["font.size"] == 30.0
