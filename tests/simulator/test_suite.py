"""The suite file: every run is resolved before anything starts, and what is wrong is named with its place."""

import tomllib
from pathlib import Path

import pytest

from sgfusion.errors import RunFileError
from simulator.suite import Suite, load_suite
from tests.simulator.tiny_suite import RUN, SUITE, write_suite

SUITES = [
    path
    for path in sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
    if "seeds" in tomllib.loads(path.read_text("utf-8"))
]
OF_ENTRY, OF_DATA = '"sampler.k" = 1', '"data.contrast" = 0.1'
"""Settings of the suite, to put others in their place."""


def load(folder: Path, suite: str = SUITE, run: str = RUN, *overrides: str) -> Suite:
    return load_suite(write_suite(folder, suite, run), overrides)


def refusal(folder: Path, suite: str, *overrides: str) -> str:
    with pytest.raises(RunFileError) as caught:
        load(folder, suite, RUN, *overrides)
    return str(caught.value).replace(f"{folder}/", "")


def with_entry(entry: str) -> str:
    return SUITE.replace("[entries]\n", f"[entries]\n{entry}\n")


def test_every_run_is_that_of_its_data_its_entry_and_its_seed(tmp_path: Path) -> None:
    suite = load(tmp_path)
    assert (suite.name, suite.task, suite.reference) == ("few", "linear", "sgfusion")
    assert (suite.data, suite.seeds) == (("near", "far"), (1, 2))
    assert [(e.name, e.method, e.title) for e in suite.entries] == [
        ("sgfusion", "sgfusion", "SGFusion"),
        ("fedavg", "fedavg", "FedAvg"),
        ("top-1", "top-k-sgfusion", "top-1"),
    ]
    assert list(suite.runs) == [(d, e, s) for d in suite.data for e in ("sgfusion", "fedavg", "top-1") for s in (1, 2)]
    for (data, entry, seed), run in suite.runs.items():
        written = tomllib.loads(run.to_toml())
        assert run.seed == seed
        assert written["data"]["contrast"] == {"near": 0.1, "far": 0.9}[data]
        if entry != "fedavg":
            assert written["sampler"] == {"sgfusion": {"kind": "hrg"}, "top-1": {"kind": "top-k", "k": 1}}[entry]
        assert (run.rounds, run.hrg.restarts) == (3, 1)


def test_without_data_there_is_one_named_after_the_run_and_the_first_entry_is_the_reference(tmp_path: Path) -> None:
    suite = load(tmp_path, 'name = "s"\nrun = "tiny.toml"\nseeds = [4]\n[entries]\nall = {}\nrandom = {}\n')
    assert list(suite.runs) == [("tiny", "all", 4), ("tiny", "random", 4)]
    assert suite.reference == "all"
    assert [run.sampler.kind for run in suite.runs.values()] == ["all", "random"]


def test_overrides_of_the_command_line_are_of_all_entries_and_an_entrys_own_comes_after(tmp_path: Path) -> None:
    suite = load(tmp_path, with_entry('long = { method = "sgeofl", set = { rounds = 8 } }'), RUN, "rounds=5")
    assert {entry: run.rounds for (_, entry, _), run in suite.runs.items()} == {
        "sgfusion": 5,
        "fedavg": 5,
        "top-1": 5,
        "long": 8,
    }


def test_an_override_that_some_do_not_hear_is_noted_and_one_that_nobody_hears_is_refused(tmp_path: Path) -> None:
    some = with_entry('long = { method = "sgeofl", set = { rounds = 8 } }')
    assert load(tmp_path, some, RUN, "rounds=5", "optimiser.rate=0.2").notes == (
        "--set 'rounds=5' does not reach long (in entries), with a rounds of their own",
    )
    assert load(tmp_path, SUITE, RUN, "rounds=5").notes == ()
    suite = 'name = "s"\nrun = "tiny.toml"\nseeds = [4]\n[entries]\nall = { set = { rounds = 8 } }\n'
    assert refusal(tmp_path, suite, "rounds=5") == (
        "--set 'rounds=5' has no effect: in few.toml all (in entries) set rounds to their own. Change it there, or"
        " choose others with --entries"
    )
    assert "in few.toml near, far (in data) set data.contrast to their own" in refusal(
        tmp_path, SUITE, "data.contrast=0.5"
    )


def test_an_override_is_judged_by_the_part_that_is_run(tmp_path: Path) -> None:
    path = write_suite(tmp_path, with_entry('long = { method = "sgeofl", set = { rounds = 8 } }'), RUN)
    assert load_suite(path, ["rounds=5"], entries=["sgfusion"]).notes == ()
    with pytest.raises(RunFileError, match=r"has no effect: in .* long \(in entries\)"):
        load_suite(path, ["rounds=5"], entries=["long"])


def test_settings_may_be_written_as_tables(tmp_path: Path) -> None:
    written = load(tmp_path, with_entry("all = { set.optimiser = { kind = 'adam', rate = 0.5 } }"))
    dotted = load(tmp_path, with_entry('all = { set = { "optimiser.kind" = "adam", "optimiser.rate" = 0.5 } }'))
    assert written.runs == dotted.runs
    assert written.runs["far", "all", 1].optimiser.beta1 == 0.9


def test_a_setting_is_put_into_the_file_as_written_so_that_defaults_follow_it(tmp_path: Path) -> None:
    suite = load(tmp_path, with_entry('all = { set = { "optimiser.schedule" = "inverse" } }'))
    optimiser = suite.runs["far", "all", 1].optimiser
    assert (optimiser.strong_convexity, optimiser.rate) == (1.0, None)  # a rate would be refused


def test_a_run_files_own_sampler_keys_serve_the_method_they_belong_to(tmp_path: Path) -> None:
    run = RUN + "[sampler]\nkind = 'top-k'\nk = 2\n"
    suite = load(tmp_path, with_entry("top-k-sgfusion = {}\nchi-sgfusion = {}"), run)
    chosen = {entry: run.sampler for (_, entry, _), run in suite.runs.items()}
    assert [chosen[e].k for e in ("top-k-sgfusion", "top-1", "sgfusion", "chi-sgfusion")] == [2, 1, None, None]
    assert load(tmp_path, with_entry("top-k-sgfusion = {}")).runs["far", "top-k-sgfusion", 1].sampler.k is not None


def test_a_path_in_a_suite_is_from_the_suites_folder(tmp_path: Path) -> None:
    suite = load(tmp_path, with_entry('all = { set = { "hrg.from" = "trees/t.json" } }'))
    assert suite.runs["far", "all", 1].hrg.from_ == str(tmp_path / "trees" / "t.json")
    assert suite.runs["far", "sgfusion", 1].hrg.from_ is None


def test_a_part_is_in_the_order_of_the_suite_and_has_a_reference(tmp_path: Path) -> None:
    path = write_suite(tmp_path, SUITE.replace("seeds", 'reference = "fedavg"\nseeds'))
    part = load_suite(path, seeds=[2], entries=["top-1", "sgfusion"], data=["far"])
    assert list(part.runs) == [("far", "sgfusion", 2), ("far", "top-1", 2)]
    assert (part.data, part.seeds, part.reference) == (("far",), (2,), "sgfusion")
    assert load_suite(path, entries=["top-1", "fedavg"]).reference == "fedavg"
    for wanted, says in {
        "seeds": "--seeds = 7: unknown. There are: 1, 2",
        "entries": "--entries = 'fedav': unknown, did you mean fedavg? There are: sgfusion, fedavg, top-1",
        "data": "--data = 'farr': unknown, did you mean far? There are: near, far",
    }.items():
        with pytest.raises(RunFileError) as caught:
            load_suite(path, **{wanted: [{"seeds": 7, "entries": "fedav", "data": "farr"}[wanted]]})  # type: ignore[arg-type]
        assert str(caught.value) == says


@pytest.mark.parametrize(
    ("was", "instead", "says"),
    [
        (
            "seeds",
            "sedes",
            "few.toml: 2 things to mend\n  seeds is missing: it has no default\n  sedes = [1, 2]: unknown",
        ),
        ("seeds = [1, 2]", "seeds = []", "few.toml: seeds = []: should "),
        ("seeds = [1, 2]", "seeds = [1, 1]", "few.toml: the file: seed 1 is there twice"),
        ("seeds = [1, 2]", "seeds = [1, -1]", "few.toml: seeds.1 = -1: should be greater than or equal to 0"),
        ("[entries]", "[entries]\nfedavg = {}", "few.toml: the file: entry 'fedavg' is there twice"),
        (
            "[entries]",
            "[entries]\nall = { sets = {} }",
            "few.toml: entries.all.sets = {}: unknown key, did you mean set?",
        ),
        (
            "seeds",
            'reference = "none"\nseeds',
            "few.toml: reference = 'none': unknown. There are: sgfusion, fedavg, top-1",
        ),
        (
            '"fedavg"',
            '"fedavgg"',
            "few.toml, entry 'fedavgg': method = 'fedavgg': unknown, did you mean fedavg? There are:",
        ),
        ("near =", '"a/b" =', "few.toml: data.a/b.[key] = 'a/b': a name is letters"),
        ("tiny.toml", "none.toml", "none.toml cannot be read: No such file"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(was: str, instead: str, says: str, tmp_path: Path) -> None:
    assert was in SUITE
    assert refusal(tmp_path, SUITE.replace(was, instead, 1)).startswith(says)


@pytest.mark.parametrize(
    ("was", "instead", "says"),
    [
        (OF_ENTRY, '"sampler.kk" = 1', "entry 'top-1', data 'near': sampler.kk = 1: unknown key, did you"),
        (OF_ENTRY, '"sampler.chi" = 1', "entry 'top-1', data 'near': sampler: chi = 1 belongs to kind"),
        (OF_ENTRY, '"sampler.k." = 1', "entry 'top-1', data 'near': 'sampler.k.': write section.key"),
        (OF_ENTRY, "seed = 1", "entry 'top-1': seed cannot be set here: the suite's seeds say it"),
        (OF_ENTRY, '"sampler.kind" = 1', "entry 'top-1': sampler.kind cannot be set here: the entry's method"),
        (OF_ENTRY, '"data.noise" = 1', "entry 'top-1': data.noise cannot be set here: entries have the same data"),
        (OF_DATA, "rounds = 0", "entry 'sgfusion', data 'near': rounds = 0: should be"),
        (OF_DATA, "seed = 0", "data 'near': seed cannot be set here"),
        (OF_DATA, '"name.x" = 1', "data 'near': 'name.x': name is a value in the run"),
        (OF_DATA, '"task.name" = "flights"', "entry 'sgfusion', data 'far': task.name = 'linear', e"),
    ],
)
def test_a_wrong_setting_is_said_with_its_entry_and_data(was: str, instead: str, says: str, tmp_path: Path) -> None:
    assert was in SUITE
    assert refusal(tmp_path, SUITE.replace(was, instead, 1)).startswith(f"few.toml, {says}")


def test_a_suite_that_compares_nothing_is_refused(tmp_path: Path) -> None:
    assert "it compares nothing" in refusal(tmp_path, 'name = "s"\nrun = "tiny.toml"\nseeds = [4]\n')


def test_the_command_line_cannot_set_what_the_suite_says(tmp_path: Path) -> None:
    assert refusal(tmp_path, SUITE, "seed=3").startswith("--set 'seed=3': seed cannot be set here")
    assert refusal(tmp_path, SUITE, "sampler.kind = none").startswith(
        "--set 'sampler.kind = none': sampler.kind cannot"
    )
    assert refusal(tmp_path, SUITE, "rouns=3").startswith(
        "few.toml, entry 'sgfusion', data 'near': rouns = 3: unknown key"
    )


def test_a_wrong_key_in_a_part_that_is_not_run_now_is_found_too(tmp_path: Path) -> None:
    path = write_suite(tmp_path, SUITE.replace('"sampler.k"', '"sampler.q"'))
    with pytest.raises(RunFileError, match=r"sampler\.q"):
        load_suite(path, entries=["fedavg"])


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.name)
def test_a_suite_of_ours_loads(path: Path) -> None:
    suite = load_suite(path)
    assert suite.name == path.stem.replace("_", "-")
    assert suite.reference in {entry.name for entry in suite.entries}
