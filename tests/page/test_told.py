"""What the page makes of runs in which not all is well, told by hand: zones that are away, rounds that nobody knows."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from rich.console import Console

from console.afterwards import still_shown
from tests.page.browser import PHONE, Tab, artefacts, tab
from tests.page.told import ROUNDS, ZONES, Hand, told


@contextmanager
def looked_at(browser: Browser, fragment: str = "", **status: Mapping[str, Any]) -> Iterator[tuple[Page, Hand, Tab]]:
    """The page of zones that stand so."""
    with told(**status) as hand:
        seen = tab(browser, hand.url)
        page = seen.open(fragment)
        expect(page.locator("#link")).to_have_text("live")
        try:
            yield page, hand, seen
        finally:
            page.context.close()


def drawn_until(page: Page, chart: str, rounds: list[int]) -> None:
    page.wait_for_function(
        "([id, rounds]) => document.getElementById(id).data?.at(-1).x.join() === rounds",
        arg=[chart, ",".join(map(str, rounds))],
    )


def test_nobody_waits_for_a_zone_that_is_away(browser: Browser) -> None:
    with looked_at(browser, elm={"state": "expected", "round": 0, "leased": False}) as (page, hand, seen):
        seen.whole()
        for chart in ("drawn", "homophily"):
            drawn_until(page, chart, [1, 2])
        assert page.locator("#progress").evaluate("(bar) => bar.value") == pytest.approx(2 / ROUNDS)
        expect(page.locator("#figure-round .value")).to_have_text("2")
        hand.zone(2, state="gathering")  # has joined just now
        for state in ("left", "lost", "diverged"):
            hand.zone(2, state="training", round=1)
            drawn_until(page, "drawn", [1])
            expect(page.locator("#figure-round .value")).to_have_text("1–2")
            hand.zone(2, state=state)  # nothing but its status is new
            drawn_until(page, "drawn", [1, 2])
            expect(page.locator("#figure-round .value")).to_have_text("1–2" if state == "lost" else "2")
        seen.fine()


OVER = """() => {
  const words = [...document.querySelectorAll(".figure-tile h2, .figure-tile .value")];
  const parts = [...document.querySelectorAll(".map-foot > *, .rounds > *")];
  const edge = document.querySelector(".map-foot").getBoundingClientRect().right;
  return [...words.filter((node) => node.scrollWidth > node.clientWidth),
    ...parts.filter((node) => node.getBoundingClientRect().right > edge)].map((node) => node.textContent);
}"""


def test_a_phone_has_room_for_rounds_of_five_digits(browser: Browser) -> None:
    """And nothing reaches out of its card."""
    with told(ash={"round": 10399}, birch={"round": 10446}, elm={"round": 10446}) as hand:
        hand.source.document["run"]["rounds"] = 20_000
        hand.source.document["status"]["rounds_per_minute"] = 12.3
        seen = tab(browser, hand.url, size=PHONE, touch=True)
        page = seen.open()
        expect(page.locator("#figure-round .value")).to_have_text("10399–10446")
        expect(page.locator("#figure-speed-name")).to_have_text("Rounds/min")
        expect(page.locator("#round-said")).to_have_text("round 10399–10446")
        assert page.evaluate(OVER) == []
        page.screenshot(path=artefacts() / "phone-many-rounds.png")
        page.context.close()


CORNER = "(card) => [card.getBoundingClientRect().x, card.getBoundingClientRect().y]"


def test_the_card_below_a_pointer_that_rests_says_what_is_new(browser: Browser) -> None:
    with looked_at(browser) as (page, hand, seen):
        page.locator("#map .zone[data-zone=ash]").hover()
        card = page.locator("#tooltip")
        expect(card).to_contain_text(f"round2 of {ROUNDS}")
        corner = card.evaluate(CORNER)
        hand.zone(0, round=3, attention={"2": 1.0})
        expect(card).to_contain_text(f"round3 of {ROUNDS}")
        expect(card).to_contain_text("drew elm 1.0")
        assert card.evaluate(CORNER) == corner
        page.mouse.move(1, 1)
        expect(card).to_be_hidden()
        hand.zone(0, round=4)
        expect(page.locator("tr[data-zone=ash] td").nth(1)).to_have_text("4")
        expect(card).to_be_hidden()  # it does not come back by itself
        seen.fine()


def test_of_zones_that_are_all_away_the_last_round_is_shown(browser: Browser) -> None:
    away = {"state": "left"}
    with looked_at(browser, ash={**away, "round": 1}, birch=away, elm=away) as (page, _, _seen):
        expect(page.locator("#figure-round .value")).to_have_text("2")


def test_a_run_is_not_done_where_a_lost_zone_stands_and_the_zone_is_counted_once(browser: Browser) -> None:
    done, lost = {"state": "done", "round": ROUNDS}, {"state": "lost", "round": 5, "leased": False}
    with looked_at(browser, ash=done, birch=done, elm=lost) as (page, hand, seen):
        expect(page.locator("#figure-round .value")).to_have_text(f"5–{ROUNDS}")
        expect(page.locator("#round-said")).to_have_text(f"round 5–{ROUNDS}")
        assert page.locator("#progress").evaluate("(bar) => bar.value") == pytest.approx(5 / ROUNDS)
        expect(page.locator("#states")).to_have_text("3 zones: 2 done · 1 lost")
        hand.zone(2, state="training")  # a cloud that has come back, and has not heard of it
        expect(page.locator("#states")).to_have_text("3 zones: 2 done · 1 training · 1 not heard of")
        hand.zone(2, state="left")
        expect(page.locator("#figure-round .value")).to_have_text(f"{ROUNDS}")
        expect(page.locator("#round-said")).to_have_text(f"round {ROUNDS}")
        seen.fine()


def test_rows_that_another_plan_has_changed_count_once(browser: Browser) -> None:
    with looked_at(browser) as (page, hand, seen):
        seen.whole()
        drawn_until(page, "homophily", [1, 2])
        hand.zone(0, {"ash": {"evaluations": [], "rounds": [[1, 1, 2.0], [2, 1, None], [3, 1, 1.0]]}}, round=3)
        page.wait_for_function("() => document.getElementById('homophily').data.at(-1).y.join() === '1,0.5'")
        page.wait_for_function("() => document.getElementById('drawn').data.at(-1).y.join() === '1,1'")
        seen.fine()


def test_the_error_is_that_of_the_model_kept_though_its_row_is_not_there(browser: Browser) -> None:
    best = {"round": 2, "validation": 1.0, "test": 1.25}
    with looked_at(browser, "#zone=ash", ash={"best": best}) as (page, _, seen):
        expect(page.locator("tr[data-zone=ash] td").nth(3)).to_have_text("1.250")
        expect(page.locator("#zone-facts")).to_contain_text("1.250")
        assert "1.250" in (page.locator("#map .zone[data-zone=ash]").get_attribute("aria-label") or "")
        assert page.locator("#zone-facts div", has_text="model kept").locator("dd").inner_text() == "of round 2"
        assert page.locator("#zone-facts div", has_text="gain over before").locator("dd").inner_text() == "+75.0 %"
        page.locator("#round").fill("1")  # of then: by the rows
        expect(page.locator("tr[data-zone=ash] td").nth(3)).to_have_text("5.000")
        seen.problems.clear()  # nobody was told what to say of round 1


def test_a_zone_that_left_has_the_last_round_that_is_known(browser: Browser) -> None:
    out = {"left_out": {"1": "no answer"}, "left_out_so_far": {"1": {"rounds": 1, "last": 1, "why": "no answer"}}}
    with looked_at(browser, ash={"round": 7}, elm={"state": "left", "round": 1, **out}) as (page, hand, seen):
        expect(page.locator("tr[data-zone=elm] td").nth(0)).to_have_text("left")
        expect(page.locator("tr[data-zone=elm] td").nth(1)).to_have_text("1")
        arcs = page.locator("#map .draw[data-zone=elm] .arc")
        expect(page.locator("#map .draw[data-zone=ash] .arc")).to_have_count(1)
        expect(arcs).to_have_count(0)  # it draws nobody any more
        expect(page.locator("#figure-plan .note")).to_have_text("no peer left out")
        expect(page.locator("#troubles li")).to_have_text("elm left out birch in 1 round, last in round 1: no answer")
        page.locator("tr[data-zone=elm] th").click()
        expect(page.locator("#zone-draw-title")).to_have_text("Drew 2 zones in round 1, by attention")
        expect(arcs).to_have_count(2)  # that was its last draw
        expect(page.locator("#zone-facts")).to_contain_text("stateleft")
        expect(page.locator("#zone-facts")).to_contain_text(f"round1 of {ROUNDS}")
        expect(page.locator("#zone-words")).to_contain_text("Left the run after round 1.")
        hand.source.rounds[3] = {"ash": A_DRAW, "birch": A_DRAW}
        page.evaluate("location.hash = 'zone=elm&round=3'")
        expect(page.locator("#zone-draw-title")).to_have_text("Had left before round 3")
        page.evaluate("location.hash = 'zone=elm'")
        hand.zone(2, round=None, attention={}, left_out={})  # as a folder of before has it
        expect(page.locator("#zone-words")).to_contain_text("Left the run; after which round is not known.")
        expect(page.locator("tr[data-zone=elm] td").nth(1)).to_have_text("–")
        seen.fine()


A_DRAW = {"attention": {"2": 1.0}, "left_out": {}}
NO_DRAW: dict[str, Any] = {"attention": {}, "left_out": {}}


def test_a_round_that_could_not_be_fetched_is_not_known_and_asked_for_again(browser: Browser) -> None:
    with looked_at(browser, "#zone=ash&round=1") as (page, hand, _):
        title = page.locator("#zone-draw-title")
        expect(title).to_have_text("Whom it drew in round 1 is not known")
        expect(page.locator("#zone-words")).to_contain_text("Who asked it is not known.")
        hand.source.rounds[1] = {"ash": NO_DRAW, "birch": A_DRAW, "elm": A_DRAW}
        expect(title).to_have_text("Drew none in round 1")
        expect(page.locator("#zone-words")).to_contain_text("Asked by nobody this round.")


def test_a_round_is_asked_for_again_as_zones_reach_it(browser: Browser) -> None:
    with looked_at(browser, "#zone=elm&round=2", elm={"round": 1}) as (page, hand, seen):
        hand.source.rounds[2] = {"ash": A_DRAW, "birch": A_DRAW}
        title = page.locator("#zone-draw-title")
        expect(title).to_have_text("Has not reached round 2")
        expect(page.locator("#zone-words")).to_contain_text("Asked by ash, birch.")
        hand.source.rounds[2]["elm"] = {"attention": {"0": 1.0}, "left_out": {}}
        hand.zone(2, round=2)
        expect(title).to_have_text("Drew 1 zone in round 2, by attention")
        asked = len(hand.source.asked)
        hand.zone(2, round=3)  # all have it: it is not asked for any more
        expect(page.locator("tr[data-zone=elm] td").nth(1)).to_have_text("3")
        page.wait_for_timeout(1500)
        assert len(hand.source.asked) == asked
        seen.problems.clear()  # it may have asked before it was told what to say


def test_another_rounds_draws_never_stand_under_a_rounds_title(browser: Browser) -> None:
    with looked_at(browser, "#zone=ash&round=1") as (page, hand, seen):
        hand.source.rounds[1] = dict.fromkeys(ZONES, A_DRAW)
        title = page.locator("#zone-draw-title")
        expect(title).to_have_text("Drew 1 zone in round 1, by attention")
        page.route("**/api/round/2", lambda _: None)  # an answer that does not come
        page.evaluate("location.hash = 'zone=ash&round=2'")
        expect(title).to_have_text("Whom it drew in round 2 is not known")
        expect(page.locator("#map .arc")).to_have_count(0)
        page.evaluate("location.hash = 'zone=ash&round=1'")
        expect(title).to_have_text("Drew 1 zone in round 1, by attention")
        seen.problems.clear()


def test_peers_left_out_are_told_after_they_are_back(browser: Browser) -> None:
    so_far = {"2": {"rounds": 7, "last": 2, "why": "no answer"}}
    with looked_at(browser, ash={"left_out": {"2": "no answer"}, "left_out_so_far": so_far}) as (page, hand, seen):
        line = page.locator("#troubles li")
        expect(line).to_have_text("ash left out elm in its last round: no answer (in 7 rounds so far)")
        hand.zone(0, round=3, left_out={})
        expect(line).to_have_text("ash left out elm in 7 rounds, last in round 2: no answer")
        expect(page.locator("#figure-plan")).not_to_contain_text("left out elm")
        seen.fine()


def test_who_holds_others_up_is_named_until_it_is_over(browser: Browser) -> None:
    with looked_at(browser) as (page, hand, seen):
        line = page.locator("#troubles li")
        hand.head(waits=[{"zone": "elm", "text": "2 zones wait for it, the longest 5 s"}])
        expect(line).to_have_text("elm 2 zones wait for it, the longest 5 s")
        hand.head(waits=[])
        expect(line).to_have_text("Nothing is late, gone, left out or refused.")
        seen.fine()


def test_devices_of_a_zone_that_is_not_heard_of_are_not_said_to_attend(browser: Browser) -> None:
    with looked_at(browser) as (page, hand, seen):
        figure = page.locator("#figure-devices")
        expect(figure.locator(".value")).to_have_text("6 of 6")
        for state in ("not answering", "lost"):
            hand.zone(1, state=state)
            expect(figure.locator(".value")).to_have_text("4 of 6")
            expect(figure.locator(".note")).to_have_text("0 late · 0 gone · 2 unheard of")
            expect(page.locator("tr[data-zone=birch] td.troubled")).to_have_text([state, "? of 2"])
            expect(page.locator("#map .silent")).to_have_attribute("data-zone", "birch")
            told = page.locator("#troubles li")
            expect(told).to_contain_text(f"birch {state}: ")
            expect(told).to_contain_text("On its host, sgfusion doctor says what to do")
        hand.zone(1, state="training")
        expect(page.locator("#map .silent")).to_have_count(0)
        expect(figure.locator(".value")).to_have_text("6 of 6")
        seen.fine()


def test_a_device_that_is_late_is_named(browser: Browser) -> None:
    with looked_at(browser, "#zone=birch") as (page, hand, seen):
        expect(page.locator("#figure-devices .note")).to_have_text("0 late · 0 gone")
        hand.zone(1, late={"u1": "has not answered for 3 s"})
        expect(page.locator("#figure-devices .note")).to_have_text("1 late · 0 gone")
        expect(page.locator("#troubles li")).to_have_text("birch u1 is late: has not answered for 3 s")
        expect(page.locator("#zone-words")).to_contain_text("u1 is late: has not answered for 3 s")
        expect(page.locator("tr[data-zone=birch] td.troubled")).to_have_text("2 of 2, 1 late")
        hand.zone(1, late={})
        expect(page.locator("#figure-devices .note")).to_have_text("0 late · 0 gone")
        seen.fine()


def test_rounds_a_minute_and_bytes(browser: Browser) -> None:
    with looked_at(browser, "#zone=birch") as (page, hand, seen):
        expect(page.locator("#figure-speed .value")).to_have_text("–")
        expect(page.locator("#figure-speed .note")).to_have_text("3.00 kB sent")
        hand.head(rounds_per_minute=12.5, bytes=4_560_000)
        expect(page.locator("#figure-speed .value")).to_have_text("12.5")
        expect(page.locator("#figure-speed .note")).to_have_text("4.56 MB sent")
        sent = page.locator("#zone-facts div", has_text="bytes sent").locator("dd")
        expect(sent).to_have_text("1.00 kB")
        hand.zone(1, bytes=2345)
        expect(sent).to_have_text(re.compile(r"^2\.3[45] kB$"))
        seen.fine()


def test_a_link_that_says_nonsense_shows_what_there_is(browser: Browser) -> None:
    with looked_at(browser, "#colour=toString&round=999999") as (page, _, seen):
        expect(page.locator("#colour-error")).to_be_checked()
        expect(page.locator("#round-said")).to_have_text(f"round {ROUNDS}")
        assert page.evaluate("location.hash") == f"#round={ROUNDS}"
        page.evaluate("location.hash = 'colour=constructor&round=1e9'")
        page.wait_for_function(f"() => location.hash === '#round={ROUNDS}'")
        seen.problems.clear()  # of that round nobody was told what to say


def test_a_panel_that_fails_takes_no_other_with_it(browser: Browser) -> None:
    with told() as hand:
        hand.source.document["plans"] = [None]  # the list of plans cannot be drawn
        seen = tab(browser, hand.url)
        page = seen.open()
        expect(page.locator("#zones-body tr")).to_have_count(3)
        assert any("TypeError" in problem for problem in seen.problems)
        page.context.close()


def test_a_run_whose_cluster_has_ended_is_shown_from_its_results(browser: Browser, runs: Path, tmp_path: Path) -> None:
    """Who has the page open does nothing, and what it then has needs no server."""
    folder = shutil.copytree(runs / "four", tmp_path / "results")
    summary = json.loads((folder / "summary.json").read_bytes())
    for found in (summary["pooled"], *summary["zones"].values()):
        del found["alone"]
    (folder / "summary.json").write_text(json.dumps(summary))
    with looked_at(browser) as (page, hand, _):
        page.evaluate("window.mine = true")
        place = urlsplit(hand.url).netloc
        hand.stop()
        expect(page.locator("#link")).to_have_text("reconnecting")
        with still_shown(folder, place, Console(), state=tmp_path, certs=None) as url:
            assert url == hand.url
            expect(page.locator("#link")).to_have_text("finished")
            expect(page.locator("#run-name")).to_have_text("four")
            expect(page.locator("#figure-round .value")).to_have_text("8")
            expect(page.locator("#figure-alone .note")).to_have_text("zones alone: being trained")
        assert page.evaluate("window.mine"), "it was not loaded anew"
        expect(page.locator("#link")).to_have_text("finished, not connected")
