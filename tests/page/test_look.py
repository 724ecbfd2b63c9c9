"""How the page looks: it loads, by itself, at 4 and at 115 zones, on a laptop and on a phone, light and dark."""

import http.server
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.page_browser import FLAGS
from tests.page.browser import CHARTS, LAPTOP, PATIENCE, PHONE, artefacts, chromium, tab

OUTSIDE = b"""<!doctype html><link rel=icon href="data:,"><img src="http://192.0.2.7/pixel.png">"""
CUT = """() => {
  const words = "#run-facts, .figure-tile h2, .figure-tile .value, .figure-tile .note, .facts dd, thead th";
  const over = (node) => node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 2;
  const shown = [...document.querySelectorAll(words)].filter((node) => node.offsetParent);
  return shown.filter(over).map((node) => node.textContent);
}"""
SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => { sum += entry.value; }))
    .observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(sum), 50)));
})"""


def brightness(page: Page, of: str) -> float:
    """Of a colour of the style sheet's, from 0 to 1."""
    said = page.evaluate("(of) => getComputedStyle(document.querySelector(of)).backgroundColor", of)
    red, green, blue = (int(part) for part in re.findall(r"\d+", said)[:3])
    return (0.3 * red + 0.6 * green + 0.1 * blue) / 255


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("zones", [4, 115])
def test_it_loads_alone_and_fits(
    browser: Browser, request: pytest.FixtureRequest, zones: int, size: tuple[int, int], dark: bool
) -> None:
    url = request.getfixturevalue("many" if zones == 115 else "four")
    seen = tab(browser, url, size=size, dark=dark, touch=size == PHONE)
    page = seen.open("#zone=birch" if zones == 4 and dark else "")
    name = f"{zones}-{'laptop' if size == LAPTOP else 'phone'}-{'dark' if dark else 'light'}"
    seen.drawn(*CHARTS)  # of all of it, a picture may be taken before anybody has scrolled
    page.screenshot(path=artefacts() / f"{name}.png")
    assert page.evaluate("document.documentElement.scrollWidth") == size[0], "the page scrolls sideways"
    assert page.evaluate(SHIFTS) < 0.05
    assert page.evaluate(CUT) == [], "text that is cut"
    seen.whole()
    page.screenshot(path=artefacts() / f"{name}-whole.png")
    assert page.locator("#map .zone").count() == zones
    assert page.locator("#tree .leaf").count() == zones
    assert page.locator("#zones-body tr").count() == zones
    assert page.locator("#map-labels text").count() >= min(zones, 8)
    assert (brightness(page, "body") < 0.2) == dark
    assert (brightness(page, ".card") < 0.2) == dark
    seen.fine()
    page.context.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_light_and_dark_are_choices_that_are_remembered_until_it_is_the_systems_again(
    browser: Browser, four: str, dark: bool
) -> None:
    seen = tab(browser, four, dark=dark)
    page = seen.open()
    button = page.locator("#theme")
    system, other = ("dark", "light") if dark else ("light", "dark")
    for said, shown, following in (
        ("as the system has them", system, other),
        (other, other, system),
        (system, system, "as the system has them"),
        ("as the system has them", system, other),
    ):
        expect(button).to_have_attribute("aria-label", f"Colours: {said}")
        expect(button).to_have_attribute("title", f"Colours: {said}. A click: {following}")
        assert (brightness(page, "body") < 0.2) == (shown == "dark")
        seen.drawn("curves")
        page.reload()
        page.wait_for_selector("body.ready")
        expect(button).to_have_attribute("aria-label", f"Colours: {said}")
        assert (brightness(page, "body") < 0.2) == (shown == "dark")
        button.click()
    expect(button).to_have_attribute("aria-label", f"Colours: {other}")
    page.emulate_media(color_scheme=other)  # type: ignore[arg-type]
    expect(button).to_have_attribute("title", f"Colours: {other}. A click: as the system has them")
    seen.fine()
    page.context.close()


@pytest.fixture
def asked() -> list[str]:
    """What was asked of `elsewhere`."""
    return []


@pytest.fixture
def elsewhere(asked: list[str]) -> Iterator[str]:
    """A page that has a picture from another host, and lets everybody read it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("access-control-allow-origin", "*")
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(OUTSIDE)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_page_that_asks_others_would_be_seen(browser: Browser, elsewhere: str) -> None:
    seen = tab(browser, elsewhere)
    with seen.page.expect_event("request", lambda request: "192.0.2.7" in request.url):
        seen.page.goto(elsewhere, wait_until="commit")
    assert seen.outside == ["http://192.0.2.7/pixel.png"]
    seen.page.context.close()


def test_the_browser_is_told_to_ask_nobody_else(browser: Browser, four: str, elsewhere: str, asked: list[str]) -> None:
    """Whatever gets into the page: scripts of its own server alone run, and reach that server alone."""
    ask = "(url) => fetch(url).then(() => 'reached', (error) => String(error))"
    plain = tab(browser, elsewhere)  # the other host is there, and answers a page that may ask it
    plain.page.route("http://192.0.2.7/*", lambda route: route.abort())
    plain.page.goto(elsewhere)
    assert plain.page.evaluate(ask, f"{elsewhere.replace('127.0.0.1', 'localhost')}plain") == "reached"
    plain.page.context.close()
    assert "/plain" in asked
    seen = tab(browser, four)
    page = seen.open()
    assert "Failed to fetch" in page.evaluate(ask, f"{elsewhere}told")
    assert "/told" not in asked
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'owned'";
      document.body.append(script);
    }""")
    assert page.title() == "four · SGFusion"
    assert [problem for problem in seen.problems if "Content Security Policy" in problem]
    page.context.close()


def test_motion_is_for_those_who_want_it(browser: Browser, four: str) -> None:
    seen = tab(browser, four)
    page = seen.open()
    animated = "[...document.getAnimations()].length"
    page.evaluate("document.getElementById('link').dataset.state = 'live'")
    assert page.evaluate(animated) == 0
    page.emulate_media(reduced_motion="no-preference")
    page.wait_for_function(f"() => {animated} > 0")
    page.context.close()


@pytest.mark.parametrize("missing", ["main.js", "zoom.js"])
def test_a_page_whose_scripts_do_not_load_says_so(browser: Browser, four: str, missing: str) -> None:
    seen = tab(browser, four)
    seen.page.route(f"**/static/{missing}", lambda route: route.abort())
    seen.page.goto(four)
    said = seen.page.locator("#stalled")
    assert said.evaluate("(e) => getComputedStyle(e).animationDelay") == "6s"  # a slow line is no failure
    expect(said).to_be_visible()
    expect(said).to_contain_text("reload the page")
    seen.page.screenshot(path=artefacts() / "stalled.png")
    seen.page.unroute_all()
    page = seen.open()
    expect(said).to_have_count(0)
    page.context.close()


def test_a_browser_without_scripts_is_told_what_it_needs(browser: Browser, four: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(four)
    expect(page.locator("noscript p")).to_be_visible()
    expect(page.locator("noscript p")).to_contain_text("JavaScript")
    expect(page.locator("#stalled")).to_be_hidden()
    context.close()


def test_a_browser_that_only_takes_a_picture_finds_every_chart_drawn(four: str, tmp_path: Path) -> None:
    """As `chromium --screenshot` does: it has a clock of its own, which runs ahead once the page has loaded."""
    command = [
        chromium(), "--headless", *FLAGS, f"--user-data-dir={tmp_path}", "--window-size=1400,900",
        "--virtual-time-budget=10000", "--dump-dom", four,
    ]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE / 1000).stdout
    parts = re.split(r'<div id="(\w+)" class="chart', said)
    drawn = {name: "main-svg" in part for name, part in zip(parts[1::2], parts[2::2], strict=True)}
    assert drawn == dict.fromkeys(CHARTS, True)


def test_a_picture_of_all_of_a_few_zones_needs_no_scrolling_on_a_phone(browser: Browser, four: str) -> None:
    """There the browser does not make its window as long as the page: what it skips out of sight is blank."""
    seen = tab(browser, four, size=PHONE, touch=True)
    page = seen.open()
    headings = page.locator(".card h2")
    assert headings.count() >= 10
    drawn = "(all) => all.filter((each) => !each.checkVisibility({ contentVisibilityAuto: true })).length"
    assert headings.evaluate_all(drawn) == 0
    page.context.close()


def test_what_is_due_is_drawn_before_it_is_printed(browser: Browser, four: str) -> None:
    seen = tab(browser, four)
    page = seen.open()
    seen.drawn(*CHARTS)
    traces = "document.getElementById('drawn').data.length"
    assert page.evaluate(traces) == 1
    page.evaluate("window.requestAnimationFrame = window.requestIdleCallback = () => 0")  # nothing is drawn by itself
    found = page.evaluate(f"""async () => {{
      const {{ Chart }} = await import("/static/charts.js");
      const store = {{ run: {{}}, subscribe: (view) => {{ store.view = view; }} }};
      new Chart("drawn", store, ["run"], () => ({{ traces: [{{ y: [1] }}, {{ y: [2] }}], layout: {{}}, said: "" }}));
      store.view(new Set(["run"]));
      const found = [];
      for (const display of ["none", ""]) {{
        document.getElementById("drawn").style.display = display;
        dispatchEvent(new Event("beforeprint"));
        await new Promise((done) => setTimeout(done));
        found.push({traces});
      }}
      return found;
    }}""")
    assert found == [1, 2]  # what has no size is drawn once it has one
    page.context.close()


def test_charts_are_drawn_once_plotly_loads(browser: Browser, four: str) -> None:
    seen = tab(browser, four)
    seen.page.route("**/plotly.min.js", lambda route: route.abort())
    page = seen.open()
    expect(page.locator("#curves")).to_contain_text("plotly.min.js could not be loaded")
    page.unroute_all()
    seen.drawn("curves")  # nothing else has changed: it has tried again by itself
    expect(page.locator("#curves")).not_to_contain_text("could not be loaded")
    page.context.close()
