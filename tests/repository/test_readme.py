"""What README, CONTRIBUTING and the docs tell people to type is there, and runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def targets() -> set[str]:
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607
    return set(re.findall(r"make (\w+)", listed))


def test_make_help_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert targets() == set(phony[1].split())
    assert {"install", "check", "test", "demo", "proto", "bench"} <= targets()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```|`(make [a-z]+)`", page.read_text("utf-8"), re.DOTALL)
    named = {
        target for block in blocks for target in re.findall(r"^make (\w+)", "\n".join(block).strip(), re.MULTILINE)
    }
    assert named <= targets()


def test_the_readme_example_runs() -> None:
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert example is not None
    done = subprocess.run([sys.executable, "-c", example[1]], cwd=ROOT, capture_output=True, text=True, check=True)
    draw, fused = done.stdout.splitlines()
    assert re.fullmatch(r"\((1, 2|1,|2,)?\)", draw)
    assert re.fullmatch(r"\[1\.\d+ 0\.\d+\]", fused)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target
