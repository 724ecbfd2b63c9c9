"""The tables of suites whose every number was worked out by hand."""

import csv
import io
import json
from pathlib import Path

import pytest

from console.report.findings import against_controls, findings, standing
from console.report.main_table import main_table
from console.report.other_tables import notes_on, zones_table
from console.report.suite_results import read_results
from console.report.tables import Table
from console.report.won_tables import won_tables
from tests.console.report.fake_suite import ACCURACY
from tests.console.report.tiny_suite import Values, write_tiny

# RMSEs of ours: seed 1 a 2, b 3; seed 2 a 1, b 1. Of other: seed 1 a 1.5, b 4; seed 2 a 1.5, b 1.
VALUES: Values = {
    "ours": {1: {"a": (16, 4), "b": (9, 1)}, 2: {"a": (4, 4), "b": (1, 1)}},
    "other": {1: {"a": (9, 4), "b": (16, 1)}, 2: {"a": (9, 4), "b": (1, 1)}},
}


def rows(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def test_the_main_table(tmp_path: Path) -> None:
    table = main_table(read_results(write_tiny(tmp_path, VALUES)), "d")
    ours, other = rows(table)
    # Means over zones: ours 2.5 and 1, other 2.75 and 1.25. Pooled: ours √5 and 1, other √5 and √2.
    assert (float(ours["mean"]), float(ours["mean_deviation"])) == pytest.approx((1.75, 1.5 / 2**0.5))
    assert (float(other["mean"]), float(other["mean_deviation"])) == pytest.approx((2.0, 1.5 / 2**0.5))
    assert float(ours["median"]) == pytest.approx(1.75)  # of two zones the mean is the middle
    assert float(ours["pooled"]) == pytest.approx((5**0.5 + 1) / 2)
    assert float(other["pooled"]) == pytest.approx((5**0.5 + 2**0.5) / 2)
    assert (ours["device_gradients"], ours["bytes_sent"], ours["zones_drawn"]) == ("60.0", "4000.0", "2.0")
    assert (ours["homophily"], ours["round_kept"], ours["diverged_jobs"]) == ("0.25", "10.0", "0")
    assert table.rows[0][1].text == "1.750 ± 1.061"
    assert [cell.bold for cell in table.rows[0]][:5] == [False, True, True, True, False]
    assert not any(cell.bold for cell in table.rows[1])


def test_a_zone_that_runs_away_does_not_move_the_median(tmp_path: Path) -> None:
    values: Values = {"ours": {1: {"a": (16, 4), "b": (9, 1), "c": (10**6, 1)}}}
    (row,) = rows(main_table(read_results(write_tiny(tmp_path, values)), "d"))
    assert (float(row["median"]), float(row["mean"])) == (3.0, 335.0)  # of 2, 3 and 1000


def test_without_labels_to_test_by_nobody_is_first(tmp_path: Path) -> None:
    values: Values = {name: {1: {"a": (0, 0), "b": (0, 0)}} for name in ("ours", "other")}
    folder = write_tiny(tmp_path, values)
    suite = json.loads((folder / "suite.json").read_text())
    suite["entries"][0]["method"], suite["entries"][1]["method"] = "sgfusion", "random"
    (folder / "suite.json").write_text(json.dumps(suite))
    assert findings(read_results(folder)) == ["d: no zone has labels in the test split, so nothing is compared."]


def test_who_is_first_is_said_either_way(tmp_path: Path) -> None:
    mean, pooled = standing(read_results(write_tiny(tmp_path, VALUES)), "d")
    assert mean == (
        "d, mean over zones: Ours is first of 2 with 1.750 ± 1.061 bpm, before Other with 2.000 ± 1.061 bpm."
    )
    mean, _ = standing(read_results(write_tiny(tmp_path, VALUES, reference="other")), "d")
    assert mean == (
        "d, mean over zones: Other is not first but 2nd of 2 with 2.000 ± 1.061 bpm;"
        " Ours is first with 1.750 ± 1.061 bpm (12.50% better)."
    )
    assert "1.618" in pooled


def test_higher_may_be_better(tmp_path: Path) -> None:
    results = read_results(write_tiny(tmp_path, VALUES, metric=ACCURACY))
    assert [row[1].bold for row in main_table(results, "d").rows] == [False, True]
    assert "Ours is not first" in standing(results, "d")[0]
    (won, *_) = won_tables(results, results.suite.reference)
    assert won.rows[0][1].text == "1:1"  # averages of a: 2.5 against 2.25; of b: 5 against 8.5


def test_zones_won_by_averages_and_by_seed(tmp_path: Path) -> None:
    results = read_results(write_tiny(tmp_path, VALUES))
    won, by_seed, tests = won_tables(results, results.suite.reference)
    # Averages: a is 1.5 on both sides, b is 2 against 2.5. By seed: a lost and won, b won and tied.
    assert rows(won) == [{"against": "other", "d_won": "1", "d_lost": "0", "d_tied": "1"}]
    assert won.rows[0][1].text == "1:0 (1 tied)"
    assert by_seed.rows[0][1].text == "1.0:0.5 ± 0.0 (0.5 tied)"
    (row,) = rows(tests)
    assert (row["zones"], row["won"], row["lost"], row["tied"]) == ("2", "1", "0", "1")
    assert float(row["mean_gain"]) == pytest.approx(0.1)  # 0 and 20 %
    assert (row["wilcoxon_p"], row["note"]) == ("", "fewer than 6 zones differ: not meaningful")


def test_tests_over_six_zones_with_holm_over_two_others(tmp_path: Path) -> None:
    names = "abcdef"
    # RMSEs of ours are 1; of better 0.4 to 0.9; of mixed all worse but the one that differs most.
    values: Values = {
        "ours": {1: dict.fromkeys(names, (1.0, 1))},
        "better": {1: {zone: ((0.4 + i / 10) ** 2, 1) for i, zone in enumerate(names)}},
        "mixed": {1: {zone: ((1.1 + i / 10) ** 2, 1) for i, zone in enumerate(names[:5])} | {"f": (0.01, 1)}},
    }
    results = read_results(write_tiny(tmp_path, values))
    won, _, tests = won_tables(results, results.suite.reference)
    better, mixed = rows(tests)
    assert [row[1].text for row in won.rows] == ["0:6", "5:1"]
    assert (float(better["wilcoxon_p"]), float(better["wilcoxon_p_holm"])) == pytest.approx((2 / 64, 4 / 64))
    assert (float(mixed["wilcoxon_p"]), float(mixed["wilcoxon_p_holm"])) == pytest.approx((28 / 64, 28 / 64))
    assert (float(mixed["sign_p"]), float(mixed["sign_p_holm"])) == pytest.approx((14 / 64, 14 / 64))
    assert tests.rows[0][6].text == "0.062"


def two_data_sets(folder: Path) -> Path:
    """In `e`, RMSEs of other are 3 everywhere; ours are as in `d`."""
    thrice: Values = {"other": {seed: {"a": (36, 4), "b": (9, 1)} for seed in (1, 2)}}
    write_tiny(folder, {**VALUES, "third": VALUES["other"]})
    write_tiny(folder, {**VALUES, **thrice, "third": VALUES["other"]}, data="e")
    suite = json.loads((folder / "suite.json").read_text())
    (folder / "suite.json").write_text(json.dumps({**suite, "data": ["d", "e"]}))
    return folder


def test_the_total_is_over_the_zones_of_all_data(tmp_path: Path) -> None:
    results = read_results(two_data_sets(tmp_path))
    won, by_seed, tests = won_tables(results, results.suite.reference)
    assert [cell.text for cell in won.rows[0][1:]] == ["1:0 (1 tied)", "2:0", "3:0 (1 tied)"]
    # By seed in d: 1:1, then 1:0 and a tie; in e: 1:0 and a tie, then 2:0.
    assert by_seed.rows[0][3].text == "2.5:0.5 ± 0.7 (1.0 tied)"
    total = rows(tests)[4]
    assert (total["data"], total["against"], total["zones"], total["won"]) == ("all data", "other", "4", "3")
    assert float(total["mean_gain"]) == pytest.approx((0 + 0.2 + 0.5 + 1 / 3) / 4)


def test_there_is_no_total_over_fewer_data_than_the_others(tmp_path: Path) -> None:
    folder = two_data_sets(tmp_path)
    (folder / "jobs/e/third/1/a.json").unlink()
    results = read_results(folder)
    won, *_ = won_tables(results, results.suite.reference)
    assert [cell.text for cell in won.rows[1]] == ["Third", "1:0 (1 tied)", "", ""]


def test_the_control_of_random_draws_is_spoken_of(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, VALUES)
    suite = json.loads((folder / "suite.json").read_text())
    suite["entries"][1]["method"] = "random"
    (folder / "suite.json").write_text(json.dumps(suite))
    sentence = (
        "d, against the control: zones won Ours : Other = 1:0 (1 tied), mean gain +10.00% (too few zones to test)."
    )
    assert against_controls(read_results(folder)) == {"d": [sentence]}
    assert findings(read_results(folder))[-1] == sentence  # of which it is no control: it draws as many as SGFusion
    suite["entries"][0]["method"] = "sgfusion"
    (folder / "suite.json").write_text(json.dumps(suite))
    assert findings(read_results(folder))[-2:] == [
        sentence,
        "Other is the control: it draws as many zones as Ours, but any. Where the two are close, what is gained over"
        " training alone comes from sharing at all, and not from the choice of alike zones.",
    ]


def test_the_control_of_likeness_is_spoken_of(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, VALUES)
    suite = json.loads((folder / "suite.json").read_text())
    suite["entries"][0]["method"], suite["entries"][1]["method"] = "sgfusion", "shuffled"
    (folder / "suite.json").write_text(json.dumps(suite))
    won = "zones won Ours : Other = 1:0 (1 tied), mean gain +10.00% (too few zones to test)."
    assert findings(read_results(folder))[-2:] == [
        f"d, against the control of likeness: {won}",
        "Other has the chances of Ours, dealt to other zones: it draws as many, and the same few as often, but not"
        " those that are alike. What Ours gains over it is what likeness is worth.",
    ]
    suite["entries"][1]["set"] = {"hrg.sharpness": 3.0}
    (folder / "suite.json").write_text(json.dumps(suite))
    assert findings(read_results(folder))[-1] == f"d, against shuffled chances at other settings: {won}"


def with_two_randoms(folder: Path, **sharpness: float) -> Path:
    """SGFusion, and two entries of Random that draw 2 zones and 5; each with the sharpness that is given for it."""
    names = ("ours", "first", "second")
    write_tiny(folder, {"ours": VALUES["ours"], "first": VALUES["other"], "second": VALUES["other"]})
    suite = json.loads((folder / "suite.json").read_text())
    for entry, method in zip(suite["entries"], ("sgfusion", "random", "random"), strict=True):
        entry["method"] = method
        entry["set"] = {"hrg.sharpness": sharpness[entry["name"]]} if entry["name"] in sharpness else {}
    (folder / "suite.json").write_text(json.dumps(suite))
    for name in names[2:]:
        for job in folder.glob(f"jobs/d/{name}/*/*.json"):
            job.write_text(json.dumps({**json.loads(job.read_text()), "drawn": 5.0}))
    return folder


def test_of_two_random_entries_the_control_is_the_one_with_the_references_dendrogram(tmp_path: Path) -> None:
    *_, first, second, how = findings(read_results(with_two_randoms(tmp_path, ours=3.0, second=3.0)))
    assert first.startswith("d, against random draws at other settings: zones won Ours : First = 1:0")
    assert second.startswith("d, against the control: zones won Ours : Second = 1:0")
    assert how.startswith("Second is the control: it draws as many zones as Ours, but any.")


@pytest.mark.parametrize("other", ["optimiser.rate", "update.kind", "rounds"])
def test_no_control_differs_in_anything_but_its_draws(other: str, tmp_path: Path) -> None:
    folder = with_two_randoms(tmp_path)
    suite = json.loads((folder / "suite.json").read_text())
    suite["entries"][1]["set"] = {other: 9}
    suite["entries"][2]["set"] = {"sampler.kind": "random"}
    (folder / "suite.json").write_text(json.dumps(suite))
    *_, first, second, _ = findings(read_results(folder))
    assert first.startswith("d, against random draws at other settings: zones won Ours : First")
    assert second.startswith("d, against the control: zones won Ours : Second")


@pytest.mark.parametrize("sharpness", [{"ours": 3.0, "second": 10.0}, {"first": 3.0, "second": 10.0}])
def test_random_entries_with_other_dendrograms_are_said_to_draw_what_they_drew(
    sharpness: dict[str, float], tmp_path: Path
) -> None:
    *_, first, second, how = findings(read_results(with_two_randoms(tmp_path, **sharpness)))
    assert all("against random draws at other settings" in sentence for sentence in (first, second))
    assert how == (
        "No entry of Random has the settings of Ours, so none is an exact control: First drew"
        " 2.000 zones a round where Ours drew 2.000 and Second drew 5.000 zones a round where Ours drew 2.000."
        " What differs may come from the number of zones as well as from the choice of alike ones."
    )


def test_a_control_that_is_not_finished_is_not_spoken_of(tmp_path: Path) -> None:
    folder = with_two_randoms(tmp_path, ours=3.0, second=3.0)
    (folder / "jobs/d/second/1/a.json").unlink()
    how = findings(read_results(folder))[-1]
    assert how.startswith("No entry of Random has")
    assert "Second" not in how


def test_every_zone_is_in_zones_csv_even_without_labels(tmp_path: Path) -> None:
    values = {entry: {seed: {**zones, "c": (0, 0)} for seed, zones in by.items()} for entry, by in VALUES.items()}
    results = read_results(write_tiny(tmp_path, values))
    found = rows(zones_table(results))
    assert len(found) == 2 * 2 * 3 * 2
    assert found[0] == {
        "data": "d", "entry": "ours", "method": "m-ours", "seed": "1", "zone": "a", "split": "test", "metric": "2.0",
        "round_kept": "10", "labels": "4",
    }  # fmt: skip
    assert {row["metric"] for row in found if row["zone"] == "c"} == {""}
    assert notes_on(results, "d") == ["Left out of every comparison, for want of test labels: c."]


def test_jobs_that_diverged_are_marked(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, VALUES)
    job = folder / "jobs/d/ours/2/b.json"
    job.write_text(json.dumps({**json.loads(job.read_text()), "rounds": 3, "diverged": "round 4: nan"}))
    table = main_table(read_results(folder), "d")
    assert table.notes[0].startswith("The same budget means the same rounds, here 10;")
    assert [row[0].text for row in table.rows] == ["Ours †", "Other"]
    assert table.notes[1:] == (
        "† Ours: 1 of 4 jobs ended before the last round; the models are those of before."
        " The first: zone b, seed 2: round 4: nan",
    )


def test_the_budget_is_said_to_be_the_same_rounds_only_if_it_is(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path, VALUES)
    differ = "; the device gradients that a round takes differ by method, which is why the report has a column of them."
    assert main_table(read_results(folder), "d").notes == (f"The same budget means the same rounds, here 10{differ}",)
    job = folder / "jobs/d/ours/2/b.json"
    job.write_text(json.dumps({**json.loads(job.read_text()), "rounds": 40}))
    (note,) = main_table(read_results(folder), "d").notes
    assert note == "Entries have 10 and 40 rounds, for the same budget of device gradients: the most is 0% more."
    job.write_text(json.dumps({**json.loads(job.read_text()), "rounds": 40, "device_gradients": 90}))
    (note,) = main_table(read_results(folder), "d").notes
    assert note == "Entries have 10 and 40 rounds, and device gradients from 60 to 90: the budget is not the same."
    for job in folder.glob("jobs/d/*/*/*.json"):
        job.write_text(json.dumps({**json.loads(job.read_text()), "rounds": 3, "diverged": "round 4: nan"}))
    assert main_table(read_results(folder), "d").notes[0] == f"The same budget means the same rounds{differ}"
