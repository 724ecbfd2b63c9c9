"""Zones on the page, held against what its server says: places, colours, arcs, one alone, by mouse and keyboard."""

import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise, permutations
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from device.sources.outlines import cells
from tests.page.browser import PATIENCE, PHONE, Tab, tab
from tests.page.runs import CELL, CLASSES, FOUR, ISLES, MARKUP, answer

expect.set_options(timeout=PATIENCE)


@pytest.fixture
def seen(browser: Browser, four: str) -> Iterator[Tab]:
    """Four zones on a laptop."""
    opened = tab(browser, four)
    opened.open()
    yield opened
    opened.fine()
    opened.page.context.close()


@pytest.fixture
def page(seen: Tab) -> Page:
    return seen.page


@pytest.fixture(scope="session")
def run(four: str) -> dict[str, Any]:
    """All that the server says of the four zones."""
    found: dict[str, Any] = answer(four, "api/run")
    return found


def zone(page: Page, name: str) -> Locator:
    return page.locator(f"#map .zone[data-zone={name}]")


def middle(page: Page, name: str) -> tuple[float, float]:
    box = zone(page, name).locator(".shape").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def arcs(page: Page) -> dict[tuple[str, int], float]:
    """The width of every arc where it ends, by the zone that drew and the number of the one asked."""
    found: list[list[str]] = page.eval_on_selector_all(
        "#map .arc:not(.left-out)",
        "(all) => all.map((a) => [a.parentNode.dataset.zone, a.dataset.from, a.getAttribute('d')])",
    )
    widths = {}
    for name, asked, path in found:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
        widths[name, int(asked)] = math.dist(numbers[4:6], numbers[6:8])
    return widths


def drawn(draws: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Attention as the server says, in the shape of `arcs`."""
    return {(name, int(asked)): weight for name, draw in draws.items() for asked, weight in draw["attention"].items()}


def last_draws(run: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each for each in run["status"]["zones"]}


def until_arcs(page: Page, wanted: dict[tuple[str, int], float]) -> None:
    keys = sorted(f"{name} {asked}" for name, asked in wanted)
    shown = "[...document.querySelectorAll('#map .arc:not(.left-out)')]"
    named = "(arc) => `${arc.parentNode.dataset.zone} ${arc.dataset.from}`"
    page.wait_for_function(f"(keys) => {shown}.map({named}).sort().join() === keys", arg=",".join(keys))


def test_zones_stand_where_they_lie(page: Page) -> None:
    (ash, birch, cedar, elm) = (middle(page, name) for name in FOUR)
    assert ash[0] < birch[0] < elm[0]
    assert cedar[1] < ash[1]  # north is up
    assert ash[1] == pytest.approx(elm[1], abs=3)
    box = zone(page, "ash").locator(".shape").bounding_box()
    assert box is not None
    assert box["width"] / box["height"] == pytest.approx(math.cos(math.radians(51.75)), rel=0.05)  # not stretched
    assert zone(page, "elm").locator("circle.shape").count() == 1
    assert zone(page, "ash").locator("path.shape").count() == 1
    expect(page.locator("#map-note")).to_be_hidden()


def test_without_places_zones_are_laid_out_by_likeness(browser: Browser, many: str) -> None:
    seen = tab(browser, many)
    page = seen.open()
    expect(page.locator("#map-note")).to_have_text("Laid out by likeness: the run has no places")
    zones = answer(many, "api/run")["zones"]
    by_x = sorted(zones, key=lambda each: each["at"][0])
    assert middle(page, by_x[0]["name"])[0] < middle(page, by_x[-1]["name"])[0]
    by_y = sorted(zones, key=lambda each: each["at"][1])
    assert middle(page, by_y[0]["name"])[1] > middle(page, by_y[-1]["name"])[1]
    seen.fine()
    page.context.close()


def test_arcs_are_as_wide_as_attention(page: Page, run: dict[str, Any]) -> None:
    wanted = drawn(last_draws(run))
    assert len(wanted) >= 3
    until_arcs(page, wanted)
    widths = arcs(page)
    full = float((page.text_content("#legend-full") or "").split()[-1])
    assert full >= max(wanted.values())
    for arc, attention in wanted.items():
        assert widths[arc] == pytest.approx(0.6 + 8.4 * attention / full, abs=0.3), (
            arc
        )  # paths are to a tenth of a pixel


def test_an_arc_leads_from_the_zone_asked_to_the_one_that_drew_it(page: Page, run: dict[str, Any]) -> None:
    names = {each["number"]: each["name"] for each in run["zones"]}
    until_arcs(page, drawn(last_draws(run)))
    ends = page.eval_on_selector_all(
        "#map .arc:not(.left-out)",
        """(all) => all.map((arc) => {
          const box = document.getElementById("map").getBoundingClientRect();
          const n = arc.getAttribute("d").match(/-?[\\d.]+/g).map((text, i) => Number(text) + (i % 2 ? box.y : box.x));
          return [arc.parentNode.dataset.zone, arc.dataset.from, n[0], n[1], n[4], n[5]];
        })""",
    )
    for name, asked, x, y, u, v in ends:
        start, end = middle(page, names[int(asked)]), middle(page, name)
        assert math.dist((x, y), start) < math.dist((x, y), end)
        assert math.dist((u, v), end) < math.dist((u, v), start)


def test_a_peer_that_was_left_out_is_dashed_and_its_reason_is_text(page: Page) -> None:
    out = page.locator("#map .draw[data-zone=ash] .arc.left-out")
    expect(out).to_have_count(1)
    assert out.get_attribute("data-from") == "3"
    assert page.evaluate("(e) => getComputedStyle(e).strokeDasharray", out.element_handle()) not in ("none", "")
    expect(page.locator("#troubles")).to_contain_text(f"left out elm in its last round: {MARKUP}")
    expect(page.locator("#events")).to_contain_text(f"said {MARKUP}")
    zone(page, "ash").click()
    expect(page.locator("#zone-draw")).to_contain_text(MARKUP)
    assert page.locator("main img").count() == 0
    assert page.title() == "four · SGFusion"


def test_a_click_shows_a_zone_alone_and_another_click_all(page: Page, run: dict[str, Any]) -> None:
    draws = last_draws(run)
    name = max(FOUR, key=lambda each: len(draws[each]["attention"]))
    zone(page, name).click()
    until_arcs(page, drawn({name: draws[name]}))
    expect(page.locator("#zone-title")).to_have_text(name)
    expect(page.locator("#pick")).to_have_value(name)
    assert page.evaluate("location.hash") == f"#zone={name}"
    assert zone(page, name).get_attribute("aria-selected") == "true"
    expect(page.locator("#zones-body tr.chosen")).to_have_attribute("data-zone", name)
    weights = [float(text) for text in page.locator("#zone-draw .figure").all_inner_texts()]
    assert weights == pytest.approx(sorted(draws[name]["attention"].values(), reverse=True), abs=6e-4)
    zone(page, name).click()
    until_arcs(page, drawn(draws))
    expect(page.locator("#zone-title")).to_have_text("All zones")
    assert page.evaluate("location.hash") == ""


def test_the_map_is_walked_with_the_keyboard(page: Page) -> None:
    zone(page, "ash").focus()
    for key, name in (("ArrowRight", "birch"), ("ArrowRight", "elm"), ("ArrowLeft", "birch"), ("ArrowUp", "cedar")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.zone") == name
    stops = page.locator("#map .zone[tabindex='0']")
    assert stops.count() == 1  # one tab stop, whatever the number of zones
    page.keyboard.press("Enter")
    expect(page.locator("#zone-title")).to_have_text("cedar")
    page.keyboard.press("Escape")
    expect(page.locator("#zone-title")).to_have_text("All zones")


def test_a_zone_is_found_by_its_name(page: Page) -> None:
    page.keyboard.press("/")
    expect(page.locator("#pick")).to_be_focused()
    expect(page.locator("#pick-list [role=option]")).to_have_count(4)
    page.keyboard.type("r")  # birch and cedar
    expect(page.locator("#pick-list [role=option]")).to_have_text(["birch", "cedar"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#zone-title")).to_have_text("cedar")
    expect(page.locator("#pick-list")).to_be_hidden()
    page.click("#pick-next")
    expect(page.locator("#zone-title")).to_have_text("elm")
    page.click("#pick-clear")
    expect(page.locator("#zone-title")).to_have_text("All zones")


def test_a_finger_does_what_a_mouse_does(browser: Browser, four: str) -> None:
    seen = tab(browser, four, size=PHONE, touch=True)
    page = seen.open()
    zone(page, "birch").tap()
    expect(page.locator("#zone-title")).to_have_text("birch")
    seen.fine()
    page.context.close()


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


@pytest.fixture
def classy(browser: Browser, classes: str) -> Iterator[Page]:
    """Zones whose labels are classes, on a laptop."""
    opened = tab(browser, classes)
    yield opened.open()
    opened.fine()
    opened.page.context.close()


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


def test_a_gain_that_nobody_knows_says_why(browser: Browser, many: str) -> None:
    seen = tab(browser, many)
    page = seen.open()
    expect(page.locator("#colour-alone")).to_be_disabled()
    page.locator("label[for=colour-alone]").hover()
    expect(page.locator("#tooltip")).to_contain_text("no zone was trained alone")
    seen.fine()
    page.context.close()


def test_the_slider_shows_the_draws_of_another_round(page: Page, four: str, run: dict[str, Any]) -> None:
    page.locator("#round").fill("3")
    until_arcs(page, drawn(answer(four, "api/round/3")))
    expect(page.locator("#round-said")).to_have_text("round 3")
    assert page.evaluate("location.hash") == "#round=3"
    page.locator("#round").focus()
    page.keyboard.press("ArrowLeft")
    until_arcs(page, drawn(answer(four, "api/round/2")))
    page.click("#latest")
    until_arcs(page, drawn(last_draws(run)))


def test_rounds_are_played_to_the_last(page: Page) -> None:
    page.locator("#round").fill("6")
    page.click("#play")
    expect(page.locator("#play")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#latest")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#play")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#round-said")).to_have_text("round 8")


def test_a_link_shows_the_same(browser: Browser, four: str) -> None:
    seen = tab(browser, four)
    page = seen.open("#zone=cedar&colour=before&round=2")
    expect(page.locator("#zone-title")).to_have_text("cedar")
    expect(page.locator("#colour-before")).to_be_checked()
    expect(page.locator("#round-said")).to_have_text("round 2")
    until_arcs(page, drawn({"cedar": answer(four, "api/round/2")["cedar"]}))
    page.goto(f"{four}#zone=elm")  # the same page: only the fragment changes
    expect(page.locator("#zone-title")).to_have_text("elm")
    page.goto(f"{four}#zone=nowhere&round=x")
    expect(page.locator("#zone-title")).to_have_text("All zones")
    seen.fine()
    page.context.close()


def test_the_map_is_zoomed(page: Page) -> None:
    def apart() -> float:
        return math.dist(middle(page, "ash"), middle(page, "birch"))

    before = apart()
    page.click("#zoom-in")
    assert apart() == pytest.approx(1.6 * before, rel=0.01)
    box = page.locator("#map").bounding_box()
    assert box is not None
    start = middle(page, "ash")
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] - 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + box["height"] - 60, steps=4)
    page.mouse.up()
    assert middle(page, "ash")[0] == pytest.approx(start[0] + 60, abs=16)  # the first pixels may be a click
    page.click("#zoom-reset")
    assert apart() == pytest.approx(before)


def test_a_press_that_ends_outside_the_map_is_over(page: Page) -> None:
    box = page.locator("#map").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 30, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] - 30)  # the card's head
    page.mouse.up()
    page.click("#zoom-in")
    start = middle(page, "ash")
    page.mouse.move(box["x"] + 30, box["y"] + 60)
    page.mouse.move(box["x"] + 130, box["y"] + 160, steps=4)
    assert middle(page, "ash") == start


def test_a_zone_that_gets_the_focus_comes_into_sight(page: Page) -> None:
    zone(page, "ash").focus()
    for _ in range(4):
        page.click("#zoom-in")
    box = page.locator(".map-box").bounding_box()
    assert box is not None
    assert middle(page, "elm")[0] > box["x"] + box["width"]
    page.keyboard.press("Shift+Tab")  # from the buttons back into the map
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.zone") == "elm"
    assert box["x"] < middle(page, "elm")[0] < box["x"] + box["width"]
    assert box["y"] < middle(page, "elm")[1] < box["y"] + box["height"]


@pytest.mark.parametrize("field", ["#colour-error", "#round"])
def test_a_slash_searches_from_wherever_nobody_writes(page: Page, field: str) -> None:
    page.locator(field).focus()
    page.keyboard.press("/")
    expect(page.locator("#pick")).to_be_focused()
    expect(page.locator("#pick")).to_have_value("")
    page.locator("#zones-filter").focus()
    page.keyboard.press("/")
    expect(page.locator("#zones-filter")).to_have_value("/")


def test_a_zone_has_a_mark_for_each_of_its_places(classy: Page) -> None:
    """An outline with a point beside it, three points, and the outline of a cell of H3's, all on one map."""
    assert [zone(classy, "hel").locator(f"{kind}.shape").count() for kind in ("path", "circle")] == [1, 1]
    isles = classy.eval_on_selector_all(
        "#map [data-zone=isles] circle.shape", "(all) => all.map((e) => [e.cx.baseVal.value, e.cy.baseVal.value])"
    )
    assert len(isles) == 3
    (south, west), (north, east) = ISLES[0], ISLES[1]
    wide = (isles[1][0] - isles[0][0]) / (east - west)  # pixels for a degree
    high = (isles[1][1] - isles[0][1]) / (north - south)
    path = zone(classy, "cell").locator("path.shape").get_attribute("d") or ""
    corners = [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]
    (ring,) = cells([CELL])[CELL]
    wanted = [(isles[0][0] + wide * (b - west), isles[0][1] + high * (a - south)) for a, b in ring]
    assert len(wanted) == 6
    for corner, spot in zip(corners, wanted, strict=True):
        assert corner == pytest.approx(spot, abs=2)
    names = {each: zone(classy, each).locator(".shape").first.get_attribute("fill") for each in ("hel", "isles")}
    for each, fill in names.items():
        parts = zone(classy, each).locator(".shape").all()
        assert {part.get_attribute("fill") for part in parts} == {fill}


def test_outlines_may_have_very_many_corners(page: Page) -> None:
    anchor = page.evaluate("""async () => {
      const { fitted, layout } = await import("/static/geography.js");
      const ring = Array.from({ length: 300_000 }, (_, i) => [50 + Math.sin(i), 15 + Math.cos(i)]);
      const plane = layout([{ name: "ash", place: [ring], at: [0, 0] }]);
      return fitted(plane, 400, 300, { scale: 1, x: 0, y: 0 }).to(plane.shapes.get("ash").anchor);
    }""")
    assert all(math.isfinite(value) for value in anchor)


def test_zones_without_a_place_stay_apart_whatever_comes(browser: Browser, classes: str) -> None:
    """Each message has new objects for the same zones."""
    seen = tab(browser, classes)
    said = answer(classes, "api/run")
    said["run"]["live"] = True  # its stream breaks at once, so all is fetched again
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    seen.page.route("**/api/events*", lambda route: route.abort())
    page = seen.open()
    expect(page.locator("#map-note")).to_have_text("2 zones without a known place, below")
    before = {name: middle(page, name) for name in ("lost", "strayed")}
    said["run"]["name"] = "anew"
    expect(page.locator("#run-name")).to_have_text("anew")
    page.click("#zoom-in")
    for name, spot in before.items():
        assert middle(page, name) == pytest.approx(spot, abs=1), name
    page.context.close()
