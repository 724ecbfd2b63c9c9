"""The panels beside the map, held against what the server says: tree, chances, curves, histograms, table, health."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import PATIENCE, Tab, tab
from tests.page.runs import FOUR, MANY, answer

expect.set_options(timeout=PATIENCE)


@pytest.fixture
def seen(browser: Browser, four: str) -> Iterator[Tab]:
    """Four zones, everything in sight."""
    opened = tab(browser, four)
    opened.open()
    opened.whole()
    yield opened
    opened.fine()
    opened.page.context.close()


@pytest.fixture
def page(seen: Tab) -> Page:
    return seen.page


@pytest.fixture(scope="session")
def run(four: str) -> dict[str, Any]:
    found: dict[str, Any] = answer(four, "api/run")
    return found


def traces(page: Page, chart: str) -> list[dict[str, Any]]:
    """What plotly has drawn; numbers as plain lists."""
    found: list[dict[str, Any]] = page.evaluate(
        "(id) => document.getElementById(id).data.map(({ name, x, y }) => ({ name, x: [...x], y: [...y] }))", chart
    )
    return found


def test_nodes_stand_as_high_as_their_distances(page: Page, run: dict[str, Any]) -> None:
    tree = run["tree"]
    joints = page.locator("#tree .joint")
    expect(joints).to_have_count(3)
    heights = page.eval_on_selector_all("#tree .joint .dot", "(all) => all.map((e) => e.getBoundingClientRect().y)")
    floor = page.locator("#tree .leaf circle").first.bounding_box()
    assert floor is not None
    leaf = floor["y"] + floor["height"] / 2
    reach = [leaf - height - 3.5 for height in heights]
    scale = reach[-1] / tree["distances"][-1]
    assert reach == pytest.approx([scale * distance for distance in tree["distances"]], abs=1.5)
    texts = [float(text) for text in page.locator("#tree .joint text").all_text_contents()]
    assert texts == pytest.approx(tree["distances"], rel=6e-3)
    assert f"L(T) = {tree['loss']:.4g}"[:9] in page.inner_text("#tree-facts")


def test_a_zone_shows_the_chances_of_its_branches(page: Page, run: dict[str, Any]) -> None:
    page.locator("#tree .leaf[data-leaf=ash]").click()
    branches = run["tree"]["branches"]["ash"]
    rungs = page.locator("#ladder > li")
    expect(rungs).to_have_count(len(branches))
    for rung, branch in zip(rungs.all(), branches, strict=True):
        assert float(rung.locator(".p").inner_text().split()[-1]) == pytest.approx(branch["probability"], abs=6e-3)
        assert float(rung.locator(".d").inner_text().split()[-1]) == pytest.approx(branch["distance"], rel=6e-3)
        assert rung.locator(".chip").all_inner_texts() == branch["zones"]
    assert page.locator("#tree .joint.way").count() == len(branches)
    page.locator("#ladder .chip").first.click()
    expect(page.locator("#zone-title")).to_have_text(branches[0]["zones"][0])


def test_at_115_zones_the_tree_and_a_long_branch_can_be_read(browser: Browser, many: str) -> None:
    seen = tab(browser, many)
    page = seen.open()
    boxes = page.eval_on_selector_all(
        "#tree .leaf text",
        "(all) => all.map((e) => { const b = e.getBoundingClientRect(); return [b.left, b.right]; })",
    )
    boxes.sort()
    assert all(b[0] - a[0] >= 9 for a, b in pairwise(boxes)), "names lie over each other"
    page.locator("#pick").fill("zone-077")
    page.keyboard.press("Enter")
    expect(page.locator("#ladder-title")).to_have_text("Whom zone-077 draws")
    branches = answer(many, "api/run")["tree"]["branches"]["zone-077"]
    long = max(range(len(branches)), key=lambda i: len(branches[i]["zones"]))
    rung = page.locator("#ladder > li").nth(long)
    assert rung.locator(".chip").count() == 9
    rung.locator(".more").click()
    assert rung.locator(".chip").all_inner_texts() == branches[long]["zones"]
    seen.fine()
    page.context.close()


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


def test_a_run_without_noise_says_so(browser: Browser, many: str) -> None:
    seen = tab(browser, many)
    page = seen.open()
    expect(page.locator("#epsilon")).to_have_text("no noise (ε off)")
    expect(page.locator("#link")).to_have_text("finished")
    seen.fine()
    page.context.close()


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


def test_every_node_of_a_large_tree_is_told_by_keyboard_and_finger(browser: Browser, many: str) -> None:
    tree = answer(many, "api/run")["tree"]
    sizes = [1] * len(tree["zones"])
    for a, b in tree["merges"]:
        sizes.append(sizes[a] + sizes[b])
    seen = tab(browser, many, touch=True)
    page = seen.open()
    joints = page.locator("#tree .joint")
    assert page.locator("#tree .joint text").all_text_contents() == [""] * 114  # no room: only asked does a node speak
    names = [joint.get_attribute("aria-label") or "" for joint in joints.all()]
    for name, distance, size in zip(names, tree["distances"], sizes[115:], strict=True):
        assert float(re.findall(r"d_r = ([\d.]+)", name)[0]) == pytest.approx(distance, rel=6e-4)
        assert f", {size} zones: " in name
    stop = page.locator("#tree [tabindex='0']")
    expect(stop).to_have_attribute("data-node", "113")  # the root
    stop.focus()
    reached = {113}
    for key in ["ArrowLeft"] * 114 + ["ArrowRight"] * 114:
        page.keyboard.press(key)
        reached.add(int(page.evaluate("document.activeElement.dataset.node")))
    assert reached == set(range(114))
    assert stop.count() == 1
    page.keyboard.press("ArrowUp")
    expect(page.locator("#tooltip")).to_contain_text("distance d_r = ")
    page.locator("#zones-filter").focus()
    expect(page.locator("#tooltip")).to_be_hidden()
    joints.nth(113).tap()
    expect(page.locator("#tooltip")).to_contain_text(names[113].split(",")[0])
    seen.fine()
    page.context.close()


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


def test_figures_plans_and_states(page: Page, run: dict[str, Any]) -> None:
    assert page.inner_text("#figure-round .value") == "8"
    kept = run["status"]["kept"]  # as in the table that ends a run
    assert page.inner_text("#figure-error .value") == f"{kept['test']:.4g}"
    assert page.inner_text("#figure-error .note").startswith(f"test, models kept; before {kept['before']:.4g}")
    gain = 100 * (kept["alone"] - kept["test"]) / kept["alone"]
    assert float(re.sub(r"[ %+]", "", page.inner_text("#figure-alone .value")).replace("−", "-")) == pytest.approx(
        gain, abs=0.05
    )
    assert page.inner_text("#figure-devices .value") == "12"
    better = sum(
        [row for row in run["series"][each["name"]]["evaluations"] if row[3]][-1][2] < each["alone"]
        for each in run["zones"]
    )
    assert page.inner_text("#figure-alone .note") == f"better in {better} of 4 zones"
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


def test_all_115_zones_are_in_the_table_and_the_list(browser: Browser, many: str) -> None:
    seen = tab(browser, many)
    page = seen.open()
    assert column(page, 1) == list(MANY)
    page.locator("#pick").click()
    assert page.locator("#pick-list [role=option]").all_inner_texts() == list(MANY)
    seen.fine()
    page.context.close()
