"""The run file: what it accepts comes back as it was, what it refuses it names."""

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfusion.errors import RunFileError
from sgfusion.optimiser import Optimiser, Schedule
from sgfusion.runfile import RunFile, Zones, checked, contract, load_run_file, parse_run_file
from sgfusion.runfile_document import load_document, override
from tests.run_files import BASE

EXPERIMENTS = [
    path
    for path in sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
    if "seeds"
    not in tomllib.loads(path.read_text("utf-8"))  # else it is a suite of runs: tests/simulator/test_suite.py
]


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
zonings: list[tuple[list[tuple[str, Any]], dict[str, Any]]] = [
    ([], {"by": st.just("column"), "neighbours": st.just("delaunay")}),
    (
        [("by", "polygons"), ("polygons", text.filter(bool))],
        {"property": text, "neighbours": st.sampled_from(["border", "delaunay"])},
    ),
    ([("by", "h3")], {"resolution": st.integers(0, 15), "neighbours": st.sampled_from(["ring", "delaunay"])}),
]
weight = st.just(0.0) | positive
pair = st.tuples(st.floats(-90, 90), st.floats(-180, 180)).map(list)
rings = st.lists(
    st.lists(pair, min_size=1, max_size=1) | st.lists(pair, min_size=4, max_size=5, unique_by=tuple),
    min_size=1,
    max_size=2,
)
drawn_edges = st.lists(st.tuples(name, name).filter(lambda pair: pair[0] != pair[1]), max_size=3)


def both_ways(edges: list[tuple[str, str]]) -> dict[str, list[str]]:
    pairs = {*edges, *((two, one) for one, two in edges)}
    return {zone: sorted(two for one, two in pairs if one == zone) for zone, _ in sorted(pairs)}


chain: dict[str, Any] = {"from": text.filter(bool)}
chain |= {"patience": count, "max_moves": count, "sharpness": weight, "drift": weight}
documents = section(
    ("name", name),
    ("seed", st.integers(0, 2**63 - 1)),
    ("rounds", count),
    ("task", open_section("name")),
    ("data", open_section("source")),
    zones=st.one_of(
        [
            section(
                *always, names=st.lists(name, unique=True, max_size=4), min_devices=count, min_samples=count, **more
            )
            for always, more in zonings
        ]
        + [section(adjacent=drawn_edges.map(both_ways), places=st.dictionaries(name, rings, max_size=3))]
    ),
    histogram=section(epsilon=positive | st.just("off") | st.integers(1, 9), adjacency=adjacency)
    | section(("epsilon", st.floats(1e-3, 1)), ("budget", st.floats(1, 9))),
    hrg=section(**chain, schedule=st.just("paper"), metric=st.sampled_from(["euclidean", "manhattan"]))
    | section(("metric", "minkowski"), **chain, p=st.floats(1, 50), restarts=count, schedule=st.just("anneal")),
    sampler=section(("kind", st.sampled_from(["hrg", "neighbours", "none", "chi", "random", "all"])))
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
    evaluation=section(every=count),
    baselines=section(clusters=count, alpha1=weight, alpha2=weight, share=share),
    simulation=section(exact=st.booleans()),
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
    assert written["hrg"] == {"metric": "euclidean", "p": 2.0, **search, "sharpness": 1.0, "drift": 0.1}
    assert written["optimiser"] == {"kind": "sgd", "schedule": "constant", "rate": 0.1}
    assert written["histogram"] == {"epsilon": 1.0, "adjacency": "replace"}
    assert written["sampler"] == {"kind": "hrg"}
    assert written["zones"] == {"names": [], "by": "column", "min_devices": 1, "min_samples": 1}
    assert written["evaluation"] == {"every": 10}
    assert written["baselines"] == {"clusters": 3, "alpha1": 0.5, "alpha2": 0.5, "share": 0.3}
    assert written["simulation"] == {"exact": False}


def test_defaults_of_what_was_chosen_are_written_out_and_no_others() -> None:
    chosen = tomllib.loads(parse("optimiser={kind='adam', schedule='inverse'}", "hrg.schedule=paper").to_toml())
    rest = {"strong_convexity": 1.0, "beta1": 0.9, "beta2": 0.999}
    assert chosen["optimiser"] == {"kind": "adam", "schedule": "inverse", **rest}
    assert "restarts" not in chosen["hrg"]


@pytest.mark.parametrize(
    ("zones", "filled"),
    [
        ("{}", {"by": "column"}),
        ("{by='polygons', polygons='/a'}", {"polygons": "/a", "property": "name", "neighbours": "border"}),
        ("{by='h3'}", {"resolution": 5, "neighbours": "ring"}),
        ("{by='h3', resolution=0, neighbours='delaunay'}", {"resolution": 0, "neighbours": "delaunay"}),
        ("{neighbours='delaunay'}", {"by": "column", "neighbours": "delaunay"}),
    ],
)
def test_zones_have_the_defaults_of_how_they_are_made(zones: str, filled: dict[str, Any]) -> None:
    found = tomllib.loads(parse(f"zones={zones}").to_toml())["zones"]
    expected = {"names": [], "min_devices": 1, "min_samples": 1, **filled}
    assert {key: value for key, value in found.items() if key != "by" or "by" in filled} == expected
    assert checked(Zones, found, "again") == parse(f"zones={zones}").zones


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
        ("data.words= a b ", "data.words", "a b"),
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


# All paths


PLACES = [("hrg", "from", ""), ("data", "path", ""), ("zones", "polygons", "by = 'polygons'\n")]


def path_of(run: RunFile, section: str, key: str) -> object:
    return run.model_dump(by_alias=True)[section][key]


@pytest.mark.parametrize(("section", "key", "beside"), PLACES)
def test_a_path_in_a_file_is_meant_from_its_folder_and_one_in_an_override_from_here(
    section: str, key: str, beside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = BASE if section == "data" else f"{BASE}[{section}]\n"  # [data] is its last section
    text = f"{opened}{beside}{key} = 'deep/a.x'\n"
    home, here = tmp_path / "home", tmp_path / "here"
    for folder in (home, here):
        folder.mkdir()
    (home / "run.toml").write_text(text, "utf-8")
    monkeypatch.chdir(here)
    assert path_of(load_run_file(home / "run.toml"), section, key) == str(home / "deep" / "a.x")
    assert path_of(load_run_file("../home/run.toml"), section, key) == str(here / ".." / "home" / "deep" / "a.x")
    set_here = load_run_file(home / "run.toml", [f"{section}.{key}=b.x"])
    assert path_of(set_here, section, key) == str(here / "b.x")
    absolute = load_run_file(home / "run.toml", [f"{section}.{key}=/c.x"])
    assert path_of(absolute, section, key) == "/c.x"
    assert path_of(parse_run_file(text, folder=home), section, key) == str(home / "deep" / "a.x")
    assert path_of(parse_run_file(text), section, key) == str(here / "deep" / "a.x")


def test_a_path_that_is_no_text_is_left_to_who_checks_it() -> None:
    assert path_of(parse("data.path=3"), "data", "path") == 3
    assert path_of(parse("data.path="), "data", "path") == ""


# Documents that are changed before they are checked


def test_an_override_changes_a_copy_and_says_who_asked(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(BASE, "utf-8")
    document = load_document(path)
    settings_ = {"sampler.kind": "top-k", "sampler.k": 2, "hrg": {"from": "t.json"}, " data . path ": "d.csv"}
    changed = override(document, settings_, "suite.toml", tmp_path / "elsewhere")
    assert document == tomllib.loads(BASE)
    run = checked(RunFile, changed, "suite.toml")
    assert (run.sampler.kind, run.sampler.k) == ("top-k", 2)
    assert run.hrg.from_ == str(tmp_path / "elsewhere" / "t.json")
    assert path_of(run, "data", "path") == str(tmp_path / "elsewhere" / "d.csv")
    assert settings_["hrg"] == {"from": "t.json"}
    with pytest.raises(RunFileError, match=r"suite\.toml: 'hrg\.': write section\.key"):
        override(document, {"hrg.": 1}, "suite.toml", tmp_path)
    with pytest.raises(RunFileError, match=r"suite\.toml: 'name\.x': name is a value in the run file, not a section"):
        override(document, {"name.x": 1}, "suite.toml", tmp_path)


def test_a_default_of_one_choice_does_not_stand_in_the_way_of_another(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(BASE + "[zones]\nby = 'h3'\n[optimiser]\nkind = 'adam'\n", "utf-8")
    changed = override(load_document(path), {"zones.by": "column", "optimiser.kind": "sgd"}, "suite.toml", tmp_path)
    run = checked(RunFile, changed, "suite.toml")
    assert (run.zones.resolution, run.optimiser.beta1) == (None, None)


# Documents that are changed before they are checked


def test_a_document_is_overridden_before_defaults_are_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(BASE + "[optimiser]\nkind = 'adam'\n", "utf-8")
    document = load_document(path, ["rounds=7"])
    changed = override(document, {"optimiser.schedule": "inverse", "data.rows": [1]}, "here", tmp_path)
    run = checked(RunFile, changed, "here")
    assert (run.rounds, run.optimiser.kind, run.optimiser.rate) == (7, "adam", None)
    assert run.data.model_extra == {"rows": [1]}
    assert document == load_document(path, ["rounds=7"])  # it was a copy that changed


def test_a_path_in_an_override_is_from_the_given_folder(tmp_path: Path) -> None:
    document = tomllib.loads(BASE + "[hrg]\nfrom = '/trees/t.json'\n")
    moved = override(document, {"data.path": "d.csv"}, "here", tmp_path)
    assert (moved["data"]["path"], moved["hrg"]["from"]) == (str(tmp_path / "d.csv"), "/trees/t.json")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"hrg.": 1}, "here: 'hrg.': write section.key, such as hrg.schedule"),
        ({"name.x": 1}, "here: 'name.x': name is a value in the run file, not a section"),
        ({"hrg.p": "x"}, "here: hrg.p = 'x': should be a valid number"),
    ],
)
def test_an_override_that_cannot_be_is_refused_by_its_source(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(RunFileError) as caught:
        checked(RunFile, override(tomllib.loads(BASE), settings, "here", Path()), "here")
    assert str(caught.value) == says


# Who is next to whom


def test_neighbours_by_hand_are_kept_as_they_are_said() -> None:
    adjacent = "zones.adjacent={ash=['birch', 'c.d'], birch=['ash'], \"c.d\"=['ash'], elm=[]}"
    run = parse(adjacent)
    assert run.zones.adjacent == {"ash": ("birch", "c.d"), "birch": ("ash",), "c.d": ("ash",), "elm": ()}
    assert parse_run_file(run.to_toml()) == run
    assert parse().zones.adjacent is None
    assert parse("zones.adjacent={}").zones.adjacent == {}


# Where zones lie


def test_places_are_kept_as_they_are_said_a_line_a_zone() -> None:
    run = parse("zones.places={ash=[[[50, 20.25], [-51.5, 180], [1e-7, -180]], [[1, 2]]], 'c.é'=[[[90, 0]]]}")
    assert run.zones.places == {
        "ash": (((50.0, 20.25), (-51.5, 180.0), (1e-7, -180.0)), ((1.0, 2.0),)),
        "c.é": (((90.0, 0.0),),),
    }
    written = run.to_toml()
    assert written.endswith(
        '\n[zones.places]\nash = [[[50.0,20.25],[-51.5,180.0],[1e-07,-180.0]],[[1.0,2.0]]]\n"c.é" = [[[90.0,0.0]]]\n'
    )
    assert parse_run_file(written) == run
    assert run.zones.model_dump(mode="json")["places"]["c.é"] == [[[90.0, 0.0]]]
    assert parse().zones.places is None
    assert "places" not in parse().to_toml()
    nowhere = parse("zones.places={}")
    assert nowhere.zones.places == parse_run_file(nowhere.to_toml()).zones.places == {}


def test_a_ring_may_be_closed_as_in_geojson() -> None:
    closed = parse("zones.places={a=[[[1, 2], [3, 4], [5, 6], [1, 2]], [[7, 8], [7, 8]]]}")
    assert closed.zones.places == {"a": (((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)), ((7.0, 8.0),))}


# What devices and edges must agree on


def test_a_contract_is_of_what_changes_an_answer_and_of_nothing_else() -> None:
    ours = contract(parse())
    assert re.fullmatch("[0-9a-f]{64}", ours)
    for same in (
        "zones.places={a=[[[1, 2]]]}",
        "rounds=9",
        "name=other",
        "zones.names=['a']",
        "hrg.sharpness=3",
        "deadlines.device=1",
        "data.x=1",
    ):
        assert contract(parse(same)) == ours
    others = ["seed=99", "task.name=other", "task.more=1", "histogram.epsilon=off", "histogram.budget=5"]
    others += ["update={kind='delta', epochs=1, rate=0.1}", "update={kind='delta', epochs=2, rate=0.1}"]
    assert len({ours, *(contract(parse(other)) for other in others)}) == len(others) + 1


def test_a_contract_does_not_hang_on_how_a_run_file_is_written() -> None:
    ours = contract(parse("task.a=1", "task.b={c=[2, true, 'x']}"))
    assert contract(parse("task.b={c=[2.0, true, 'x']}", "task.a=1.0", "histogram.epsilon=1")) == ours
    assert contract(parse_run_file(parse("task.a=1", "task.b={c=[2, true, 'x']}").to_toml())) == ours
    assert contract(parse("task.a=1", "task.b={c=[2, 1, 'x']}")) != ours
    assert contract(parse("task.a=inf", "task.b=2020-01-01")) != contract(parse("task.a=inf", "task.b=2020-01-02"))


def test_a_contract_is_the_same_in_every_version() -> None:
    """Pinned: devices and edges of two releases compare it."""
    text = "name='a'\nseed=1\nrounds=2\n[task]\nname='linear'\n[data]\nsource='table'\n"
    expected = (
        '{"histogram":{"adjacency":"replace","budget":null,"epsilon":1},"seed":1,"task":{"name":"linear"},'
        '"update":{"batch":null,"epochs":null,"kind":"gradient","rate":null}}'
    )
    assert contract(parse_run_file(text)) == hashlib.sha256(expected.encode()).hexdigest()
