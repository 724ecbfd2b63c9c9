"""Zones on the page, held against what its server says: places, colours, arcs, one alone, by mouse and keyboard."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.page.browser import PATIENCE, PHONE, Tab, tab
from tests.page.runs import FOUR, MARKUP, answer

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


def fills(page: Page) -> dict[str, tuple[int, ...]]:
    found = {name: zone(page, name).locator(".shape").get_attribute("fill") or "" for name in FOUR}
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


def test_colours_say_the_error_the_gain_or_the_labels(page: Page, run: dict[str, Any]) -> None:
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

    choose_colour(page, "labels")
    edges = run["edges"]
    means = {
        each["name"]: sum(h * (a + b) / 2 for h, a, b in zip(each["histogram"], edges, edges[1:], strict=False))
        / sum(each["histogram"])
        for each in run["zones"]
    }
    by_label = fills(page)
    order = sorted(FOUR, key=lambda name: means[name])
    assert light(by_label[order[0]]) < light(by_label[order[-1]])
    assert len({by_error["ash"], by_gain["ash"], by_label["ash"]}) == 3
    assert "colour=labels" in page.evaluate("location.hash")
    for name in FOUR:  # the table and the tree have the same colours
        swatch = page.locator(f"tr[data-zone={name}] .swatch").evaluate("(e) => getComputedStyle(e).backgroundColor")
        leaf = page.locator(f"#tree .leaf[data-leaf={name}] circle").get_attribute("fill") or ""
        assert tuple(int(part) for part in re.findall(r"\d+", swatch)) == by_label[name]
        assert tuple(int(part) for part in re.findall(r"\d+", leaf)) == by_label[name]


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
