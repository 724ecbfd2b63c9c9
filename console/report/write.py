"""A suite's results folder in, its report out."""

from pathlib import Path

from console.report.composition import Progress, compose
from console.report.earlier import remove_earlier
from console.report.findings import findings
from console.report.main_table import main_table
from console.report.markdown import markdown
from console.report.other_tables import zones_table
from console.report.page import page
from console.report.suite_results import read_results
from console.report.summary import ReportSummary
from sgfusion.durable import replace_file


def write_report(folder: Path, progress: Progress | None = None) -> ReportSummary:
    """Write `report.html`, `report.md`, `tables/` and `figures/` into the results folder of a suite, finished or not.

    The same results give the same bytes. Of a suite that is not finished, what is missing is named, and tables are made
    of the complete pairs of a data set and an entry alone. Tables and figures of an earlier report that this one does
    not have are removed: nobody must take them for its own.
    """
    results = read_results(folder)
    document = compose(results, progress or (lambda _phase, _done, _of: None))
    contents: dict[Path, bytes] = {}
    for table in document.tables:
        contents[folder / "tables" / f"{table.name}.csv"] = table.to_csv().encode()
        contents[folder / "tables" / f"{table.name}.md"] = table.to_markdown().encode()
    contents[folder / "tables" / "zones.csv"] = zones_table(results).to_csv().encode()
    for picture in document.pictures:
        for kind, content in picture.files.items():
            contents[folder / "figures" / f"{picture.stem}.{kind}"] = content
    contents[folder / "report.md"] = markdown(document).encode()
    contents[folder / "report.html"] = page(document).encode()
    for path, content in contents.items():
        replace_file(path, content)
    remove_earlier(folder, contents.keys())
    return ReportSummary(
        folder,
        tuple(main_table(results, data) for data in results.data),
        tuple(findings(results)),
        results.missing,
        tuple(contents),
    )
