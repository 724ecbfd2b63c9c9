"""The page of a run that is over: what it says of zones that train alone, of a server that has ended, of events."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from rich.console import Console

from console.afterwards import still_shown
from tests.page.browser import Tab, artefacts, tab
from tests.page.relay import relayed
from tests.page.told import told

CLOSED = "finished, not connected"
MISSING = "#colours-missing"


def changed(folder: Path, change: Callable[[dict[str, Any]], None], name: str = "summary.json") -> None:
    document = json.loads((folder / name).read_bytes())
    change(document)
    (folder / name).write_text(json.dumps(document))


def without_alone(summary: dict[str, Any]) -> None:
    for found in (summary["pooled"], *summary["zones"].values()):
        del found["alone"]


@pytest.fixture
def results(runs: Path, tmp_path: Path) -> Path:
    """Of four zones that were not trained alone yet."""
    folder = shutil.copytree(runs / "four", tmp_path / "results")
    changed(folder, without_alone)
    return folder


@contextmanager
def opened(browser: Browser, url: str | None) -> Iterator[tuple[Page, Tab]]:
    seen = tab(browser, str(url))
    page = seen.open()
    try:
        yield page, seen
    finally:
        page.context.close()


def alone(page: Page) -> Any:
    """What is said on top of zones that trained alone."""
    return page.locator("#figure-alone .note")


def test_who_has_it_open_sees_what_zones_come_to_alone(
    browser: Browser, runs: Path, results: Path, tmp_path: Path
) -> None:
    """Then nobody serves the page any more, and it says that too."""
    with still_shown(results, "127.0.0.1:0", Console(), state=tmp_path, certs=None) as url:
        seen = tab(browser, str(url))
        page = seen.open("#zone=birch")
        expect(page.locator("#link")).to_have_text("finished")
        expect(alone(page)).to_have_text("zones alone: being trained")
        expect(page.locator(MISSING)).to_have_text(
            "Not known yet: zones are being trained alone. It is shown here when that is done."
        )
        seen.drawn("curves")  # what is not drawn before the end has nobody to be fetched from
        seen.fine()
        shutil.copy(runs / "four" / "summary.json", results / "summary.json")
    expect(alone(page)).to_contain_text("better in")
    expect(page.locator(MISSING)).to_have_text("")
    expect(page.locator("#colour-alone")).to_be_enabled()
    expect(page.locator("#link")).to_have_text(CLOSED)
    page.locator("label[for=colour-alone]").click()
    birch = json.loads((runs / "four" / "summary.json").read_bytes())["zones"]["birch"]
    gain = 100 * (birch["alone"] - birch["test"]) / birch["alone"]
    expect(page.locator("#zone-facts div", has_text="gain over alone")).to_contain_text(f"{abs(gain):.3g}")
    page.screenshot(path=artefacts() / "closed.png")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=artefacts() / "closed-phone.png")
    page.context.close()


def test_zones_that_are_not_trained_alone_after_all(browser: Browser, results: Path, tmp_path: Path) -> None:
    """As by Ctrl-C; and once more, by the same command."""
    with still_shown(results, "127.0.0.1:0", Console(), state=tmp_path, certs=None) as url:
        place = urlsplit(str(url)).netloc
        seen = tab(browser, str(url))
        page = seen.open()
        expect(alone(page)).to_have_text("zones alone: being trained")
        expect(page.locator("#link")).to_have_text("finished")
    expect(page.locator("#link")).to_have_text(CLOSED)
    expect(alone(page)).to_have_text("zones alone: unknown")
    with still_shown(results, place, Console(), state=tmp_path, certs=None):
        expect(alone(page)).to_have_text("zones alone: being trained")
        expect(page.locator("#link")).to_have_text("finished")
    page.context.close()


def test_a_command_that_is_killed_says_no_last_word(browser: Browser, results: Path, tmp_path: Path) -> None:
    with (
        still_shown(results, "127.0.0.1:0", Console(), state=tmp_path, certs=None) as url,
        relayed(str(url)) as relay,
        opened(browser, relay.url) as (page, _),
    ):
        expect(page.locator("#link")).to_have_text("finished")
        relay.close()
        expect(page.locator("#link")).to_have_text(CLOSED)
        expect(alone(page)).to_have_text("zones alone: unknown")
        expect(page.locator(MISSING)).to_contain_text("zones were being trained alone when this page was closed")


def test_a_run_without_zones_alone_has_finished_when_its_cloud_ends(browser: Browser) -> None:
    """As by `--no-alone`. One that has not finished waits for its cloud: tests/page/test_told.py."""
    with told() as hand, opened(browser, hand.url) as (page, _):
        expect(page.locator("#link")).to_have_text("live")
        hand.head(finished=True)
        expect(page.locator("#link")).to_have_text("finished")
        hand.stop()
        expect(page.locator("#link")).to_have_text(CLOSED)


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ("sgfusion simulate run.toml --method sgfusion", "None: a simulation has no events."),
        ("sgfusion up run.toml", "None were kept with these results."),
        (None, "None were kept with these results."),  # of an early version, which did not say how it came about
    ],
    ids=["simulation", "cluster", "old"],
)
def test_results_without_events(browser: Browser, results: Path, tmp_path: Path, again: str | None, said: str) -> None:
    changed(results, lambda summary: summary.update(again=again) if again else summary.pop("again"))
    changed(results, lambda known: known.update(events=[]), "zones.json")
    with (
        still_shown(results, "127.0.0.1:0", Console(), state=tmp_path, certs=None) as url,
        opened(browser, url) as (page, _),
    ):
        expect(page.locator("#events li")).to_have_text([said])
