import pytest
from rich.console import Console

from console.report.tables import Cell, Column, Table

TABLE = Table(
    "t",
    "A <title>",
    (Column("name", ("name",), left=True), Column("value", ("mean", "deviation")), Column("", ("hidden",))),
    (
        (Cell("a_b|c", ("a",)), Cell("1.00 ± 0.10", (1.0, 0.1), bold=True), Cell("", ("x,y",))),
        (Cell("<d>", ("d",)), Cell("–", (None, None)), Cell("", (3,))),
    ),
    ("A *note*",),
)


def test_csv_has_the_plain_values() -> None:
    assert TABLE.to_csv() == 'name,mean,deviation,hidden\na,1.0,0.1,"x,y"\nd,,,3\n'


def test_markdown_has_the_text_with_the_best_in_bold() -> None:
    assert TABLE.to_markdown() == (
        "**A \\<title\\>**\n\n"
        "| name | value |\n| :--- | ---: |\n| a\\_b\\|c | **1.00 ± 0.10** |\n| \\<d\\> | – |\n\nA \\*note\\*\n"
    )


def test_html_escapes() -> None:
    html = TABLE.to_html()
    assert "<caption>A &lt;title&gt;</caption>" in html
    assert '<td class="left">&lt;d&gt;</td>' in html
    assert "<b>1.00 ± 0.10</b>" in html
    assert "hidden" not in html


def test_the_screen_keeps_numbers_whole() -> None:
    screen = Console(width=24)
    with screen.capture() as capture:
        screen.print(TABLE.to_rich())
    assert "1.00 ± 0.10" in capture.get()


def test_a_main_table_fits_a_screen_of_80_columns() -> None:
    headings = ("RMSE (bpm), mean over zones", "RMSE (bpm), pooled", "validation, mean over zones")
    columns = (
        Column("entry", ("e",), left=True),
        *(Column(h, ("v",)) for h in headings),
        Column("zones drawn", ("d",)),
    )
    row = (Cell("top-k-SGFusion k=3", ("",)), *[Cell("20.16 ± 0.27", ("",))] * 3, Cell("2.455", ("",)))
    screen = Console(width=80)
    with screen.capture() as capture:
        screen.print(Table("t", "", columns, (row,)).to_rich())
    assert capture.get().splitlines()[-2].count("20.16 ± 0.27") == 3
    assert "2.455 │" in capture.get()


def test_a_cell_has_a_value_for_each_key() -> None:
    with pytest.raises(ValueError, match="mean"):
        Table("t", "", (Column("value", ("mean", "deviation")),), ((Cell("1", (1,)),),))
