"""What README, CONTRIBUTING and the docs tell people to type is there, and runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from sgfusion.runfile import RunFile, parse_run_file

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


def run_examples(page: Path) -> str:
    examples = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
    done = subprocess.run([sys.executable, "-c", examples], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_kernels_page_trains_a_zone() -> None:
    *_, weights = run_examples(ROOT / "docs" / "kernel.md").splitlines()
    near = [float(number) for number in weights.strip("[]").split()]
    assert near == pytest.approx([1.0, 2.0], abs=0.2)  # its own target, and a little of its like's


def test_the_run_files_page_shows_places_and_prints_those_of_cells_without_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "run-file.md").read_text("utf-8")
    (table,) = re.findall(r"^```toml\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    (example,) = re.findall(r"^```python\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    base = 'name = "x"\nseed = 1\nrounds = 1\ntask.name = "linear"\n'
    base += 'data = {source = "table", path = "elsewhere.csv", device = "d", label = "l", features = ["f"]}\n'
    places = parse_run_file(base + table).zones.places
    assert places is not None
    assert {zone: [len(ring) for ring in rings] for zone, rings in places.items()} == {"lublin": [1], "hel": [3, 1]}

    monkeypatch.chdir(tmp_path)
    cells = ["851f9943fffffff", "851f994bfffffff"]
    run = base + f'[zones]\nby = "h3"\nnames = {json.dumps(cells)}\n'
    Path("run.toml").write_text(run, "utf-8")
    exec(compile(example, "run-file.md", "exec"), {})  # noqa: S102 (our own page)
    printed = parse_run_file(run + capsys.readouterr().out).zones.places
    assert printed is not None
    assert list(printed) == cells
    assert printed[cells[0]][0][0] == (45.278, 9.0749)


def test_the_run_files_page_lists_every_key_with_its_default() -> None:
    listed = re.findall(
        r"^\| `([a-z_.0-9]+)` \|\s*([^|]*?)\s*\|", (ROOT / "docs" / "run-file.md").read_text(), re.MULTILINE
    )
    base = {"name": "x", "seed": 1, "rounds": 1, "task": {"name": "x"}, "data": {"source": "x"}}
    run = RunFile.model_validate(base)
    expected = []
    for section, field in RunFile.model_fields.items():
        value = getattr(run, section)
        if not isinstance(value, BaseModel):
            expected.append((section, ""))
            continue
        for name, inner in type(value).model_fields.items():
            default = getattr(value, name)
            written = "" if default is None or inner.is_required() else f"`{json.dumps(default)}`"
            expected.append((f"{section}.{inner.alias or name}", written))
        assert field.is_required() or section not in base
    assert [key for key, _ in listed] == [key for key, _ in expected]
    for (key, said), (_, default) in zip(listed, expected, strict=True):
        assert said == default or (not default and "`" not in said), key


def test_the_readme_is_a_screen_and_a_half_with_a_picture_a_table_and_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    (width,) = re.findall(r'<img src="docs/images/page\.png" align="right" width="(\d+)"', text)
    assert int(width) <= 400, "beside the words and not above them"
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    lines = sum(max(1, -(-len(line) // 100)) for part in paragraphs for line in part.strip().splitlines())
    assert lines + len(paragraphs) <= 85, "lines of a hundred letters, and the space between paragraphs"
    assert "make demo " in text.split("```sh")[1]
    assert "make test " in text.split("```sh")[1]
    assert re.search(r"^\| \| SGFusion \|.* FedAvg \|", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)|(?:src|href)=\"([^\"#]+)\"", page.read_text("utf-8")):
        path = "".join(target)
        if not path.startswith("https://"):
            assert (page.parent / path).exists(), path
