"""Whole reports."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from console.report import ReportSummary, write_report
from console.report.document import Command, Document
from console.report.earlier import OURS
from console.report.markdown import markdown
from console.report.page import page
from tests.console.report.fake_suite import ACCURACY, EPSILONS, NORWAY, TOP_K, entry, write_suite

ENTRIES = [entry("sgfusion"), entry("chi-sgfusion"), entry("fedavg"), entry("random"), *TOP_K[:2], EPSILONS[3]]


def suite(folder: Path, data: Mapping[str, Sequence[str]], entries: Sequence[Mapping[str, Any]]) -> Path:
    return write_suite(
        folder,
        data=data,
        entries=entries,
        seeds=[1, 2],
        rounds=[0, 100, 200],
        without_labels=["Finnmark"],
        diverged=[("random", "Akershus")],
    )


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    return write_report(suite(tmp_path_factory.mktemp("suite"), {"norway": NORWAY[:6]}, ENTRIES))


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made but not rendered, which is what takes their time."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda _self, file, **_: file.write(b"a figure"))


def test_everything_is_written(summary: ReportSummary) -> None:
    written = {str(path.relative_to(summary.folder)) for path in summary.files}
    assert all((summary.folder / name).stat().st_size for name in written)
    for figure in (
        "learning-curves-norway", "draws-norway", "dendrogram-norway", "probabilistic-dendrogram-norway",
        "histogram-norway", "top-k", "epsilon",
    ):  # fmt: skip
        assert {f"figures/{figure}.png", f"figures/{figure}.svg"} <= written
    for table in (
        "data", "main-norway", "rounds-to-target-norway", "zones-won-sgfusion", "zones-won-by-seed-sgfusion",
        "paired-tests-sgfusion", "zones-won-chi-sgfusion", "paired-tests-chi-sgfusion",
    ):  # fmt: skip
        assert {f"tables/{table}.csv", f"tables/{table}.md"} <= written
    assert {"report.html", "report.md", "tables/zones.csv"} <= written


def test_the_page_needs_nothing_from_outside(summary: ReportSummary) -> None:
    html = (summary.folder / "report.html").read_text()
    assert set(re.findall(r'src="([^"]{11})', html)) == {"data:image/"}
    links = re.findall(r'href="([^"]+)"', html)
    assert links
    assert all(link.startswith("#") and f'id="{link[1:]}"' in html for link in links)
    assert not re.search(r"https?://|@import|url\(|<script|<link", html)
    assert html.count("<img ") == len([path for path in summary.files if path.suffix == ".svg"])


def test_the_report_says_what_a_reader_must_know(summary: ReportSummary) -> None:
    for name in ("report.html", "report.md"):
        text = (summary.folder / name).read_text()
        assert "synthetic: generated, not measured" in text
        assert "norway (synthetic): Left out of every comparison, for want of test labels: Finnmark." in text
        assert "Random †" in text
        assert re.search(r"norway \(synthetic\), mean over zones: SGFusion is (not )?first", text)
        assert "fewer than 6 zones differ: not meaningful" in text
        assert "sgfusion experiment fake.toml" in text


def test_the_command_can_be_copied_from_either_report() -> None:
    document = Document("s", "", (Command("Made by:", "sgfusion experiment my_suite.toml --set a_b='<c>'"),))
    assert markdown(document).endswith("Made by:\n\n```sh\nsgfusion experiment my_suite.toml --set a_b='<c>'\n```\n")
    assert "Made by: sgfusion experiment my_suite.toml --set a_b=&#x27;&lt;c&gt;&#x27;</p>" in page(document)


@pytest.mark.usefixtures("unsaved")
def test_real_data_beside_synthetic_is_not_called_synthetic(tmp_path: Path) -> None:
    folder = suite(tmp_path, {"real": ["a", "b"], "made": ["a", "b"]}, [ENTRIES[0], ENTRIES[3]])
    description = json.loads((folder / "suite.json").read_text())
    (folder / "suite.json").write_text(json.dumps({**description, "synthetic": ["made"]}))
    summary = write_report(folder)
    text = (folder / "report.md").read_text()
    assert "data: real and made (synthetic);" in text
    assert "The data of made is synthetic: generated, not measured. No number there is about real people." in text
    assert [table.title.partition(":")[0] for table in summary.tables] == ["real", "made (synthetic)"]
    head = (folder / "tables/zones-won-sgfusion.csv").read_text().partition("\n")[0]
    assert head.split(",")[1::3] == ["real_won", "made-synthetic_won", "all-data-partly-synthetic_won"]


def test_every_picture_of_the_markdown_is_there(summary: ReportSummary) -> None:
    pictures = re.findall(r"\]\((figures/[^)]+)\)", (summary.folder / "report.md").read_text())
    assert len(pictures) == len([path for path in summary.files if path.suffix == ".png"])
    assert all((summary.folder / picture).is_file() for picture in pictures)


@pytest.mark.usefixtures("unsaved")  # figures of the same bytes have a test of their own
def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        write_report(suite(tmp_path / name, {"d": ["x", "y", "z"]}, ENTRIES[::3])) for name in ("first", "second")
    )
    for before, after in zip(first.files, second.files, strict=True):
        assert before.read_bytes() == after.read_bytes(), before.name


def test_the_summary_prints(summary: ReportSummary) -> None:
    screen = Console(width=100)
    with screen.capture() as capture:
        screen.print(summary)
    text = capture.get()
    assert "norway (synthetic): RMSE (bpm) on the test split of 5 zones" in text
    assert "χ-SGFusion" in text
    assert text.rstrip().endswith("report.html")


@pytest.mark.usefixtures("unsaved")
def test_a_suite_that_is_not_finished_has_a_report_too(tmp_path: Path) -> None:
    folder = suite(tmp_path, {"d": ["a", "b", "c"]}, ENTRIES[:4])
    (folder / "jobs/d/random/2/b.json").unlink()
    (folder / "jobs/d/fedavg/1/_all.json").unlink()
    seen: list[tuple[str, int, int]] = []
    summary = write_report(folder, lambda *progress: seen.append(progress))
    assert summary.missing == ("d, FedAvg, seed 1: all of it", "d, Random, seed 2: 1 of 3 zones (b)")
    assert [row[0].text for row in summary.tables[0].rows] == ["SGFusion", "χ-SGFusion"]
    text = (folder / "report.md").read_text()
    assert "not finished" in text
    assert all(part in text for part in summary.missing)
    assert all(0 <= done <= of for _, done, of in seen)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_report_knows_its_own_files(summary: ReportSummary) -> None:
    for path in summary.files:
        assert path.parent == summary.folder or OURS[path.parent.name].fullmatch(path.name), path


@pytest.mark.usefixtures("unsaved")
def test_a_part_report_leaves_nothing_of_a_whole_one_but_what_is_not_ours(tmp_path: Path) -> None:
    folder = suite(tmp_path, {"d": ["a", "b"], "e": ["a"]}, ENTRIES[:2])
    whole = write_report(folder)
    names = ("tables/my-own.csv", "figures/main-d.txt", "figures/old/draws-e.png", "main-d.md")
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("a user's")
    (folder / "tables/main-linked.csv").symlink_to(folder / names[0])
    (folder / "figures/dendrogram-folder.svg").mkdir()
    description = json.loads((folder / "suite.json").read_text())
    (folder / "suite.json").write_text(json.dumps({**description, "data": ["e"], "entries": ENTRIES[:1]}))
    part = write_report(folder)
    assert set(part.files) < set(whole.files)
    found = {path for name in ("tables", "figures") for path in (folder / name).iterdir()}
    assert found - set(part.files) == {
        folder / name for name in (*names[:2], "figures/old", "tables/main-linked.csv", "figures/dendrogram-folder.svg")
    }
    assert set(part.files) - found == {folder / "report.html", folder / "report.md"}
    assert all((folder / name).read_text() == "a user's" for name in names)


def test_every_table_and_figure_of_synthetic_data_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    titles: list[str] = []

    def save(figure: Figure, file: Any, **_: object) -> None:
        titles.append("; ".join(axes.get_title("left") for axes in figure.axes))
        file.write(b"a figure")

    monkeypatch.setattr(Figure, "savefig", save)
    summary = write_report(suite(tmp_path, {"d": ["a", "b"]}, [ENTRIES[0], *ENTRIES[4:]]))
    assert len(titles) == 2 * 7  # two kinds of file
    assert all("d (synthetic)" in title for title in titles)
    for path in summary.files:
        if path.parent.name == "tables":
            assert re.search(r"d \(synthetic\)|d-synthetic_won", path.read_text()), path.name
    captions = re.findall(r"<(?:fig)?caption>(.*?)</", (summary.folder / "report.html").read_text())
    assert len(captions) == 7 + 6
    assert not [caption for caption in captions if re.search(r"\bd\b(?! \(synthetic\))", caption)]


@pytest.mark.usefixtures("unsaved")
def test_a_suite_with_nothing_finished_says_so(tmp_path: Path) -> None:
    folder = suite(tmp_path, {"d": ["a", "b"]}, ENTRIES[:2])
    for job in folder.glob("jobs/d/*/1/a.json"):
        job.unlink()
    summary = write_report(folder)
    assert len(summary.missing) == 2
    assert summary.tables == ()
    assert "not finished" in (folder / "report.html").read_text()


@pytest.mark.usefixtures("unsaved")
def test_the_reference_may_be_what_is_not_finished(tmp_path: Path) -> None:
    folder = suite(tmp_path, {"d": ["a", "b"]}, [ENTRIES[0], ENTRIES[3]])
    (folder / "jobs/d/sgfusion/1/a.json").unlink()
    assert write_report(folder).findings == (
        "d (synthetic): SGFusion, the reference, is not finished; nothing is compared with it.",
    )


@pytest.mark.usefixtures("unsaved")
def test_one_zone_one_seed_one_round_and_a_metric_to_raise(tmp_path: Path) -> None:
    folder = write_suite(
        tmp_path, data={"d": ["alone"]}, entries=ENTRIES[:2], seeds=[1], rounds=[0, 1], metric=ACCURACY
    )
    description = json.loads((folder / "suite.json").read_text())
    (folder / "suite.json").write_text(json.dumps({**description, "synthetic": []}))
    summary = write_report(folder)
    names = {path.stem for path in summary.files}
    assert "learning-curves-d" in names
    assert "dendrogram-d" not in names
    text = (folder / "report.md").read_text()
    assert "synthetic" not in text.lower()
    assert "higher is better" in text
    assert "All is of one seed, 1: " in text
    assert not re.search(r"over (the )?seeds|±", text + "".join(p.read_text() for p in folder.glob("tables/*.md")))


def test_no_torch_is_needed() -> None:
    check = "import sys, console.report; assert not {'torch', 'matplotlib', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, cwd=Path(__file__).parents[3], timeout=60)
