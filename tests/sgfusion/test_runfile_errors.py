"""What a run file refuses: the key, the value and what is allowed, all at once, in words a user can act on."""

from pathlib import Path
from typing import Any, Self

import pytest
from pydantic import BaseModel, ValidationError, model_validator

from sgfusion.errors import RunFileError
from sgfusion.runfile import OpenSection, RunFile, Section, load_run_file, parse_run_file
from tests.run_files import BASE

SECTIONS: dict[str, type[BaseModel]] = {
    name: field.annotation
    for name, field in RunFile.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}


RING = "a ring is one place, which is a point, or the three or more corners of an outline"
PLACE = "a place is [latitude, longitude] in degrees, -90 to 90 and -180 to 180"


def refusal(*overrides: str) -> str:
    with pytest.raises(RunFileError) as caught:
        parse_run_file(BASE, overrides)
    return str(caught.value)


# Unknown keys


@pytest.mark.parametrize(("section", "model"), [("", RunFile), *SECTIONS.items()])
def test_an_unknown_key_is_refused_at_every_level_with_the_likely_one(section: str, model: type[BaseModel]) -> None:
    keys = [field.alias or name for name, field in model.model_fields.items()]
    prefix = section and section + "."
    allowed = f"Allowed: {', '.join(keys)}"
    assert refusal(f"{prefix}qqqqqq=1") == f"run file: {prefix}qqqqqq = 1: unknown key. {allowed}"
    for key in (key for key in keys if len(key) > 3):
        wrong = key + key[-1]
        assert refusal(f"{prefix}{wrong}=1") == (
            f"run file: {prefix}{wrong} = 1: unknown key, did you mean {key}? {allowed}"
        )


def test_all_sections_but_the_open_ones_were_tried() -> None:
    assert {*RunFile.model_fields} - {*SECTIONS} == {"name", "seed", "rounds", "task", "data"}


# Wrong values


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=-1", "seed = -1: should be greater than or equal to 0"),
        ("seed=9223372036854775808", "seed = 9223372036854775808: should be less than 9223372036854775808"),
        ("seed=1.0", "seed = 1.0: should be a valid integer"),
        ("seed=true", "seed = True: should be a valid integer"),
        ("seed='1'", "seed = '1': should be a valid integer"),
        ("rounds=0", "rounds = 0: should be greater than or equal to 1"),
        ("name=3", "name = 3: should be a valid string"),
        ("name=a b", "name = 'a b': a name is letters, digits, '_', '-' and '.', as it becomes part of file names"),
        ("name=../a", "name = '../a': a name is letters, digits"),
        ("name=''", "name = '': a name is letters, digits"),
        ("task.name=a-b", "task.name = 'a-b': give a name of ours, or your own as module:name"),
        ("task.name=a:b:c", "task.name = 'a:b:c': give a name of ours"),
        ("data.source=1", "data.source = 1: should be a valid string"),
        ("hrg=3", "hrg = 3: should be a section, [hrg]"),
        ("data=x", "data = 'x': should be a section, [data]"),
        ("zones.names='abc'", "zones.names = 'abc': should be a list"),
        ("zones.names=['a', 1]", "zones.names.1 = 1: should be a valid string"),
        ("zones.names=['a', 'b/c']", "zones.names.1 = 'b/c': a name is letters, digits"),
        ("zones.names=['a', 'b', 'a']", "zones: zone 'a' is named twice: names are unique"),
        *(
            (f"histogram.epsilon={wrong}", f"histogram.epsilon = {shown}: give a finite number > 0 (smaller is more")
            for wrong, shown in {
                "0": "0",
                "-1.5": "-1.5",
                "nan": "nan",
                "inf": "inf",
                "true": "True",
                "on": "'on'",
            }.items()
        ),
        ("histogram.adjacency=add", "histogram.adjacency = 'add': should be "),
        ("histogram.budget=0", "histogram.budget = 0: should be greater than 0"),
        (
            "histogram={epsilon=2.1, budget=2}",
            "histogram: epsilon = 2.1 is more than budget = 2.0: no release would fit",
        ),
        ("hrg.metric=cosine", 'hrg.metric = \'cosine\': should be "euclidean", "manhattan" or "minkowski"'),
        ("hrg.from=3", "hrg.from = 3: should be a valid string"),
        ("hrg={metric='minkowski', p=0.5}", "hrg.p = 0.5: should be greater than or equal to 1"),
        ("hrg.schedule=fast", 'hrg.schedule = \'fast\': should be "anneal" or "paper"'),
        ("hrg.sharpness=inf", "hrg.sharpness = inf: should be a finite number"),
        (
            "sampler.kind=some",
            'sampler.kind = \'some\': should be "hrg", "chi", "top-k", "neighbours", "none", "random" or "all"',
        ),
        ("zones.by=country", 'zones.by = \'country\': should be "column", "polygons" or "h3"'),
        ("zones.polygons=", "zones.polygons = '': give the path of a file, or leave the key out"),
        ("zones={by='h3', resolution=16}", "zones.resolution = 16: should be less than or equal to 15"),
        ("zones={by='h3', resolution=-1}", "zones.resolution = -1: should be greater than or equal to 0"),
        ("zones={by='h3', resolution=5.0}", "zones.resolution = 5.0: should be a valid integer"),
        ("zones.neighbours=road", 'zones.neighbours = \'road\': should be "border", "ring" or "delaunay"'),
        ("zones.adjacent=3", "zones.adjacent = 3: should be a table"),
        ("zones.adjacent={a='b'}", "zones.adjacent.a = 'b': should be a list"),
        ("zones.adjacent={a=['b/c']}", "zones.adjacent.a.0 = 'b/c': a name is letters, digits"),
        (
            "zones.adjacent={a=['b', 'c'], b=['a'], c=[]}",
            "zones: adjacent has 'c' next to 'a', but not 'a' next to 'c': say both or none",
        ),
        ("zones.adjacent={a=['b']}", "zones: adjacent has 'b' next to 'a', but not 'a' next to 'b': say both or none"),
        ("zones.adjacent={a=['a']}", "zones: adjacent has zone 'a' next to itself: leave it out"),
        (
            "zones={names=['a', 'b'], adjacent={a=['c'], c=['a']}}",
            "zones: adjacent names zone 'c', which is not in names: add it there or leave it out",
        ),
        ("zones.places=3", "zones.places = 3: should be a table"),
        ("zones.places={a=3}", "zones.places.a = 3: should be a list"),
        ("zones.places={a=[]}", "zones.places.a = []: give a ring of places, or leave the zone out"),
        ("zones.places={a=[[]]}", f"zones.places.a.0 = []: {RING}"),
        ("zones.places={a=[[[1, 2], [3, 4]]]}", f"zones.places.a.0 = [[1, 2], [3, 4]]: {RING}"),
        ("zones.places={a=[[[1, 2], [3, 4], [1, 2]]]}", f"zones.places.a.0 = [[1, 2], [3, 4], [1, 2]]: {RING}"),
        *(
            (f"zones.places={{ash=[[[1, 2]], [{pair}]]}}", f"zones.places.ash.1.0 = {shown}: {PLACE}")
            for pair, shown in {
                "[90.1, 0]": "[90.1, 0]",
                "[-91, 0]": "[-91, 0]",
                "[0, 181]": "[0, 181]",
                "[nan, 0]": "[nan, 0]",
                "[0, -inf]": "[0, -inf]",
                "[0]": "[0]",
                "[0, 1, 2]": "[0, 1, 2]",
                "[0, true]": "[0, True]",
                "['0', 1]": "['0', 1]",
                "7": "7",
            }.items()
        ),
        ("zones.places={'a/b'=[[[1, 2]]]}", "zones.places.a/b.[key] = 'a/b': a name is letters, digits"),
        ("hrg.drift=-0.1", "hrg.drift = -0.1: should be greater than or equal to 0"),
        ("hrg.drift=inf", "hrg.drift = inf: should be a finite number"),
        ("zones.min_devices=0", "zones.min_devices = 0: should be greater than or equal to 1"),
        ("zones.min_samples=2.5", "zones.min_samples = 2.5: should be a valid integer"),
        ("evaluation.every=0", "evaluation.every = 0: should be greater than or equal to 1"),
        ("baselines.clusters=0", "baselines.clusters = 0: should be greater than or equal to 1"),
        ("baselines.alpha1=-0.1", "baselines.alpha1 = -0.1: should be greater than or equal to 0"),
        ("baselines.alpha2=inf", "baselines.alpha2 = inf: should be a finite number"),
        ("baselines.share=0", "baselines.share = 0: should be greater than 0"),
        ("baselines.share=1.01", "baselines.share = 1.01: should be less than or equal to 1"),
        ("simulation.exact=1", "simulation.exact = 1: should be a valid boolean"),
        ("fusion.similarity=l2", 'fusion.similarity = \'l2\': should be "inner" or "cosine"'),
        ("optimiser.kind=rmsprop", 'optimiser.kind = \'rmsprop\': should be "sgd", "momentum" or "adam"'),
        ("optimiser.rate=0", "optimiser.rate = 0: should be greater than 0"),
        ("optimiser={kind='adam', beta1=1}", "optimiser.beta1 = 1: should be less than 1"),
        ("optimiser={kind='momentum', momentum=nan}", "optimiser.momentum = nan: should be less than 1"),
        ("quorum.devices=1.5", "quorum.devices = 1.5: should be less than or equal to 1"),
        ("quorum.zones=nan", "quorum.zones = nan: should be"),
        ("deadlines.peer=inf", "deadlines.peer = inf: should be a finite number"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_and_what_is_allowed(override: str, message: str) -> None:
    assert refusal(override).startswith(f"run file: {message}")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("hrg.p=3", "hrg: p = 3.0 belongs to metric 'minkowski', not to 'euclidean'"),
        ("hrg={schedule='paper', restarts=2}", "hrg: restarts = 2 belongs to schedule 'anneal'"),
        ("sampler.k=2", "sampler: k = 2 belongs to kind 'top-k', not to 'hrg'"),
        ("sampler.kind=top-k", "sampler: kind = 'top-k' needs k, the number of zones to draw"),
        ("sampler.chi=2", "sampler: chi = 2 belongs to kind 'chi', not to 'hrg'"),
        ("sampler={kind='random', k=2}", "sampler: k = 2 belongs to kind 'top-k', not to 'random'"),
        ("sampler={kind='all', chi=2}", "sampler: chi = 2 belongs to kind 'chi', not to 'all'"),
        ("zones.by=polygons", "zones: by = 'polygons' needs polygons, the path of a GeoJSON file"),
        ("zones.polygons=/a.json", "zones: polygons = '/a.json' belongs to by = 'polygons'"),
        ("zones={by='h3', polygons='/a.json'}", "zones: polygons = '/a.json' belongs to by = 'polygons'"),
        ("zones.property=id", "zones: property = 'id' belongs to by = 'polygons', not to 'column'"),
        ("zones={by='h3', property='id'}", "zones: property = 'id' belongs to by = 'polygons', not to 'h3'"),
        ("zones.resolution=3", "zones: resolution = 3 belongs to by = 'h3', not to 'column'"),
        (
            "zones={by='polygons', polygons='/a.json', resolution=3}",
            "zones: resolution = 3 belongs to by = 'h3', not to 'polygons'",
        ),
        ("zones.neighbours=border", "zones: neighbours = 'border' belongs to by = 'polygons', not to 'column'"),
        ("zones={by='h3', neighbours='border'}", "zones: neighbours = 'border' belongs to by = 'polygons', not to"),
        ("zones.neighbours=ring", "zones: neighbours = 'ring' belongs to by = 'h3', not to 'column'"),
        (
            "zones={by='polygons', polygons='/a.json', neighbours='ring'}",
            "zones: neighbours = 'ring' belongs to by = 'h3', not to 'polygons'",
        ),
        ("sampler={kind='top-k', k=1, chi=2}", "sampler: chi = 2 belongs to kind 'chi', not to 'top-k'"),
        ("update.kind=delta", "update: kind = 'delta' needs epochs and rate"),
        ("update={kind='delta', epochs=1}", "update: kind = 'delta' needs epochs and rate"),
        ("update={kind='delta', rate=1}", "update: kind = 'delta' needs epochs and rate"),
        *((f"update.{key}=2", f"update: {key} = 2") for key in ("epochs", "rate", "batch")),
        ("optimiser.momentum=0.5", "optimiser: momentum = 0.5 belongs to 'momentum', not to 'sgd'"),
        ("optimiser.beta1=0.5", "optimiser: beta1 = 0.5 belongs to 'adam', not to 'sgd'"),
        ("optimiser={kind='momentum', beta2=0.5}", "optimiser: beta2 = 0.5 belongs to 'adam', not to 'momentum'"),
        ("optimiser.strong_convexity=2", "optimiser: strong_convexity = 2.0 belongs to 'inverse', not to 'constant'"),
        ("optimiser={schedule='inverse', rate=2}", "optimiser: rate = 2.0 belongs to 'constant' or 'cosine', not to"),
    ],
)
def test_a_key_that_does_not_fit_the_chosen_kind_is_refused(override: str, message: str) -> None:
    assert refusal(override).startswith(f"run file: {message}")


def test_everything_wrong_is_said_at_once() -> None:
    assert refusal("seed=-1", "hrg.form=x", "optimiser.momentum=0.5", "quorum.zones=2").splitlines() == [
        "run file: 4 things to mend",
        "  seed = -1: should be greater than or equal to 0",
        "  hrg.form = 'x': unknown key, did you mean from? Allowed: from, metric, p, schedule, restarts, patience,"
        " max_moves, sharpness, drift",
        "  optimiser: momentum = 0.5 belongs to 'momentum', not to 'sgd'",
        "  quorum.zones = 2: should be less than or equal to 1",
    ]


def test_missing_keys_are_named() -> None:
    with pytest.raises(RunFileError) as caught:
        parse_run_file("[task]", source="a.toml")
    assert str(caught.value).splitlines() == [
        "a.toml: 5 things to mend",
        *(f"  {key} is missing: it has no default" for key in ("name", "seed", "rounds", "task.name", "data")),
    ]


def test_a_long_value_is_shortened() -> None:
    assert refusal(f"seed='{'x' * 500}'") == f"run file: seed = '{'x' * 56}...: should be a valid integer"


# Files


def test_what_is_not_a_toml_file_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    with pytest.raises(RunFileError, match=r"run\.toml cannot be read: No such file"):
        load_run_file(path)
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(RunFileError, match=r"run\.toml is not a run file: .*utf-8"):
        load_run_file(path)
    path.write_text("name = \n", "utf-8")
    with pytest.raises(RunFileError, match=r"run\.toml is not TOML: .*line 1[^;]*$"):
        load_run_file(path)
    path.write_text("[data.scale]\nT °C = [50, 20]\n", "utf-8")
    with pytest.raises(RunFileError, match=r"line 2.*; is the = missing\? A key with other than .* needs quotes$"):
        load_run_file(path)
    path.write_text(BASE.replace("seed = 1", "seed = -1"), "utf-8")
    with pytest.raises(RunFileError, match=r"run\.toml: seed = -1"):
        load_run_file(path)


# Frozen, and open where it should be


def test_nothing_can_be_set_afterwards() -> None:
    run = parse_run_file(BASE, ["data.rows=3"])
    parts: list[tuple[BaseModel, str]] = [(run, "seed"), (run.hrg, "p"), (run.data, "source"), (run.data, "rows")]
    for part, key in parts:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, key, 5)


class Columns(Section):
    label: str = "y"


class Options(Section):
    rows: int
    columns: Columns = Columns()
    more: list[Columns] | None = None

    @model_validator(mode="after")
    def _few_rows(self) -> Self:
        if self.rows > 9:
            raise ValueError("rows is more than 9")
        return self


def options(*overrides: str) -> Any:
    section: OpenSection = parse_run_file(BASE, overrides).data
    return section.options_as("data", Options)


def test_further_keys_of_an_open_section_are_checked_by_who_knows_them() -> None:
    assert options("data.rows=3", "data.columns.label=x") == Options(rows=3, columns=Columns(label="x"))
    for overrides, message in {
        (): "data.rows is missing: it has no default",
        ("data.rows=10",): "rows is more than 9",
        ("data.rows=x",): "data.rows = 'x': should be a valid integer",
        ("data.rows=1", "data.row=2"): "data.row = 2: unknown key, did you mean rows? Allowed: rows, columns, more",
        (
            "data.rows=1",
            "data.columns.lable=2",
        ): "data.columns.lable = 2: unknown key, did you mean label? Allowed: label",
    }.items():
        with pytest.raises(RunFileError) as caught:
            options(*overrides)
        assert str(caught.value) == f"[data]: {message}"


def test_an_unknown_key_in_a_list_of_sections_is_refused_like_any_other() -> None:
    with pytest.raises(
        RunFileError, match=r"data\.more\.0\.lable = 2: unknown key, did you mean label\? Allowed: label"
    ):
        options("data.rows=1", "data.more=[{lable=2}]")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("hrg.from=", "hrg.from = '': give the path of a file, or leave the key out"),
        ("histogram.epsilon={a=1}", "histogram.epsilon = {'a': 1}: give a finite number > 0"),
        ("rounds=3\nseed=7", "write section.key=value"),
    ],
)
def test_values_that_are_easily_taken_for_something_else(override: str, says: str) -> None:
    with pytest.raises(RunFileError) as refused:
        parse_run_file(BASE, [override])
    assert says in str(refused.value)


def test_a_number_too_long_to_read_is_an_error_of_ours() -> None:
    with pytest.raises(RunFileError, match="is not TOML"):
        parse_run_file(f"seed = {'9' * 5000}")
