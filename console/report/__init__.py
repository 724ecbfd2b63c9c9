"""A finished suite as tables, figures and one `report.html`; and the table of a single run."""

from console.report.run_table import run_table
from console.report.summary import ReportSummary
from console.report.write import write_report

__all__ = ["ReportSummary", "run_table", "write_report"]
