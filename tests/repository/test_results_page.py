"""docs/results.md has the numbers of experiments/RESULTS.md, which a report has made."""

import re

from simulator.methods.registry import METHODS
from tests.pages import page

SHORT, FULL = page("docs/results.md"), page("experiments/RESULTS.md")


def rows(text: str, head: str) -> dict[str, list[str]]:
    """Cells by the first, of the first table whose head begins so."""
    _, found, rest = text.partition(f"\n| {head}")
    assert found, head
    lines = rest.split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip().strip("*") for cell in line.strip()[1:-1].split("|")] for line in lines]
    return {first: others for first, *others in cells}


def test_the_table_is_that_of_the_full_page() -> None:
    listed = rows(SHORT, "method |")
    titles = {method.title: name for name, method in METHODS.items()}
    assert list(listed) == list(titles)
    flights = rows(FULL, "entry | RMSE (min), mean over zones | median zone | RMSE (min), pooled")
    won = rows(FULL, "against | flights")
    hearts = rows(FULL, "entry | norway")
    won_hearts = rows(FULL, "against | synthetic-norway")
    for title, (_, error, zones, bpm, zones_bpm) in listed.items():
        assert error == flights[title][0], title
        assert bpm == hearts[titles[title]][-1], title
        if title != "SGFusion":
            assert zones == won[title][0].strip("*"), title
            assert zones_bpm == won_hearts[title][-1].strip("*"), title


def test_the_readme_has_the_same_numbers() -> None:
    titles = {"SGFusion": "SGFusion", "top-k": "top-k-SGFusion", "random draws": "Random", "no sharing": "SGeoFL"}
    readme, listed = page("README.md"), rows(SHORT, "method |")
    (head,) = re.findall(r"^\| \|(.*)\|$", readme, re.MULTILINE)
    methods = [titles.get(cell.strip(), cell.strip()) for cell in head.split("|")]
    shown = rows(readme, "| SGFusion")
    for line, (error, won) in {"flights (min)": (1, 2), "heart rates (bpm)": (3, 4)}.items():
        wanted = [f"{listed[each][error].split()[0]} ({listed[each][won]})".removesuffix(" ()") for each in methods]
        assert [cell.replace("*", "") for cell in shown[line]] == wanted


def test_ranks_and_words_are_those_of_the_table() -> None:
    listed = rows(SHORT, "method |")
    flights = sorted(listed, key=lambda title: float(listed[title][1].split()[0]))
    hearts = sorted(listed, key=lambda title: float(listed[title][3]))
    assert flights.index("SGFusion") == 2
    assert "It is third there" in SHORT
    assert hearts.index("SGFusion") == 9
    assert "SGFusion is tenth" in SHORT
    assert re.search(r"at κ = 30 SGFusion : Shuffled 66 : 23", FULL)
    assert re.search(r"\| `flights_suite.toml`.*\| 9 \|", FULL)
