"""Findings as people read them, and as programs do."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from console.doctor.findings import MARKS, Finding, Verdict, is_broken

_COLOURS: dict[Verdict, str] = {"ok": "green", "look": "yellow", "broken": "red"}


def print_findings(findings: Sequence[Finding], screen: Console) -> None:
    """A line each, and below it what to do where something is to be done; a sum in the end."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("mark", no_wrap=True)
    table.add_column("check", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("what", overflow="fold")
    for finding in findings:
        colour = _COLOURS[finding.verdict]
        table.add_row(Text(MARKS[finding.verdict], colour), Text(finding.check), Text(finding.text))
        if finding.remedy:
            table.add_row("", "", Text(f"→ {finding.remedy}", colour))
    screen.print(table)
    screen.print(summed(findings), highlight=False)


def summed(findings: Sequence[Finding]) -> str:
    """How many are well, worth a look, broken."""
    count = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in MARKS}
    parts = [f"{count['ok']} fine", f"{count['look']} worth a look", f"{count['broken']} broken"]
    return ", ".join(parts)


def to_json(findings: Sequence[Finding]) -> str:
    """All of it; `healthy` is whether nothing is broken."""
    listed = [
        {"check": f.check, "verdict": f.verdict, "text": f.text, **({"remedy": f.remedy} if f.remedy else {})}
        for f in findings
    ]
    return json.dumps({"healthy": not is_broken(findings), "findings": listed}, indent=1, ensure_ascii=False)
