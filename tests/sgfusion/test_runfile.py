"""The run file: what it accepts comes back as it was, what it refuses it names."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfusion.errors import RunFileError
from sgfusion.optimiser import Optimiser, Schedule
from sgfusion.runfile import RunFile, load_run_file, parse_run_file
from tests.run_files import BASE

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))


def parse(*overrides: str) -> RunFile:
    return parse_run_file(BASE, overrides)


def refusal(*overrides: str) -> str:
    with pytest.raises(RunFileError) as caught:
        parse(*overrides)
    return str(caught.value)


# Valid documents

positive = st.floats(0, exclude_min=True, allow_infinity=False)
share = st.floats(0, 1, exclude_min=True)
decay = st.floats(0, 1, exclude_max=True)
count = st.integers(1, 2**62)
name = st.builds(str.__add__, st.sampled_from("aZ9_é"), st.text("aZ9_é.-", max_size=6))
text = st.text('ab"\\\n\r\t\x00 =é😀#[]', max_size=6)
reference = st.sampled_from(["linear", "_x1", "my.tasks:Ours", "m:f"])
value = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)


def section(*always: tuple[str, Any], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    fixed = {key: choice if isinstance(choice, st.SearchStrategy) else st.just(choice) for key, choice in always}
    return st.fixed_dictionaries(fixed, optional=optional)


def open_section(key: str) -> st.SearchStrategy[dict[str, Any]]:
    options = st.dictionaries(text.filter(lambda other: other != key), value, max_size=3)
    return st.builds(lambda named, more: {**more, key: named}, reference, options)


adjacency = st.sampled_from(["replace", "add-remove"])
rates: list[tuple[str, dict[str, Any]]] = [
    ("constant", {"rate": positive}),
    ("cosine", {"rate": positive}),
    ("inverse", {"strong_convexity": positive}),
]
decays: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {}),
    ("momentum", {"momentum": decay}),
    ("adam", {"beta1": decay, "beta2": decay}),
]
chain: dict[str, Any] = {"from": text.filter(bool)}
chain |= {"patience": count, "max_moves": count, "sharpness": st.just(0.0) | positive}
documents = section(
    ("name", name),
    ("seed", st.integers(0, 2**63 - 1)),
    ("rounds", count),
    ("task", open_section("name")),
    ("data", open_section("source")),
    zones=section(names=st.lists(name, unique=True, max_size=4)),
    histogram=section(epsilon=positive | st.just("off") | st.integers(1, 9), adjacency=adjacency)
    | section(("epsilon", st.floats(1e-3, 1)), ("budget", st.floats(1, 9))),
    hrg=section(**chain, schedule=st.just("paper"), metric=st.sampled_from(["euclidean", "manhattan"]))
    | section(("metric", "minkowski"), **chain, p=st.floats(1, 50), restarts=count, schedule=st.just("anneal")),
    sampler=section(("kind", st.sampled_from(["hrg", "neighbours", "none", "chi"])))
    | section(("kind", "top-k"), ("k", count))
    | section(("kind", "chi"), ("chi", count)),
    update=section(kind=st.just("gradient"))
    | section(("kind", "delta"), ("epochs", count), ("rate", positive), batch=count),
    fusion=section(similarity=st.sampled_from(["inner", "cosine"])),
    optimiser=st.one_of(
        [section(("schedule", schedule), ("kind", kind), **a, **b) for schedule, a in rates for kind, b in decays]
    ),
    quorum=section(devices=share, zones=share),
    deadlines=section(device=positive, peer=positive, zones=positive),
)


@settings(max_examples=150)
@given(documents)
def test_a_run_file_written_out_is_the_same_run_file(document: dict[str, Any]) -> None:
    run = parse_run_file(tomli_w.dumps(document))
    written = run.to_toml()
    assert parse_run_file(written) == run
    assert parse_run_file(written).to_toml() == written
    assert run.task.model_extra == {key: option for key, option in document["task"].items() if key != "name"}


@pytest.mark.parametrize("option", ["2020-01-01", "2020-01-01T10:00:00Z", "inf"])
def test_dates_and_infinities_among_a_tasks_own_options_are_written_too(option: str) -> None:
    run = parse(f"data.option={option}")
    assert parse_run_file(run.to_toml()) == run


def test_every_default_is_written_out() -> None:
    written = tomllib.loads(parse().to_toml())
    search = {"schedule": "anneal", "restarts": 8, "patience": 200}
    assert written["hrg"] == {"metric": "euclidean", "p": 2.0, **search, "sharpness": 1.0}
    assert written["optimiser"] == {"kind": "sgd", "schedule": "constant", "rate": 0.1}
    assert written["histogram"] == {"epsilon": 1.0, "adjacency": "replace"}
    assert written["sampler"] == {"kind": "hrg"}
    assert written["zones"] == {"names": []}


def test_defaults_of_what_was_chosen_are_written_out_and_no_others() -> None:
    chosen = tomllib.loads(parse("optimiser={kind='adam', schedule='inverse'}", "hrg.schedule=paper").to_toml())
    rest = {"strong_convexity": 1.0, "beta1": 0.9, "beta2": 0.999}
    assert chosen["optimiser"] == {"kind": "adam", "schedule": "inverse", **rest}
    assert "restarts" not in chosen["hrg"]


def test_there_are_experiments() -> None:
    assert EXPERIMENTS


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.name)
def test_an_experiment_loads(path: Path) -> None:
    run = load_run_file(path)
    assert parse_run_file(run.to_toml()) == run
    assert run.optimiser.optimiser(run.rounds).schedule.steps == run.rounds


def test_the_optimiser_of_a_run_has_what_is_given_and_the_kernels_defaults() -> None:
    assert parse().optimiser.optimiser(9) == Optimiser("sgd", Schedule("constant", steps=9))
    given_ = parse("optimiser={kind='adam', schedule='cosine', rate=0.5, beta2=0.5}").optimiser
    assert given_.optimiser(9) == Optimiser("adam", Schedule("cosine", 0.5, steps=9), beta2=0.5)
    given_ = parse("optimiser={kind='momentum', schedule='inverse', strong_convexity=2, momentum=0}").optimiser
    assert given_.optimiser(9) == Optimiser("momentum", Schedule("inverse", strong_convexity=2, steps=9), momentum=0)


# Overrides


@pytest.mark.parametrize(
    ("override", "place", "set_to"),
    [
        ("seed=3", "seed", 3),
        (" rounds = 0x10 ", "rounds", 16),
        ("name=b", "name", "b"),
        ('name="b"', "name", "b"),
        ("hrg.schedule=paper", "hrg.schedule", "paper"),
        ("hrg.sharpness=2", "hrg.sharpness", 2.0),
        ("histogram.epsilon=off", "histogram.epsilon", "off"),
        ("zones.names=['x', 'y']", "zones.names", ("x", "y")),
        ("quorum={devices=0.5}", "quorum.devices", 0.5),
        ("data.path=/some where/a=b", "data.path", "/some where/a=b"),
        ("data.path= a b ", "data.path", "a b"),
        ("data.empty=", "data.empty", ""),
        ("histogram={epsilon=2, budget=2}", "histogram.budget", 2.0),
        ("data.flag=true", "data.flag", True),
        ("data.list=[1,", "data.list", "[1,"),
        ("data.a.b.c=1", "data.a", {"b": {"c": 1}}),
    ],
)
def test_an_override_is_toml_or_else_a_plain_string(override: str, place: str, set_to: object) -> None:
    found: Any = parse(override)
    for part in place.split("."):
        found = getattr(found, part)
    assert found == set_to
    assert type(found) is type(set_to)


def test_the_last_override_stands() -> None:
    assert parse("seed=3", "rounds=9", "seed=4") == parse("rounds=9", "seed=4")


@pytest.mark.parametrize("override", ["seed", "=3", "", ".seed=3", "hrg.=3", "hrg..p=3"])
def test_an_override_without_a_key_is_refused(override: str) -> None:
    assert refusal(override) == f"--set {override!r}: write section.key=value, such as hrg.schedule=paper"


def test_an_override_below_a_value_is_refused() -> None:
    assert refusal("name.x=3") == "--set 'name.x=3': name is a value in the run file, not a section"


# A dendrogram as given


def test_a_dendrogram_is_looked_for_from_the_run_files_folder_and_in_an_override_from_here(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(BASE + "[hrg]\nfrom = 'trees/t.json'\n", "utf-8")
    assert load_run_file(path).hrg.from_ == str(tmp_path / "trees" / "t.json")
    assert load_run_file(path, ["hrg.from=trees/t.json"]).hrg.from_ == str(Path.cwd() / "trees" / "t.json")
    path.write_text(BASE + "[hrg]\nfrom = '/trees/t.json'\n", "utf-8")
    assert load_run_file(str(path)).hrg.from_ == "/trees/t.json"
    assert parse("hrg.from=t.json").hrg.from_ == str(Path.cwd() / "t.json")


def test_a_resolved_run_file_in_another_folder_means_the_same_dendrogram(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("experiments", "results"):
        Path(folder).mkdir()
    Path("experiments/a.toml").write_text(BASE + "[hrg]\nfrom = 't.json'\n", "utf-8")
    Path("results/run.toml").write_text(load_run_file("experiments/a.toml").to_toml(), "utf-8")
    again = load_run_file("results/run.toml")
    assert again.hrg.from_ is not None
    assert Path(again.hrg.from_).resolve() == tmp_path / "experiments" / "t.json"
