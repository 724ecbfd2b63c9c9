"""Who learned from whom, by arcs on the map, in each round."""

import math
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import tab
from tests.page.marks import arcs, drawn, last_draws, middle, until_arcs, zone
from tests.page.runs import MARKUP, answer


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


CORNERS = {"ash": (53.5, 14.0), "birch": (53.5, 24.0), "cedar": (49.5, 14.0), "elm": (49.5, 24.0)}
OUTSIDE = """() => {
  const map = document.getElementById("map").getBoundingClientRect();
  const within = (node) => {
    const box = node.getBoundingClientRect();
    return box.left >= map.left && box.top >= map.top && box.right <= map.right && box.bottom <= map.bottom;
  };
  const marks = [...document.querySelectorAll("#map .zone")];
  const seen = new Set(marks.filter(within).map((mark) => mark.dataset.zone));
  const names = ["ash", "birch", "cedar", "elm"];
  const arcs = [...document.querySelectorAll("#map .arc")]
    .filter((arc) => seen.has(arc.parentNode.dataset.zone) && seen.has(names[arc.dataset.from]));
  return [arcs.length, arcs.filter((arc) => !within(arc)).length];
}"""


def test_an_arc_stays_on_the_map_as_long_as_its_ends_are_there(browser: Browser, four: str) -> None:
    """Zones in the corners that all draw each other: the arcs along the edges would leave by them."""
    said = answer(four, "api/run")
    for each, status in zip(said["zones"], said["status"]["zones"], strict=True):
        each["place"] = [[CORNERS[each["name"]]]]
        others = [str(other) for other in range(4) if other != each["number"]]
        status["attention"], status["left_out"] = dict.fromkeys(others[:2], 0.5), {others[2]: "late"}
    seen = tab(browser, four)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    expect(page.locator("#map .arc")).to_have_count(12)
    assert page.evaluate(OUTSIDE) == [12, 0]
    (there, back) = (
        page.locator(f"#map .draw[data-zone={zone}] .arc[data-from='{other}']").bounding_box()
        for zone, other in (("ash", 1), ("birch", 0))
    )
    assert there is not None
    assert back is not None
    assert back["y"] + back["height"] < there["y"] + there["height"] - 10  # two that ask each other have two arcs
    page.click("#zoom-in")
    box = page.locator("#map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for way in (-1, 1):  # the left pair and the right one come to an edge
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + way * box["width"] / 4, y + way * box["height"] / 4, steps=5)
        page.mouse.up()
        assert page.evaluate(OUTSIDE)[1] == 0
    seen.fine()
    page.context.close()
