import json
from dataclasses import replace
from pathlib import Path

import pytest

from console.report.suite_results import read_results
from sgfusion.errors import DataError
from tests.console.report.tiny_suite import Values, write_tiny

VALUES: Values = {
    "ours": {1: {"a": (16, 4), "b": (36, 4)}, 2: {"a": (4, 4), "b": (4, 4)}},
    "other": {1: {"a": (9, 4), "b": (64, 4)}, 2: {"a": (9, 4), "b": (9, 4)}},
}


def test_zone_jobs_and_whole_jobs_are_read_alike(tmp_path: Path) -> None:
    apart = read_results(write_tiny(tmp_path / "apart", VALUES))
    whole = read_results(write_tiny(tmp_path / "whole", VALUES, whole=("ours", "other")))
    measure = apart.suite.measure
    for results in (apart, whole):
        assert results.missing == ()
        assert [run.values(measure, ("a", "b")) for run in results.runs["d", "ours"]] == [[2.0, 3.0], [1.0, 1.0]]
    assert [run.device_gradients for run in apart.runs["d", "ours"]] == [60, 60]
    assert [run.device_gradients for run in whole.runs["d", "ours"]] == [30, 30]


def test_only_complete_pairs_are_there_and_what_is_missing_is_named(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, VALUES)
    (folder / "jobs/d/ours/2/b.json").unlink()
    results = read_results(folder)
    assert list(results.runs) == [("d", "other")]
    assert results.missing == ("d, Ours, seed 2: 1 of 2 zones (b)",)
    (folder / "jobs/d/other/1/a.json").unlink()
    (folder / "jobs/d/other/1/b.json").unlink()
    results = read_results(folder)
    assert (dict(results.runs), results.data) == ({}, [])
    assert results.missing[1] == "d, Other, seed 1: all of it"


def test_without_a_world_nothing_of_it_is_complete(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, VALUES)
    (folder / "worlds/d/2.json").unlink()
    results = read_results(folder)
    assert not results.runs
    assert results.missing[0] == "d, seed 2: its world"


def test_zones_without_test_labels_are_left_out_in_every_seed(tmp_path: Path) -> None:
    values = {entry: {1: by[1], 2: {**by[2], "b": (0, 0)}} for entry, by in VALUES.items()}
    results = read_results(write_tiny(tmp_path, values))
    assert (results.zones("d"), results.zones_left_out("d")) == (("a",), ("b",))


def test_the_reference_may_be_named_by_its_method(tmp_path: Path) -> None:
    assert read_results(write_tiny(tmp_path, VALUES, reference="m-other")).suite.reference.name == "other"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("suite.json", "{", "suite.json is not JSON"),
        ("suite.json", "[]", "suite.json is not a suite's description"),
        ("worlds/d/1.json", "{}", "1.json is not a suite's world: KeyError"),
        ("jobs/d/ours/1/a.json", "{", "a.json: not an outcome of a job"),
        ("jobs/d/ours/1/a.json", "5", "a.json: "),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    folder = write_tiny(tmp_path, VALUES)
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=says):
        read_results(folder)


def test_an_unknown_reference_a_strange_zone_and_a_round_not_evaluated_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'nobody'.*ours and other"):
        read_results(write_tiny(tmp_path, VALUES, reference="nobody"))
    folder = write_tiny(tmp_path, VALUES)
    job = folder / "jobs/d/ours/1/a.json"
    document = json.loads(job.read_text())
    job.write_text(json.dumps({**document, "zone": "elsewhere"}))
    with pytest.raises(DataError, match="'elsewhere', which is none of the world's a and b"):
        read_results(folder)
    job.write_text(json.dumps({**document, "chosen": 7}))
    with pytest.raises(DataError, match="round 7"):
        read_results(folder)
    with pytest.raises(DataError, match="give the results folder"):
        read_results(tmp_path / "nowhere")


def test_a_synthetic_data_set_is_shown_as_one_and_not_twice(tmp_path: Path) -> None:
    suite = replace(read_results(write_tiny(tmp_path, VALUES)).suite, data=("norway", "Synthetic-spain"))
    assert suite.shown("norway") == "norway"
    made_up = replace(suite, synthetic=frozenset(suite.data))
    assert [made_up.shown(data) for data in (*suite.data, "all data")] == [
        "norway (synthetic)",
        "Synthetic-spain",
        "all data (synthetic)",
    ]


def test_real_data_beside_synthetic_keeps_its_name(tmp_path: Path) -> None:
    suite = replace(read_results(write_tiny(tmp_path, VALUES)).suite, data=("real", "made"))
    mixed = replace(suite, synthetic=frozenset({"made"}))
    assert [mixed.shown(data) for data in ("real", "made", "all data")] == [
        "real",
        "made (synthetic)",
        "all data (partly synthetic)",
    ]


@pytest.mark.parametrize("said", [["d"], []])
def test_which_data_is_synthetic_is_a_list(tmp_path: Path, said: list[str]) -> None:
    folder = write_tiny(tmp_path, VALUES)
    description = json.loads((folder / "suite.json").read_text())
    (folder / "suite.json").write_text(json.dumps({**description, "synthetic": said}))
    assert read_results(folder).suite.synthetic == frozenset(said)
