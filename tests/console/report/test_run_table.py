from rich.console import Console
from rich.table import Table

from console.report import run_table
from tests.console.report.fake_suite import RMSE
from tests.console.report.tiny_suite import outcome


def cells(table: Table) -> list[list[str]]:
    return [[str(cell) for cell in column.cells] for column in table.columns]


def test_a_row_a_zone_and_all_pooled() -> None:
    jobs = [outcome("a", 1, {"a": (16, 4)}), outcome("b", 1, {"b": (9, 1)}, drawn=None, diverged="round 11: nan")]
    table = run_table(jobs, ["a", "b"], RMSE)
    assert cells(table) == [
        ["a", "b †", "pooled"],
        ["6.000", "9.000", "6.708"],
        ["2.000", "3.000", "2.236"],
        ["+66.7%", "+66.7%", "+66.7%"],
        ["10", "10", "10"],
        ["4", "1", "5"],
        ["2.0", "–", "2.0"],
    ]
    assert [column.header for column in table.columns][3] == "gain over\nbefore"  # as `up --no-alone` has it
    assert [column.header for column in table.columns][4] == "round\nkept"  # not the last one, which was 12
    assert "round 11: nan" in str(table.caption)
    Console(width=80, quiet=True).print(table)


def test_one_job_for_all_zones_and_a_zone_without_labels() -> None:
    table = run_table([outcome(None, 1, {"a": (16, 4), "b": (0, 0)}, drawn=None)], ["a", "b"], RMSE)
    assert [column[1] for column in cells(table)] == ["b", "–", "–", "–", "10", "0", "–"]
    assert table.caption is None


def test_without_round_0_there_is_no_before() -> None:
    job = outcome("a", 1, {"a": (16, 4)})
    table = run_table([outcome("a", 1, {"a": (16, 4)}, points=job.points[1:])], ["a"], RMSE)
    assert [column[0] for column in cells(table)][1:4] == ["–", "2.000", "–"]
