"""The pages on the simulator, on data and on extending: what they tell people to write and to type runs as it stands.

A block below a paragraph that ends with a file's name is that file; `sh` blocks are typed in the folder of those files.
Commands run in this process, which has torch already, and on one core; what figures show has tests of its own, so they
are not painted. Tables of keys, methods and files are compared with the code.
"""

import importlib
import importlib.util
import json
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from pydantic import BaseModel

from console.main import app
from device.samples import Samples, split
from device.sources.source import SOURCES
from device.tasks.task import TASKS
from sgfusion.runfile import load_run_file
from simulator.methods.method import ZoneMethod
from simulator.methods.registry import METHODS
from simulator.suite import SuiteFile
from tests.console.commands import sgfusion
from tests.pages import types

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("simulator", "data", "extending")}
SPLITS = ["train", "validation", "test"]
Follow = Callable[[str], dict[str, str]]


@dataclass(frozen=True)
class Block:
    """A fenced block, and the file that the paragraph above it names."""

    language: str
    text: str
    file: str | None


def blocks(page: str) -> Iterator[Block]:
    parts = re.split(r"^```", page, flags=re.MULTILINE)
    for above, block in zip(parts[::2], parts[1::2], strict=False):
        language, _, text = block.partition("\n")
        paragraph = above.strip().rpartition("\n\n")[2]
        names = re.findall(r"`([\w./-]+\.(?:py|toml))`", paragraph) if paragraph.endswith(":") else []
        yield Block(language, text, names[-1] if names else None)


def section(page: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    level = heading.partition(" ")[0]
    _, found, rest = page.partition(f"\n{heading}\n")
    assert found, heading
    return re.split(rf"^#{{2,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def tables(text: str) -> list[list[list[str]]]:
    """The rows of each table, without its head."""
    found = re.findall(r"^\|.*\n\|[-| ]+\|\n((?:\|.*\n)*)", text, re.MULTILINE)
    return [[[cell.strip() for cell in row[1:-1].split("|")] for row in body.splitlines()] for body in found]


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Follow]:
    """Does all that a page says, block by block; gives what each command printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("console.experiment.cores", lambda: 1)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _figure, file, **_: file.write(b"drawn"))
    before = set(sys.modules)

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if path.parent.name == "methods":
            _add_method(path, monkeypatch)

    def type_in(line: str) -> str:
        program, *arguments = shlex.split(line, comments=True)
        if program == "python":
            runpy.run_path(arguments[0], run_name="__main__")
            return capsys.readouterr().out
        assert program == "sgfusion", line
        done = sgfusion(capsys, *arguments)
        assert done.code == 0, f"{line}\n{done.out}{done.error}"
        return done.out

    def do(page: str) -> dict[str, str]:
        printed: dict[str, str] = {}
        for block in blocks(PAGES[page]):
            if block.language == "sh":
                printed |= {line: type_in(line) for line in block.text.splitlines()}
            else:
                assert block.file is not None, f"a block that is neither typed nor a file:\n{block.text}"
                write(block.file, block.text)
        return printed

    yield do
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def _add_method(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location(f"simulator.methods.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(METHODS, module.METHOD.name, module.METHOD)


def summary(folder: str) -> Any:
    found: Any = json.loads((Path("results") / folder / "summary.json").read_text())
    return found


@types("docs/simulator.md")
def test_the_simulators_page_runs_and_writes_what_it_lists(follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    printed = follow("simulator")
    of_run, of_suite, of_tables, of_figures = (
        [row[0].strip("`") for row in table]
        for heading in ("## One run", "### What it writes")
        for table in tables(section(PAGES["simulator"], heading))
    )
    assert _files("tiny") == _named(of_run, zone=("north", "coast", "hills", "south")) | {".lock"}
    assert {path for path in _files("tiny-fedavg") if path.startswith("models/")} == {"models/global.safetensors"}
    first, part = [text for line, text in printed.items() if "experiment" in line]
    assert "training: 100 of 100 jobs" in first
    assert "training: 8 jobs, 8 finished earlier" in part
    report = Path("results/tiny-suite/report.html").read_text("utf-8")
    assert "Made by: sgfusion experiment suite.toml --seeds 1 --entries sgfusion,random --data alike" in report

    # The report is of the part that was asked for last; that of the whole suite comes back, and no job is done again.
    assert not (Path("results/tiny-suite/tables/main-unlike.csv")).exists()
    assert sgfusion(capsys, "experiment", "suite.toml").code == 0
    kinds = {"data": ("alike", "unlike"), "entry": ("sgfusion", "chi-sgfusion")}
    files = _files("tiny-suite")
    assert {path for path in files if "/" not in path} == {name for name in of_suite if "/" not in name} | {".lock"}
    for folder, listed, ends in (("tables", of_tables, (".csv", ".md")), ("figures", of_figures, (".png", ".svg"))):
        expected = {f"{folder}/{name}{end}" for name in _named(listed, **kinds) for end in ends} - {"tables/zones.md"}
        assert {path for path in files if path.startswith(f"{folder}/")} == expected
    for name in _named(of_suite, data=kinds["data"], entry=("fedavg", "top-1"), seed=("1", "2")):
        assert (Path("results/tiny-suite") / name).exists()


def _named(patterns: Sequence[str], **kinds: Sequence[str]) -> set[str]:
    """The patterns with each `<kind>` replaced by all there are of it."""
    names = set(patterns)
    for kind, values in kinds.items():
        names = {name.replace(f"<{kind}>", value) for name in names for value in values}
    return names


def _files(folder: str) -> set[str]:
    root = Path("results") / folder
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@types("docs/data.md")
def test_the_data_page_runs(follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    printed = follow("data")
    assert printed["python write_workouts.py"] == "(120, 12, 3) (120, 12, 5)\n"
    assert list(summary("workouts")["zones"]) == ["coast", "hills", "north", "south"]
    assert summary("workouts")["metric"]["unit"] == "bpm"
    for folder in ("workouts", "raw"):
        assert summary(folder)["pooled"]["test"] < summary(folder)["pooled"]["before"]
    assert "training: 26 of 26 jobs" in printed["sgfusion experiment workouts_suite.toml"]
    assert list(summary("steps")["zones"]) == ["lake", "mountain", "valley"]
    assert all(zone.startswith("83") for zone in summary("cells")["zones"])  # H3 cells of resolution 3
    assert not summary("steps")["notes"]
    # In running text, and made short.
    suite = ("experiment", ROOT / "experiments" / "own_sequences_suite.toml", "--set", "data.path=workouts.npz")
    shorter = ("--seeds", "1", "--entries", "sgfusion,random", "--set", "rounds=1", "--out", "results/own")
    assert sgfusion(capsys, *suite, *shorter).code == 0


@types("docs/extending.md")
def test_the_page_on_extending_runs(follow: Follow) -> None:
    printed = follow("extending")
    assert "note: rain is made up" in printed["sgfusion simulate rain.toml"]
    assert "MAE (mm)" in printed["sgfusion simulate rain.toml"]
    assert summary("rain")["synthetic"]
    places = load_run_file(Path("results/rain/run.toml")).zones.places
    assert places == {
        "bergen": (((60.4, 5.3),),),
        "molde": (((62.7, 7.2),),),
        "narvik": (((68.4, 17.4),),),
        "oslo": (((59.9, 10.8),),),
    }
    unlike = summary("unlike")
    assert (unlike["method"], unlike["drawn"]) == ("unlike", 1.0)
    assert summary("rain")["zones"] != unlike["zones"]


def test_the_methods_of_the_page_are_those_of_the_registry() -> None:
    (listed,) = tables(section(PAGES["simulator"], "## Methods"))
    said = [(row[0], row[2:]) for row in listed]
    expected = []
    for name, method in METHODS.items():
        defined_in = Path(sys.modules[_home(name)].__file__ or "").name
        kind = method.sampler_kind if isinstance(method, ZoneMethod) else None
        trains = "zone by zone" if method.per_zone else "centrally"
        expected.append((f"`{name}`", [f"`{defined_in}`", trains, f"`{kind}`" if kind else ""]))
    assert said == expected


def _home(method: str) -> str:
    """The module that has the method as its METHOD."""
    modules = [name for name in sys.modules if name.startswith("simulator.methods.")]
    return next(name for name in modules if getattr(sys.modules[name], "METHOD", None) is METHODS[method])


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("tasks", name) for name in TASKS), *(("sources", name) for name in SOURCES)],
)
def test_the_data_page_lists_every_key_of_a_task_or_source_with_its_default(kind: str, name: str) -> None:
    options: type[BaseModel] = importlib.import_module(f"device.{kind}.{name}").Options
    text = section(section(PAGES["data"], f"## {kind.title()}"), f"### `{name}`")
    _compare([row for table in tables(text) for row in table], options)
    assert ("No keys." in text) == (not options.model_fields)


def test_the_data_page_describes_all_tasks_and_sources_and_no_others() -> None:
    for kind, names in (("Tasks", TASKS), ("Sources", SOURCES)):
        described = re.findall(r"^### `(\w+)`$", section(PAGES["data"], f"## {kind}"), re.MULTILINE)
        assert sorted(described) == sorted(names)


def test_the_simulators_page_lists_every_key_of_a_suite_with_its_default() -> None:
    keys = tables(section(PAGES["simulator"], "## A suite"))[0]
    _compare(keys, SuiteFile)


def _compare(rows: Sequence[Sequence[str]], model: type[BaseModel]) -> None:
    expected = dict(_keys(model))
    assert [row[0].strip("`") for row in rows] == list(expected)
    for key, said, *_ in rows:
        default = expected[key.strip("`")]
        if default is None:
            assert "`" not in said, key
            assert said not in ("", "required"), key
        else:
            assert said == default or (default in ("`{}`", "`[]`") and "`" not in said and said != "required"), key


def _keys(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, str | None]]:
    """Each key with its default as the page writes it; None for one that is words, as there is no value."""
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            yield from _keys(type(default), f"{above}{name}.")
        elif field.is_required():
            yield above + name, "required"
        else:
            yield above + name, None if default is None else f"`{json.dumps(default)}`"


@pytest.mark.parametrize("page", PAGES)
def test_every_option_that_a_page_names_is_one_of_the_commands(page: str) -> None:
    commands = typer.main.get_group(app).commands
    known = {option for command in commands.values() for parameter in command.params for option in parameter.opts}
    ours = re.sub(r"`ray [^`]*`", "", PAGES[page])
    assert set(re.findall(r"(?<![-\w])--[a-z]+", ours)) <= known
    for command, rest in re.findall(r"`sgfusion (\w+)([^`]*)`", PAGES[page]):
        assert command in commands
        options = {option for parameter in commands[command].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z]+", rest)) <= options


def test_the_split_rule_of_the_data_page_is_that_of_devices() -> None:
    sizes = {}
    for count in (1, 2, 3, 10):
        data = split("zone", "device", Samples(np.zeros((count, 1), np.float32), np.zeros(count, np.float32)))
        sizes[count] = [len(getattr(data, part)) for part in SPLITS]
    assert sizes == {1: [1, 0, 0], 2: [1, 0, 1], 3: [1, 1, 1], 10: [6, 2, 2]}
