"""Curves and histograms, held against what the server says."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import Tab, tab
from tests.page.runs import FOUR, answer


@pytest.fixture
def page(seen: Tab) -> Page:
    """Everything in sight, and drawn."""
    return seen.whole()


def traces(page: Page, chart: str) -> list[dict[str, Any]]:
    """What plotly has drawn; numbers as plain lists."""
    found: list[dict[str, Any]] = page.evaluate(
        "(id) => document.getElementById(id).data.map(({ name, x, y }) => ({ name, x: [...x], y: [...y] }))", chart
    )
    return found


def test_learning_curves_of_all_zones_and_of_one(page: Page, run: dict[str, Any]) -> None:
    found = {trace["name"]: trace for trace in traces(page, "curves")}  # of two of a name the second, which is test
    assert found["all zones"]["x"] == [row[0] for row in run["pooled"]]
    assert found["all zones"]["y"] == [row[2] for row in run["pooled"]]
    rows = [row for name in FOUR for row in run["series"][name]["evaluations"]]
    assert [y for y in found["each zone"]["y"] if y is not None] == [row[2] for row in rows]
    page.locator("label[for=split-validation]").click()
    page.wait_for_function(
        "(first) => document.getElementById('curves').data.find((t) => t.name === 'each zone').y[0] === first",
        arg=rows[0][1],
    )
    page.locator("tr[data-zone=elm] th").click()
    page.wait_for_function("() => document.getElementById('curves').data.some((t) => t.name === 'elm')")
    mine = [trace for trace in traces(page, "curves") if trace["name"] == "elm"]
    evaluations = run["series"]["elm"]["evaluations"]
    assert [trace["y"] for trace in mine] == [[row[1] for row in evaluations], [row[2] for row in evaluations]]


def test_zones_drawn_and_homophily_over_rounds(page: Page, run: dict[str, Any]) -> None:
    rounds = [row for name in FOUR for row in run["series"][name]["rounds"]]
    means = [sum(row[1] for row in rounds if row[0] == at) / 4 for at in range(1, 9)]
    assert traces(page, "drawn")[0]["y"] == pytest.approx(means)
    likeness = [[row[2] for row in rounds if row[0] == at and row[2] is not None] for at in range(1, 9)]
    wanted = [sum(values) / len(values) if values else None for values in likeness]
    assert traces(page, "homophily")[0]["y"] == pytest.approx(wanted)
    page.locator("tr[data-zone=cedar] th").click()
    page.wait_for_function("() => document.getElementById('drawn').data.length === 2")
    assert traces(page, "drawn")[0]["y"] == [row[1] for row in run["series"]["cedar"]["rounds"]]
    expect(page.locator("#drawn-mine")).to_contain_text("cedar")


def test_the_noised_histogram_stands_beside_the_mean_of_all(page: Page, run: dict[str, Any]) -> None:
    page.locator("tr[data-zone=birch] th").click()
    page.wait_for_function("() => document.getElementById('histogram').data[0].type === 'bar'")
    mine, mean = traces(page, "histogram")
    shares = {each["name"]: [h / sum(each["histogram"]) for h in each["histogram"]] for each in run["zones"]}
    assert mine["y"] == pytest.approx(shares["birch"])
    assert mean["y"] == pytest.approx([sum(column) / 4 for column in zip(*shares.values(), strict=True)])
    assert mine["x"] == pytest.approx([(a + b) / 2 for a, b in zip(run["edges"], run["edges"][1:], strict=False)])
    expect(page.locator("#epsilon")).to_have_text("ε 10.0 of 10.0 spent")
    expect(page.locator("#epsilon-note")).to_contain_text("gradients carry no noise")


def test_a_run_without_noise_says_so(classy: Page) -> None:
    expect(classy.locator("#epsilon")).to_have_text("no noise (ε off)")
    expect(classy.locator("#link")).to_have_text("finished")


def test_of_115_zones_the_noise_is_told_too(crowd: Page) -> None:
    expect(crowd.locator("#epsilon")).to_have_text("ε 10.0 of 10.0 spent")
    expect(crowd.locator("#epsilon-note")).to_contain_text("gradients carry no noise")


def test_classes_are_named_and_have_neither_a_mean_nor_a_unit(browser: Browser, classes: str) -> None:
    seen = tab(browser, classes)
    page = seen.open("#zone=hel")
    seen.whole()
    expect(page.locator("#zone-facts")).to_contain_text("commonest labelclass 1")
    expect(page.locator("#zone-facts")).not_to_contain_text("mean label")
    ticks = page.locator("#histogram .xtick text")
    expect(ticks).to_have_text(["class 0", "class 1", "class 2"])
    assert page.evaluate("document.getElementById('histogram').data[0].text") == ["class 0", "class 1", "class 2"]
    expect(page.locator("#histogram .xtitle")).to_have_text("label")
    expect(page.locator("#zone-facts")).to_contain_text("%")  # the accuracy's
    seen.fine()
    page.context.close()


def cut(page: Page) -> list[str]:
    """What the learning curves say of what they do not show."""
    texts: list[str] = page.evaluate("document.getElementById('curves').layout.annotations.map(({ text }) => text)")
    return [text for text in texts if "cut" in text]


def test_curves_that_are_cut_say_where_and_what_is_higher(browser: Browser, four: str) -> None:
    said = answer(four, "api/run")
    seen = tab(browser, four)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    seen.drawn("curves")
    top = page.evaluate("document.getElementById('curves').layout.yaxis.range[1]")
    firsts = [rows["evaluations"][0][2] for rows in said["series"].values()]
    assert max(firsts) > top
    assert cut(page) == [f"↑ cut at {top:.1f}; higher: the start"]
    assert f"cut at {top:.1f}" in (page.get_attribute("#curves", "aria-label") or "")
    said["series"]["elm"]["evaluations"][-1][2] = 100.0  # it runs away
    page.reload()
    seen.drawn("curves")
    (text,) = cut(page)
    assert text.endswith("; higher: the start, 1 zone")
    for rows in said["series"].values():
        for row in rows["evaluations"]:
            row[1] = row[2] = 2.0 + row[0] / 100
    page.reload()
    seen.drawn("curves")
    assert cut(page) == []  # all is there
    for rows in said["series"].values():
        for row in rows["evaluations"]:
            row[1] = row[2] = -2.0 - row[0] / 100  # a metric may be below zero
    said["pooled"] = [[row[0], -2.0 - row[0] / 100, -2.0 - row[0] / 100] for row in said["pooled"]]
    page.reload()
    seen.drawn("curves")
    assert cut(page) == []
    seen.fine()
    page.context.close()


@pytest.mark.parametrize(("last", "shown"), [(0, 12.5), (11, 12.5), (12, 25), (60, 100), (100, 100)])
def test_of_a_long_run_that_has_just_begun_the_curves_show_its_beginning(
    browser: Browser, four: str, last: int, shown: float
) -> None:
    said = answer(four, "api/run")
    said["run"]["rounds"] = 100
    for each in said["status"]["zones"]:
        each["round"] = last
    seen = tab(browser, four)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    seen.whole()
    for chart in ("curves", "drawn", "homophily"):
        assert page.evaluate(f"document.getElementById('{chart}').layout.xaxis.range") == [0, shown]
    title = page.evaluate("document.getElementById('curves').layout.xaxis.title.text")
    assert title == ("round" if shown == 100 else "round, of 100")
    page.context.close()


def test_what_a_device_calls_its_metric_is_no_markup(browser: Browser, four: str) -> None:
    said = answer(four, "api/run")
    said["metric"] |= {"name": '<a href="http://192.0.2.7/">log in</a>', "unit": "<b>%</b>", "root": True}
    seen = tab(browser, four)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    seen.drawn("curves", "histogram")
    assert "log in" in page.inner_text("#curves")
    assert "%" in page.inner_text("#histogram")
    assert page.locator("svg a, #histogram tspan[style*=bold]").count() == 0
    seen.fine()
    page.context.close()
