"""The dendrogram, and each zone's chances by it."""

import re
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import LAPTOP, PHONE, tab
from tests.page.runs import answer


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


def test_at_115_zones_the_tree_and_a_long_branch_can_be_read(crowd: Page, many: str) -> None:
    boxes = crowd.eval_on_selector_all(
        "#tree .leaf text",
        "(all) => all.map((e) => { const b = e.getBoundingClientRect(); return [b.left, b.right]; })",
    )
    boxes.sort()
    assert all(b[0] - a[0] >= 9 for a, b in pairwise(boxes)), "names lie over each other"
    crowd.locator("#pick").fill("zone-077")
    crowd.keyboard.press("Enter")
    expect(crowd.locator("#ladder-title")).to_have_text("Whom zone-077 draws")
    branches = answer(many, "api/run")["tree"]["branches"]["zone-077"]
    long = max(range(len(branches)), key=lambda i: len(branches[i]["zones"]))
    rung = crowd.locator("#ladder > li").nth(long)
    assert rung.locator(".chip").count() == 9
    rung.locator(".more").click()
    assert rung.locator(".chip").all_inner_texts() == branches[long]["zones"]


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


def test_leaves_are_reached_by_keyboard(crowd: Page, many: str) -> None:
    tree = answer(many, "api/run")["tree"]
    crowd.locator("#tree [tabindex='0']").focus()
    for _ in tree["zones"]:  # towards the larger side, as far as it goes
        crowd.keyboard.press("ArrowDown")
    here = "document.activeElement.dataset.leaf"
    reached = {crowd.evaluate(here)}
    for key in ["ArrowLeft"] * 114 + ["ArrowRight"] * 114:
        crowd.keyboard.press(key)
        reached.add(crowd.evaluate(here))
    assert reached == set(tree["zones"])
    name = crowd.evaluate(here)
    expect(crowd.locator("#tooltip")).to_contain_text(name)
    crowd.keyboard.press("Enter")
    expect(crowd.locator("#zone-title")).to_have_text(name)
    leaf = crowd.locator(f"#tree [data-leaf={name}]")
    expect(leaf).to_have_attribute("aria-pressed", "true")
    expect(leaf).to_be_focused()
    assert crowd.locator("#tree [tabindex='0']").count() == 1
    crowd.keyboard.press("ArrowUp")
    assert crowd.evaluate("document.activeElement.classList.contains('joint')")


@pytest.mark.parametrize("residue", [0.0, 3e-17], ids=["equal", "nearly"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_zones_that_are_not_apart_have_a_tree_of_no_height(
    browser: Browser, four: str, size: tuple[int, int], residue: float
) -> None:
    said = answer(four, "api/run")
    tree = said["tree"]
    tree["distances"], tree["loss"] = [residue] * 3, 3 * residue
    tree["apart"] = [[residue] * len(row) for row in tree["apart"]]
    for branches in tree["branches"].values():
        for branch in branches:
            branch["distance"] = residue
    seen = tab(browser, four, size=size)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open("#zone=ash")
    expect(page.locator("#tree .tick")).to_have_text(["0"])
    expect(page.locator("#tree-facts")).to_contain_text("L(T) = 0")
    expect(page.locator("#tree-facts")).not_to_contain_text("e−")
    assert set(page.locator("#ladder .d").all_text_contents()) == {"d 0"}
    assert "NaN" not in page.inner_html("#tree")
    seen.fine()
    page.context.close()


def test_a_zone_by_itself_has_a_tree_of_one_leaf(browser: Browser, four: str) -> None:
    said = answer(four, "api/run")
    said["tree"] |= {"zones": ["ash"], "merges": [], "distances": [], "apart": [[]], "branches": {"ash": []}, "loss": 0}
    seen = tab(browser, four)
    seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
    page = seen.open()
    expect(page.locator("#tree .tick")).to_have_text(["0"])
    expect(page.locator("#tree-facts")).to_contain_text("· 1 zone ·")
    assert "NaN" not in page.inner_html("#tree")
    page.locator("#tree [tabindex='0']").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#zone-title")).to_have_text("ash")
    seen.fine()
    page.context.close()


ON_LINES = """() => {
  const texts = [...document.querySelectorAll("#tree .joint text")].filter((text) => text.textContent);
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const points = [...document.querySelectorAll("#tree .branch")].flatMap((line) => {
    const matrix = line.getScreenCTM();
    const steps = Math.ceil(line.getTotalLength());
    return Array.from({ length: steps + 1 }, (_, i) => line.getPointAtLength(i).matrixTransform(matrix));
  });
  const on = (box, { x, y }) => x > box.left && x < box.right && y > box.top + 2 && y < box.bottom - 2;
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
  return [
    texts.length,
    boxes.filter((box) => points.some((point) => on(box, point))).length,
    boxes.filter((box, i) => boxes.some((other, j) => i < j && meet(box, other))).length,
  ];
}"""


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_numbers_of_nodes_lie_on_no_line(browser: Browser, four: str, size: tuple[int, int]) -> None:
    seen = tab(browser, four, size=size)
    page = seen.open()
    assert page.evaluate(ON_LINES) == [3, 0, 0]
    page.goto(f"{four}#zone=ash")  # its chances take the place of some
    expect(page.locator("#tree .joint.way text").first).to_contain_text("p ")
    assert page.evaluate(ON_LINES) == [3, 0, 0]
    seen.fine()
    page.context.close()


def test_bars_that_are_nearly_level_lie_side_by_side(page: Page) -> None:
    """A parent's bar starts near the end of its child's, also where the child is the higher one."""
    shared = page.evaluate("""async () => {
      const { arranged } = await import("/static/dendrogram.js");
      const zones = ["a", "b", "c", "d", "e", "f"];
      const tree = { zones, merges: [[0, 1], [2, 3], [6, 7], [4, 5], [8, 9]], distances: [0.1, 0.2, 0.61, 0.5, 0.6] };
      const bar = (node) => node.children.map((child) => child.across).sort((x, y) => x - y);
      return arranged(tree).filter((node) => node.children && node.parent).map((node) => {
        const [[a, b], [u, v]] = [bar(node), bar(node.parent)];
        return [node.parent.distance - node.distance, Math.min(b, v) - Math.max(a, u), b - a];
      });
    }""")
    for apart, both, long in shared:
        assert both == pytest.approx(0.3 if apart < 0.03 else long / 2), apart


def test_the_bracket_of_a_node_that_is_pointed_at_is_lit(page: Page) -> None:
    page.locator("#tree .joint").last.hover()
    expect(page.locator("#tree .branch.lit")).to_have_count(2)
    expect(page.locator("#tooltip")).to_contain_text("apart from")
    page.locator("#tree-title").hover()
    expect(page.locator("#tree .branch.lit")).to_have_count(0)


def test_beside_an_earlier_round_a_plan_that_may_not_be_that_rounds_is_called_the_present_one(
    browser: Browser, four: str
) -> None:
    said = answer(four, "api/run")
    facts, ladder = "plan {}, the present one (of earlier rounds none is kept) · 4 zones", "By the present plan. "
    for version in (1, 2):
        said["tree"]["version"] = said["status"]["plan"] = version
        said["status"]["reason"] = "elm joined"
        for zone in said["status"]["zones"]:
            zone["left_out"] = {}
        seen = tab(browser, four)
        seen.page.route("**/api/run", lambda route: route.fulfill(json=said))
        page = seen.open("#zone=ash")
        note = page.locator("#figure-plan .note")
        for latest in (True, False, True):
            page.click("#latest") if latest else page.locator("#round").fill("1")
            expect(page.locator("#round-said")).to_have_text("round 8" if latest else "round 1")
            other = version == 2 and not latest
            expect(note).to_have_text("the present plan" if other else "elm joined")
            assert (facts.format(version) in page.inner_text("#tree-facts")) == other
            assert page.inner_text("#ladder-intro").startswith(ladder) == other
        seen.fine()
        page.context.close()
