"""What zones' colours say: the error, a gain, labels."""

import math
import re
from collections.abc import Iterable
from itertools import pairwise, permutations
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.marks import zone
from tests.page.runs import CLASSES, FOUR, answer


def fills(page: Page, names: Iterable[str] = FOUR) -> dict[str, tuple[int, ...]]:
    found = {name: zone(page, name).locator(".shape").first.get_attribute("fill") or "" for name in names}
    return {name: tuple(int(part) for part in re.findall(r"\d+", fill)) for name, fill in found.items()}


def choose_colour(page: Page, key: str) -> None:
    page.locator(f"label[for=colour-{key}]").click()
    # The button is pressed at once; everything else follows together in the next frame, the address among it.
    page.wait_for_function("(key) => location.hash.includes(`colour=${key}`)", arg=key)


def light(colour: tuple[int, ...]) -> float:
    return 0.3 * colour[0] + 0.6 * colour[1] + 0.1 * colour[2]


def kept_errors(run: dict[str, Any]) -> dict[str, float]:
    """On test samples, of the model that was best on the validation samples."""
    return {name: [row for row in rows["evaluations"] if row[3]][-1][2] for name, rows in run["series"].items()}


def test_colours_say_the_error_the_gain_or_the_mean_label(page: Page, run: dict[str, Any]) -> None:
    errors = kept_errors(run)
    by_error = fills(page)
    order = sorted(FOUR, key=lambda name: errors[name])
    assert all(light(by_error[a]) > light(by_error[b]) for a, b in pairwise(order)), "bright is good"

    choose_colour(page, "alone")
    alone = {each["name"]: each["alone"] for each in run["zones"]}
    by_gain = fills(page)
    for name in FOUR:
        red, _, blue = by_gain[name]
        assert (blue > red) == (errors[name] < alone[name]), name
    text = f"{100 * (alone['ash'] - errors['ash']) / alone['ash']:+.1f} %".replace("-", "−")
    assert text in (zone(page, "ash").get_attribute("aria-label") or "")
    assert page.locator("tr[data-zone=ash] td").nth(4).inner_text() == text

    choose_colour(page, "mean")
    edges = run["edges"]
    means = {
        each["name"]: sum(h * (a + b) / 2 for h, a, b in zip(each["histogram"], edges, edges[1:], strict=False))
        / sum(each["histogram"])
        for each in run["zones"]
    }
    by_label = fills(page)
    order = sorted(FOUR, key=lambda name: means[name])
    assert all(light(by_label[a]) < light(by_label[b]) for a, b in pairwise(order))
    assert len({by_error["ash"], by_gain["ash"], by_label["ash"]}) == 3
    assert "colour=mean" in page.evaluate("location.hash")
    for name in FOUR:  # the table and the tree have the same colours
        swatch = page.locator(f"tr[data-zone={name}] .swatch").evaluate("(e) => getComputedStyle(e).backgroundColor")
        leaf = page.locator(f"#tree .leaf[data-leaf={name}] circle").get_attribute("fill") or ""
        assert tuple(int(part) for part in re.findall(r"\d+", swatch)) == by_label[name]
        assert tuple(int(part) for part in re.findall(r"\d+", leaf)) == by_label[name]


def apart(a: str, b: str) -> float:
    """Between the label distributions of two of the zones with classes."""
    return math.dist(CLASSES[a], CLASSES[b])


def test_the_more_alike_two_label_distributions_the_nearer_their_colours(classy: Page) -> None:
    choose_colour(classy, "labels")
    found = fills(classy, CLASSES)
    assert found["even"] == found["twin"]  # one distribution
    assert math.dist(found["even"], found["hel"]) > 100  # one mean, and two distributions
    for a, b, c in permutations(CLASSES, 3):
        if 2 * apart(a, b) < apart(a, c):
            assert math.dist(found[a], found[b]) < math.dist(found[a], found[c]), (a, b, c)
    expect(classy.locator("#legend-zones circle")).to_have_count(len(CLASSES))
    expect(classy.locator("#legend-bar")).to_be_hidden()
    assert "nearest to those of twin, d 0" in (zone(classy, "even").get_attribute("aria-label") or "")


def test_with_a_zone_alone_colours_say_how_far_its_labels_are_from_others(classy: Page) -> None:
    choose_colour(classy, "labels")
    zone(classy, "cell").click()
    expect(classy.locator("#legend-title")).to_have_text("Distance d of label histograms to cell's")
    found = fills(classy, CLASSES)
    order = sorted(CLASSES, key=lambda name: apart("cell", name))
    for a, b in pairwise(order):
        same = math.isclose(apart("cell", a), apart("cell", b))
        assert found[a] == found[b] if same else light(found[a]) > light(found[b]), (a, b)
    for name in CLASSES:
        said = re.findall(r" d ([\d.]+)", zone(classy, name).get_attribute("aria-label") or "")
        assert float(said[0]) == pytest.approx(apart("cell", name), rel=6e-3), name
        assert float(zone(classy, name).evaluate("(e) => getComputedStyle(e).opacity")) == 1  # also who was not drawn
    classy.keyboard.press("Escape")
    expect(classy.locator("#legend-plane")).to_be_visible()


# Machado, Oliveira and Fernandes (2009): what of linear red, green and blue those see who lack one kind of cone.
BLIND: dict[str, list[list[float]]] = {
    "nothing": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


@pytest.mark.parametrize("lacking", BLIND)
def test_places_among_labels_are_told_apart_by_the_colour_blind_too(page: Page, lacking: str) -> None:
    grid = [(x / 2, y / 2) for x in range(3) for y in range(3)]
    said = page.evaluate(
        "async (grid) => { const { colourOf } = await import('/static/colours.js'); return grid.map(colourOf); }", grid
    )
    colours = [[(int(part) / 255) ** 2.2 for part in re.findall(r"\d+", each)] for each in said]
    shown = [
        [max(0.0, sum(k * v for k, v in zip(row, colour, strict=True))) ** (1 / 2.2) for row in BLIND[lacking]]
        for colour in colours
    ]
    least = min(math.dist(a, b) for a, b in permutations(shown, 2))
    assert least > 0.12, least


def test_classes_have_no_mean_and_a_high_accuracy_is_bright(classy: Page, classes: str) -> None:
    said = answer(classes, "api/run")
    assert said["metric"]["lower_is_better"] is False
    errors = kept_errors(said)
    by_error = fills(classy, CLASSES)
    for a, b in permutations(CLASSES, 2):
        if errors[a] < errors[b]:
            assert light(by_error[a]) < light(by_error[b]), (a, b)
    assert len(set(errors.values())) > 1
    expect(classy.locator("#colour-mean")).to_be_disabled()
    classy.locator("label[for=colour-mean]").hover()
    expect(classy.locator("#tooltip")).to_contain_text("classes")


def test_a_gain_that_nobody_knows_says_why(classy: Page) -> None:
    expect(classy.locator("#colour-alone")).to_be_disabled()
    classy.locator("label[for=colour-alone]").hover()
    expect(classy.locator("#tooltip")).to_contain_text("no zone was trained alone")


def test_of_115_zones_colours_say_whom_sharing_helps(crowd: Page, many: str) -> None:
    said = answer(many, "api/run")
    errors = kept_errors(said)
    gains = {each["name"]: 1 - errors[each["name"]] / each["alone"] for each in said["zones"]}
    better = {name for name, gain in gains.items() if gain > 0}
    assert 50 < len(better) < 100
    choose_colour(crowd, "alone")
    found = fills(crowd, gains)
    for name, (red, _, blue) in found.items():
        if abs(gains[name]) > 0.03:  # nearly nothing is nearly grey
            assert (blue > red) == (name in better), name
    expect(crowd.locator("#figure-alone .note")).to_have_text(f"pooled; better in {len(better)} of 115 zones")
    low, high = (re.findall(r"[\d.]+", crowd.inner_text(f"#legend-{end}"))[0] for end in ("low", "high"))
    assert low == high
    outliers = sum(abs(gain) > float(high) / 100 + 0.0005 for gain in gains.values())
    assert outliers <= 6  # they have the last colours, and do not take all the others
