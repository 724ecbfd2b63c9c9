"""Links between pages lead to headings that there are, and every page of docs is in the index."""

import re
from pathlib import Path

import pytest

from tests.pages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("experiments/*.md"), *ROOT.glob("docs/**/*.md")])


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, words and hyphens."""
    text = re.sub(r"^( *)```.*?^ *```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#{1,6} (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_into_a_page_finds_its_heading(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text("utf-8")):
        if not target.startswith("https://"):
            other = (page.parent / target).resolve() if target else page
            assert anchor in anchors(other), f"{target}#{anchor}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index, page.name
