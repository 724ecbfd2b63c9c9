"""The page of a real cluster of processes: it follows the run, says who is missing, and comes back with its cloud."""

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from cloud.page.access import kept_token
from sgfusion.runfile import RunFile
from tests.cloud.page.sites import served
from tests.cluster.harness import Cluster, cluster_of, run_of
from tests.page.browser import PATIENCE, Tab, artefacts, tab
from tests.page.relay import relayed
from tests.page.runs import answer
from tests.unhurried import UNHURRIED

expect.set_options(timeout=2 * PATIENCE)
ENDLESS = 20_000
"""Rounds: an hour. Of so many the page shows every twentieth on its curves."""


def page_of(cluster: Cluster) -> str:
    """Where the cloud serves it, once it says so."""
    end = time.monotonic() + 120
    while (url := cluster.page_url()) is None:
        assert time.monotonic() < end, cluster.said()
        time.sleep(0.05)
    return url


def with_page(cluster: Cluster) -> Cluster:
    cluster.page = "127.0.0.1:0"
    return cluster


@pytest.fixture(scope="module")
def run() -> RunFile:
    return run_of(
        UNHURRIED,
        f"rounds={ENDLESS}",
        "evaluation.every=20",
        "deadlines.peer=1.0",
        "deadlines.device=2.0",
        "hrg.sharpness=1.0",
    )


@pytest.fixture(scope="module")
def cluster(run: RunFile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four zones that train for as long as anybody looks."""
    with cluster_of(run, tmp_path_factory.mktemp("live"), hosts=2, secure=False, start=False) as made:
        with_page(made).start()
        yield made


@pytest.fixture
def seen(browser: Browser, cluster: Cluster) -> Iterator[Tab]:
    opened = tab(browser, page_of(cluster))
    opened.open()
    yield opened
    assert not opened.outside
    opened.page.context.close()


@pytest.fixture
def page(seen: Tab) -> Page:
    return seen.page


def round_of(page: Page, zone: str = "ash") -> int:
    return int(
        (page.locator(f"tr[data-zone={zone}] td").nth(1).text_content() or "–").replace(",", "").replace("–", "-1")
    )


def until_round(page: Page, least: int, zone: str = "ash") -> None:
    page.wait_for_function(
        "([zone, least]) => Number(document.querySelector(`tr[data-zone=${zone}] td:nth-child(3)`)"
        ".textContent.replace(/\\D/g, '')) >= least",
        arg=[zone, least],
        timeout=2 * PATIENCE,
    )


def mark(page: Page) -> None:
    """Something that a reload would take away."""
    page.evaluate("window.marked = true")


def never_reloaded(page: Page) -> bool:
    return bool(page.evaluate("window.marked === true"))


def test_rounds_arrive_as_they_end(seen: Tab, page: Page) -> None:
    expect(page.locator("#link")).to_have_text("live")
    mark(page)
    until_round(page, 1)
    seen.drawn("curves")
    until_round(page, 20)
    first = round_of(page)
    points = "() => document.getElementById('curves').data.find((t) => t.name === 'all zones').x.length"
    before = page.evaluate(points)
    until_round(page, first + 10)
    page.wait_for_function(f"(before) => ({points})() > before", arg=before)
    page.locator("#map .arc").first.wait_for(state="attached")
    expect(page.locator("#figure-error-name")).to_have_text("RMSE, pooled")  # not known when the page was opened
    assert never_reloaded(page)
    page.screenshot(path=artefacts() / "live.png")
    seen.fine()


def test_an_earlier_round_stays_while_the_run_goes_on(seen: Tab, page: Page) -> None:
    until_round(page, 6)
    page.evaluate("location.hash = 'round=2'")
    expect(page.locator("#round-said")).to_have_text("round 2")
    wanted = sorted(
        (name, asked) for name, draw in answer(seen.url, "api/round/2").items() for asked in draw["attention"]
    )
    shown = """() => [...document.querySelectorAll("#map .arc:not(.left-out)")]
      .map((arc) => `${arc.parentNode.dataset.zone} ${arc.dataset.from}`).sort().join()"""
    page.wait_for_function(f"(wanted) => ({shown})() === wanted", arg=",".join(f"{a} {b}" for a, b in wanted))
    until_round(page, round_of(page) + 3)
    assert page.evaluate(shown) == ",".join(f"{a} {b}" for a, b in wanted)
    page.click("#latest")
    expect(page.locator("#latest")).to_have_attribute("aria-pressed", "true")
    seen.fine()


def test_the_page_comes_back_with_its_cloud(page: Page, cluster: Cluster) -> None:
    until_round(page, 1)
    mark(page)
    cluster.kill("cloud")
    expect(page.locator("#link")).to_have_text("reconnecting")
    before = round_of(page)  # what was known stays in sight
    assert before >= 1
    cluster.start_service("cloud")
    expect(page.locator("#link")).to_have_text("live")
    until_round(page, before + 5)
    assert never_reloaded(page)


def test_a_line_that_broke_is_taken_up_where_it_was(browser: Browser, cluster: Cluster) -> None:
    """What was missed is told, and the run, a megabyte at 115 zones, not fetched again."""
    with relayed(page_of(cluster)) as relay:
        opened = tab(browser, relay.url)
        page = opened.open()
        expect(page.locator("#link")).to_have_text("live")  # before, there is no stream that could break
        until_round(page, 1)
        last = round_of(page)
        relay.cut()
        expect(page.locator("#link")).to_have_text("reconnecting")
        expect(page.locator("#link")).to_have_text("live")
        until_round(page, last + 5)
        asked = [urlsplit(url).path for url in opened.asked if "/api/" in url]
        assert asked == ["/api/run", "/api/events", "/api/events"]
        page.context.close()


def test_a_link_with_the_token_may_be_clicked_on_another_site(browser: Browser, tmp_path: Path) -> None:
    """A browser keeps a Strict cookie back from where such a click leads, the redirect too."""
    with served("127.0.0.1:0", state=tmp_path, plain=True) as site:
        page = browser.new_page()
        page.set_content(f'<a href="{site.place.url}?token={kept_token(tmp_path)}">look</a>')
        with page.expect_navigation(url=site.place.url) as leading:
            page.click("a")
        assert leading.value.status == 200
        page.context.close()


def test_a_cloud_whose_page_has_lost_its_port_comes_back_all_the_same(tmp_path: Path) -> None:
    """Somebody took it while the cloud was away: the page is elsewhere then, and the run goes on."""
    short = run_of("rounds=1", "data.devices=1", 'zones.names=["ash", "birch"]')
    with cluster_of(short, tmp_path, secure=False, start=False) as made:
        with_page(made).start_service("cloud")
        before = page_of(made)
        made.kill("cloud")
        with socket.create_server(("127.0.0.1", int(before.rstrip("/").rpartition(":")[2]))):
            made.start_service("cloud")
            made.wait_for(["cloud"])
            end = time.monotonic() + 120
            while not (told := made.revive()):
                assert time.monotonic() < end
            assert told == [f"page: {page_of(made)}"]
            assert page_of(made) != before
            assert answer(page_of(made), "api/run")["run"]["name"] == short.name


def test_a_line_that_died_without_a_word_is_noticed(browser: Browser, cluster: Cluster) -> None:
    """A frozen cloud keeps its connections, as a tunnel does that has fallen: no error comes, only silence."""
    opened = tab(browser, page_of(cluster))
    opened.page.clock.install()
    page = opened.open()
    until_round(page, 1)
    expect(page.locator("#link")).to_have_text("live")
    with cluster.frozen("cloud"):
        page.clock.fast_forward("00:41")
        expect(page.locator("#link")).to_have_text("reconnecting")
        before = round_of(page)
    page.clock.fast_forward("00:20")  # the question that the frozen one did not answer is given up
    expect(page.locator("#link")).to_have_text("live")
    until_round(page, before + 1)
    page.context.close()


def test_a_peer_that_is_gone_is_left_out_by_name(seen: Tab, page: Page, cluster: Cluster) -> None:
    until_round(page, 1)
    cluster.kill("edge-elm")
    try:
        out = page.locator("#map .arc.left-out[data-from='3']")
        out.first.wait_for(state="attached", timeout=2 * PATIENCE)
        expect(page.locator("#troubles")).to_contain_text("left out elm in its last round: ")
        expect(page.locator("#figure-plan")).to_contain_text("left out")
        page.screenshot(path=artefacts() / "live-left-out.png")
    finally:
        cluster.start_service("edge-elm")
    expect(page.locator("#troubles")).not_to_contain_text("left out elm in its last round")
    expect(page.locator("#troubles")).to_contain_text(
        re.compile(r"left out elm in [\d,]+ rounds?, last in round [\d,]+: ")
    )
    seen.fine()


def test_rounds_a_minute_and_bytes_are_counted(page: Page) -> None:
    until_round(page, 3)
    expect(page.locator("#figure-speed .value")).to_have_text(re.compile(r"^[1-9][\d.]*$"))
    expect(page.locator("#figure-speed .note")).to_have_text(re.compile(r"^[1-9][\d.]* [kMG]?B sent$"))
    page.locator("tr[data-zone=ash] th").click()
    sent = page.locator("#zone-facts div", has_text="bytes sent").locator("dd")
    expect(sent).to_have_text(re.compile(r"^[1-9][\d.]* [kMG]?B$"))


def test_devices_that_are_gone_are_named(seen: Tab, page: Page, cluster: Cluster) -> None:
    until_round(page, 1)
    cluster.kill("devices-1")
    try:
        expect(page.locator("#figure-devices .note")).not_to_have_text("0 late · 0 gone")
        expect(
            page.locator("#troubles li", has_text=re.compile(r"(is|are) gone: its stream has ended")).first
        ).to_be_visible()
        page.screenshot(path=artefacts() / "live-devices-gone.png")
    finally:
        cluster.start_service("devices-1")
    expect(page.locator("#figure-devices .note")).to_have_text("0 late · 0 gone")
    seen.fine()


def test_a_run_is_followed_from_its_first_zone_to_its_end(browser: Browser, tmp_path: Path) -> None:
    short = run_of("rounds=20", "data.devices=1", 'zones.names=["ash", "birch"]')
    with cluster_of(short, tmp_path, secure=False, start=False) as made:
        with_page(made).start_service("cloud")
        seen = tab(browser, page_of(made))
        page = seen.open()
        expect(page.locator("#tree-none")).to_be_visible()
        expect(page.locator("#link")).to_have_text("live")
        mark(page)
        made.start_edges("ash", "birch")
        made.start_service("devices-0")
        expect(page.locator("#tree .leaf")).to_have_count(2)  # the plan has come
        expect(page.locator("#events")).to_contain_text("zone ash enrolled")
        expect(page.locator("#link")).to_have_text("finished")
        expect(page.locator("#figure-round .value")).to_have_text("20")
        expect(page.locator("#plans")).to_contain_text("plan 1 over 2 zones")
        assert never_reloaded(page)
        seen.fine()
        page.context.close()
