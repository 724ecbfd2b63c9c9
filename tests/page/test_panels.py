"""The panels beside the map, held against what the server says: figures, table, health."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import tab
from tests.page.runs import FOUR, MANY, answer
from tests.page.told import told


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"#zones-body tr > :nth-child({number})").all_inner_texts()


def test_the_table_is_sorted_by_any_column(page: Page, run: dict[str, Any]) -> None:
    assert column(page, 1) == list(FOUR)
    page.get_by_role("button", name="RMSE", exact=True).press("Enter")
    errors = [float(text) for text in column(page, 5)]
    assert errors == sorted(errors)
    head = page.locator("#zones-head th").nth(4)
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="RMSE", exact=True).press("Enter")
    assert [float(text) for text in column(page, 5)] == sorted(errors, reverse=True)
    expect(head).to_have_attribute("aria-sort", "descending")
    kept = {name: [row for row in rows["evaluations"] if row[3]][-1][2] for name, rows in run["series"].items()}
    assert dict(zip(column(page, 1), column(page, 5), strict=True)) == {name: f"{kept[name]:.4g}" for name in FOUR}


def test_the_table_is_walked_and_filtered(page: Page) -> None:
    page.locator("#zones-body button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#zone-title")).to_have_text("cedar")
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.textContent") == "ash"
    page.keyboard.press("Escape")
    expect(page.locator("#zone-title")).to_have_text("All zones")
    page.locator("#zones-filter").fill("IRC")
    expect(page.locator("#zones-body tr")).to_have_count(1)
    assert column(page, 1) == ["birch"]


def test_what_the_filter_leaves_of_the_table_is_reached_with_tab(page: Page) -> None:
    stops = page.locator("#zones-body button[tabindex='0']")
    expect(stops).to_have_text(["ash"])
    page.locator("#zones-filter").fill("IRC")  # without ash
    expect(stops).to_have_text(["birch"])
    for _ in range(1 + page.locator("#zones-head button").count()):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "birch"
    page.locator("#zones-filter").fill("")
    expect(page.locator("#zones-body tr")).to_have_count(4)
    expect(stops).to_have_text(["birch"])  # it stays where the reader was


def test_a_row_that_has_the_focus_keeps_it_while_the_run_goes_on(browser: Browser, four: str) -> None:
    seen = tab(browser, four)
    said = answer(four, "api/run")
    said["run"]["live"] = True  # its stream breaks at once, so all is fetched again and again
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    seen.page.route("**/api/events*", lambda route: route.abort())
    page = seen.open("#zone=ash")
    status = next(zone for zone in said["status"]["zones"] if zone["name"] == "ash")
    status["attention"], status["left_out"] = {"1": 0.75, "2": 0.25}, {}
    rows = page.locator("#zone-draw button")
    expect(rows).to_have_text(["birch", "cedar"])
    rows.nth(1).focus()
    status["attention"] = {"1": 0.25, "2": 0.75}
    expect(rows).to_have_text(["cedar", "birch"])
    expect(rows.nth(0)).to_be_focused()
    status["attention"] = {"1": 1.0}
    expect(rows).to_have_text(["birch"])
    expect(page.locator("#zone-draw")).to_be_focused()  # Tab goes on from there, and not from the top of the page
    page.context.close()


def test_figures_plans_and_states(page: Page, run: dict[str, Any]) -> None:
    assert page.inner_text("#figure-round .value") == "8"
    kept = run["status"]["kept"]  # as in the table that ends a run
    assert page.inner_text("#figure-error .value") == f"{kept['test']:.4g}"
    assert page.inner_text("#figure-error .note").startswith(f"test; before {kept['before']:.4g}")
    gain = 100 * (kept["alone"] - kept["test"]) / kept["alone"]
    assert float(re.sub(r"[ %+]", "", page.inner_text("#figure-alone .value")).replace("−", "-")) == pytest.approx(
        gain, abs=0.05
    )
    assert page.inner_text("#figure-devices .value") == "12"
    better = sum(
        [row for row in run["series"][each["name"]]["evaluations"] if row[3]][-1][2] < each["alone"]
        for each in run["zones"]
    )
    assert page.inner_text("#figure-alone .note") == f"pooled; better in {better} of 4 zones"
    assert page.inner_text("#states") == "4 zones: 4 done"
    assert re.match(r"plan 1 over 4 zones", page.inner_text("#plans"))
    assert page.inner_text("#troubles-count") == "1"


def test_what_can_be_used_has_a_name_for_those_who_do_not_see_it(page: Page) -> None:
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, input, [role=img], [tabindex='0']")]
      .filter((e) => e.offsetParent !== null || e.ownerSVGElement)
      .filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim()
                       || (e.labels && e.labels.length)))
      .map((e) => e.outerHTML)""")
    assert nameless == []
    order = []
    for _ in range(12):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert order[:6] == ["skip", "pick-previous", "pick", "pick-next", "theme", "colour-error"]


def test_all_115_zones_are_in_the_table_and_the_list(crowd: Page) -> None:
    assert column(crowd, 1) == list(MANY)
    crowd.locator("#pick").click()
    assert crowd.locator("#pick-list [role=option]").all_inner_texts() == list(MANY)


MASK = "(box) => [box.classList.contains('more'), getComputedStyle(box).maskImage !== 'none']"
BRIGHT = "(box) => [getComputedStyle(box).maskSize.split(' ').at(-2), `${box.offsetWidth - box.clientWidth}px`]"


def test_lists_fade_where_they_go_on_and_end_with_a_whole_line(crowd: Page, page: Page) -> None:
    for box in ("#zone-card .scrolls", ".table-box"):
        list_ = crowd.locator(box)
        expect(list_).to_have_class(re.compile(r"\bmore\b"))
        assert list_.evaluate(MASK) == [True, True]
        bright, bar = list_.evaluate(BRIGHT)
        assert bright == bar  # the bar alone does not fade: no figure is half bright where there is none beside it
        list_.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
        expect(list_).not_to_have_class(re.compile(r"\bmore\b"))
        assert list_.evaluate(MASK) == [False, False]
        list_.evaluate("(box) => { box.scrollTop = 0; }")
        expect(list_).to_have_class(re.compile(r"\bmore\b"))
    for box in ("#zone-card .scrolls", "#health-card .scrolls", "#events-card .scrolls"):
        few = page.locator(box).first
        few.scroll_into_view_if_needed()
        expect(few).not_to_have_class(re.compile(r"\bmore\b"))


def test_the_last_round_has_its_number_below_the_curves(browser: Browser, four: str) -> None:
    said = answer(four, "api/run")
    said["run"]["rounds"] = 100
    rows = [row for zone in said["series"].values() for kind in ("rounds", "evaluations") for row in zone[kind]]
    for row in rows + said["pooled"]:
        row[0] = int(12.5 * row[0])  # 8 rounds become 100
    for zone in said["status"]["zones"]:
        zone["round"] = 100
    seen = tab(browser, four)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    seen.whole()
    for chart in ("curves", "drawn", "homophily"):
        expect(page.locator(f"#{chart} .xtick text", has_text=re.compile("^100$"))).to_be_visible()
    page.context.close()


def test_health_has_room_for_what_is_wrong(browser: Browser, four: str) -> None:
    said = answer(four, "api/run")
    said["status"]["refusals"] = {f"reason {number}": number for number in range(1, 31)}
    seen = tab(browser, four)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    seen.whole()
    box = page.locator("#troubles").locator("xpath=..")
    lines = box.bounding_box()
    line = page.locator("#troubles li").nth(3).bounding_box()
    assert lines is not None
    assert line is not None
    assert lines["height"] > 6 * line["height"]
    expect(box).to_have_class(re.compile(r"\bmore\b"))
    expect(page.locator("#plans li")).to_be_in_viewport(ratio=1)
    seen.fine()
    page.context.close()


def test_the_draws_in_the_table_say_which_round_they_are_of(page: Page) -> None:
    head = page.locator("#zones-head th").last
    expect(head).to_have_text("Last draw, by attention")
    page.locator("#round").fill("3")
    expect(head).to_have_text("Draw of round 3, by attention")
    page.locator("#latest").click()
    expect(head).to_have_text("Last draw, by attention")


LONG = ("kujawsko-pomorskie", "swietokrzyskie", "wielkopolskie", "zachodniopomorskie")


@pytest.mark.parametrize("width", [1190, 1400])
def test_long_names_do_not_push_the_last_column_out_of_the_table(browser: Browser, four: str, width: int) -> None:
    said = json.dumps(answer(four, "api/run"))
    for name, long in zip(FOUR, LONG, strict=True):
        said = said.replace(f'"{name}"', f'"{long}"')
    seen = tab(browser, four, size=(width, 900))
    seen.page.route("**/api/run", lambda route: route.fulfill(json=json.loads(said)))
    page = seen.open()
    page.locator("#zones-card").scroll_into_view_if_needed()
    for round in ("8", "3"):
        page.locator("#round").fill(round)
        expect(page.locator("#zones-head th").last).to_contain_text("by attention")
        assert page.locator(".table-box").evaluate("(box) => box.scrollWidth - box.clientWidth") == 0
    page.locator("#latest").click()
    draw = page.locator(f"tr[data-zone={LONG[1]}] .draw")
    expect(draw).to_have_attribute("title", draw.inner_text())  # what a narrow column cuts
    page.context.close()


NOW = datetime(2026, 3, 4, 23, 59, 50)  # noqa: DTZ001 (by the browser's clock, wherever that is)
TIMES = [NOW - timedelta(hours=1), NOW - timedelta(days=1), NOW - timedelta(days=365)]


def test_what_was_not_today_has_its_date(browser: Browser) -> None:
    """Whole for who points at it; also where the day ends while the page is open."""
    with told() as hand:
        document = hand.source.document
        document["events"] = [{"time": then.timestamp(), "text": f"{then:%c}"} for then in reversed(TIMES)]
        plan = {"version": 1, "reason": "", "zones": 3}
        document["plans"] = [plan | {"time": then.timestamp()} for then in reversed(TIMES)]
        seen = tab(browser, hand.url)
        seen.page.clock.set_fixed_time(NOW)
        page = seen.open()
        whole = [f"{then.day} {then:%b %Y, %H:%M:%S}" for then in TIMES]
        for now, texts in (
            (NOW, ["22:59:50", "3 Mar, 23:59", "4 Mar 2025, 23:59"]),
            (NOW + timedelta(seconds=20), ["4 Mar, 22:59", "3 Mar, 23:59", "4 Mar 2025, 23:59"]),
        ):
            page.clock.set_fixed_time(now)
            hand.head(time=now.timestamp())
            for where in ("#events", "#plans"):
                times = page.locator(f"{where} time")
                expect(times).to_have_text(texts)
                assert times.evaluate_all("(all) => all.map((each) => each.title)") == whole
        seen.fine()
        page.context.close()


def test_the_last_round_and_the_one_that_is_kept_are_told_apart(page: Page, run: dict[str, Any]) -> None:
    kept = {name: [row for row in rows["evaluations"] if row[3]][-1][0] for name, rows in run["series"].items()}
    assert len(set(kept.values())) > 1
    assert column(page, 3) == ["8"] * 4
    assert page.locator("#zones-head th").nth(7).inner_text() == "Round kept"
    assert dict(zip(column(page, 1), column(page, 8), strict=True)) == {name: str(kept[name]) for name in FOUR}
    page.locator("tr[data-zone=ash] th").click()
    facts = page.locator("#zone-facts")
    expect(facts).to_contain_text("round8 of 8")
    expect(facts).to_contain_text(f"model keptof round {kept['ash']}")
