"""Zones and arcs as they stand on the map, and as the page's server tells them."""

import math
import re
from typing import Any

from playwright.sync_api import Locator, Page


def zone(page: Page, name: str) -> Locator:
    return page.locator(f"#map .zone[data-zone={name}]")


def middle(page: Page, name: str) -> tuple[float, float]:
    box = zone(page, name).locator(".shape").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def arcs(page: Page) -> dict[tuple[str, int], float]:
    """The width of every arc where it ends, by the zone that drew and the number of the one asked."""
    found: list[list[str]] = page.eval_on_selector_all(
        "#map .arc:not(.left-out)",
        "(all) => all.map((a) => [a.parentNode.dataset.zone, a.dataset.from, a.getAttribute('d')])",
    )
    widths = {}
    for name, asked, path in found:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
        widths[name, int(asked)] = math.dist(numbers[4:6], numbers[6:8])
    return widths


def drawn(draws: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Attention as the server says, in the shape of `arcs`."""
    return {(name, int(asked)): weight for name, draw in draws.items() for asked, weight in draw["attention"].items()}


def last_draws(run: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each for each in run["status"]["zones"]}


def until_arcs(page: Page, wanted: dict[tuple[str, int], float]) -> None:
    keys = sorted(f"{name} {asked}" for name, asked in wanted)
    shown = "[...document.querySelectorAll('#map .arc:not(.left-out)')]"
    named = "(arc) => `${arc.parentNode.dataset.zone} ${arc.dataset.from}`"
    page.wait_for_function(f"(keys) => {shown}.map({named}).sort().join() === keys", arg=",".join(keys))
