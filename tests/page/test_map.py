"""Zones on the map: where they lie, what of it is in sight."""

import math
import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Browser, Page, expect

from device.sources.outlines import cells
from tests.page.browser import LAPTOP, PHONE, tab
from tests.page.marks import middle, zone
from tests.page.runs import CELL, CLASSES, FOUR, ISLES, answer, many_places

PLACES = many_places()


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


def test_115_zones_stand_where_they_lie(crowd: Page) -> None:
    expect(crowd.locator("#map-note")).to_be_hidden()
    assert [crowd.locator(f"#map .zone.{kind}").count() for kind in ("point", "area")] == [102, 13]
    assert crowd.locator("#map-points .pin").count() == 13
    places = {name: [sum(axis) / len(axis) for axis in zip(*rings[0], strict=True)] for name, rings in PLACES.items()}
    north = sorted(places, key=lambda name: places[name][0])
    east = sorted(places, key=lambda name: places[name][1])
    spots = {name: middle(crowd, name) for name in places}
    for a, b in ((10, 60), (40, 90), (0, 114)):
        assert spots[north[a]][1] > spots[north[b]][1]
        assert spots[east[a]][0] < spots[east[b]][0]


BOXES = """(all) => all.filter((each) => each.checkVisibility({ visibilityProperty: true })).map((each) => {
  const { left, right, top, bottom } = each.getBBox ? each.getBoundingClientRect() : each;
  return [left, right, top, bottom];
})"""


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("zones", [4, 115])
def test_names_lie_over_nothing_that_is_written(
    browser: Browser, request: pytest.FixtureRequest, zones: int, size: tuple[int, int]
) -> None:
    """Over no other name, no mark of a zone's own place, no degree of the coordinates."""
    url = request.getfixturevalue("many" if zones == 115 else "four")
    seen = tab(browser, url, size=size)
    page = seen.open()
    for least in (min(zones, 8), 1):
        names = page.eval_on_selector_all("#map-labels text", BOXES)
        others = [page.eval_on_selector_all(what, BOXES) for what in ("#map .zone.point circle", "#map-graticule text")]
        assert len(names) >= least
        assert all(others), "all degrees have made way"
        inner = [(left + 2, right - 2, top + 3, bottom - 3) for left, right, top, bottom in names]
        for what in (inner, *others):
            met = [(a, b) for a in inner for b in what if a is not b and overlap(a, b)]
            assert met == []
        page.click("#zoom-in")
    seen.fine()
    page.context.close()


def overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    """Of boxes from left to right and from top to bottom."""
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def test_without_places_zones_are_laid_out_by_likeness(browser: Browser, many: str) -> None:
    said = answer(many, "api/run")
    zones = said["zones"]
    for each in zones:
        each["place"] = None
    seen = tab(browser, many)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    expect(page.locator("#map-note")).to_have_text("Laid out by likeness: the run has no places")
    by_x = sorted(zones, key=lambda each: each["at"][0])
    assert middle(page, by_x[0]["name"])[0] < middle(page, by_x[-1]["name"])[0]
    by_y = sorted(zones, key=lambda each: each["at"][1])
    assert middle(page, by_y[0]["name"])[1] > middle(page, by_y[-1]["name"])[1]
    seen.fine()
    page.context.close()


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
    expect(page.locator("#map-note")).to_have_text("2 zones without a known place, below the line")
    before = {name: middle(page, name) for name in ("lost", "strayed")}
    said["run"]["name"] = "anew"
    expect(page.locator("#run-name")).to_have_text("anew")
    page.click("#zoom-in")
    for name, spot in before.items():
        assert middle(page, name) == pytest.approx(spot, abs=1), name
    page.context.close()


def test_zones_without_a_place_are_off_the_coordinates(classy: Page) -> None:
    strip = classy.locator("#map-apart rect").bounding_box()
    assert strip is not None
    for name in CLASSES:
        box = zone(classy, name).bounding_box()
        assert box is not None
        assert (box["y"] > strip["y"]) == (name in ("lost", "strayed"))
        assert (box["y"] + box["height"] < strip["y"]) == (name not in ("lost", "strayed"))
    lowest = "(all) => Math.max(...all.map((each) => each.getBoundingClientRect().bottom))"
    assert classy.locator("#map-graticule line").count() > 0
    assert classy.eval_on_selector_all("#map-graticule > *", lowest) <= strip["y"] + 1


def test_nor_do_others_come_among_them_when_one_zooms(classy: Page) -> None:
    seen = """(all) => all.filter((each) => getComputedStyle(each).visibility === "visible").map((each) => {
      const { top, bottom } = each.getBoundingClientRect();
      return [each.closest("[data-zone]")?.dataset.zone ?? "", (top + bottom) / 2];
    })"""
    apart = {"lost", "strayed"}
    for _ in range(3):
        classy.locator("#zoom-in").click()
        strip = classy.locator("#map-apart rect").bounding_box()
        assert strip is not None
        for what in ("#map .zone circle", "#map .pin", "#map-labels text"):
            found = classy.eval_on_selector_all(what, seen)
            assert {name for name, middle in found if middle > strip["y"] + 8} <= apart, what


def test_a_map_on_which_all_zones_have_a_place_is_of_coordinates_alone(page: Page) -> None:
    assert page.locator("#map-apart rect").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_no_arc_is_seen_through_a_name_or_the_note(browser: Browser, classes: str, *, dark: bool) -> None:
    """Where a name is, the picture is the same with arcs and without, whatever arcs there are."""
    said = answer(classes, "api/run")
    everybody = [each["number"] for each in said["zones"]]
    for status in said["status"]["zones"]:
        others = [str(number) for number in everybody if number != status["number"]]
        status["attention"], status["left_out"] = dict.fromkeys(others, 1.0), {}
    seen = tab(browser, classes, dark=dark)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    expect(page.locator("#map .arc")).to_have_count(len(everybody) * (len(everybody) - 1))
    page.add_style_tag(content="#map .zone, #map .pin, #map-graticule { visibility: hidden }")
    boxes = page.eval_on_selector_all(
        "#map-labels text, #map-note",
        """(all) => all.map((each) => {
          const { x, y, width, height } = each.getBoundingClientRect();
          const clip = { x: x + 2, y: y + height / 2 - 3, width: width - 4, height: 6 };  // as high as small letters
          return [each.textContent, clip];
        })""",
    )
    assert len(boxes) > len(everybody) / 2
    with_arcs = {text: page.screenshot(clip=clip) for text, clip in boxes}
    page.add_style_tag(content="#map-arcs { visibility: hidden }")
    assert [text for text, clip in boxes if page.screenshot(clip=clip) != with_arcs[text]] == []
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


def test_two_fingers_zoom_the_map(browser: Browser, four: str) -> None:
    """Around what is between them; and one of them then moves it. None of it is a click."""
    seen = tab(browser, four, size=PHONE, touch=True)
    page = seen.open()
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    assert box is not None
    middle_x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = math.dist(middle(page, "ash"), middle(page, "birch"))
    hand = page.context.new_cdp_session(page)

    def fingers(kind: str, *places: float) -> None:
        points = [{"x": x, "y": y, "id": number} for number, x in enumerate(places)]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", middle_x - 30)
    fingers("touchStart", middle_x - 30, middle_x + 30)
    for step in range(1, 7):
        fingers("touchMove", middle_x - 30 - 5 * step, middle_x + 30 + 5 * step)
    apart = f"""() => {{
      const [a, b] = ["ash", "birch"].map((name) => document.querySelector(`#map [data-zone=${{name}}] .shape`));
      const [p, q] = [a, b].map((shape) => shape.getBoundingClientRect());
      return Math.abs(Math.hypot(p.x + p.width / 2 - q.x - q.width / 2, p.y - q.y) - {2 * before}) < {0.1 * before};
    }}"""
    page.wait_for_function(apart)
    fingers("touchEnd", middle_x - 60)
    start = middle(page, "ash")
    for step in range(1, 6):
        fingers("touchMove", middle_x - 60 + 10 * step)
    page.wait_for_function(
        "(x) => document.querySelector('#map [data-zone=ash] .shape').getBoundingClientRect().x > x", arg=start[0]
    )
    fingers("touchEnd")
    expect(page.locator("#zone-title")).to_have_text("All zones")
    expect(page.locator("#zoom-out")).to_be_enabled()
    assert page.evaluate("visualViewport.scale") == 1  # the page itself has stayed as it was
    seen.fine()
    page.context.close()


def test_a_zones_name_is_the_zone(page: Page) -> None:
    name = page.locator("#map-labels [data-zone=elm]")
    x, y = name.evaluate(
        "(text) => { const b = text.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }"
    )
    page.mouse.move(x, y)
    assert name.evaluate("(text) => getComputedStyle(text).cursor") == "pointer"
    expect(page.locator("#tooltip")).to_contain_text("elm")
    page.mouse.down()
    page.set_viewport_size({"width": page.viewport_size["width"], "height": 899})  # type: ignore[index]
    page.mouse.up()
    expect(page.locator("#zone-title")).to_have_text("elm")
    expect(
        zone(page, "elm")
    ).to_be_focused()  # as by a click on the zone: arrows go on from there, and nothing is framed
    page.mouse.click(x, y)
    expect(page.locator("#zone-title")).to_have_text("All zones")


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
