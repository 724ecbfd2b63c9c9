"""One zone alone: by mouse, finger, keyboard, name and link."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import PHONE, tab
from tests.page.marks import drawn, last_draws, until_arcs, zone
from tests.page.runs import FOUR, answer


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


@pytest.mark.parametrize("field", ["#colour-error", "#round"])
def test_a_slash_searches_from_wherever_nobody_writes(page: Page, field: str) -> None:
    page.locator(field).focus()
    page.keyboard.press("/")
    expect(page.locator("#pick")).to_be_focused()
    expect(page.locator("#pick")).to_have_value("")
    page.locator("#zones-filter").focus()
    page.keyboard.press("/")
    expect(page.locator("#zones-filter")).to_have_value("/")
