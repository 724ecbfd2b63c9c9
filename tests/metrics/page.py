"""docs/metrics.md, taken apart: its tables and its blocks."""

import re

from sgfusion.wire.metrics import Described
from tests.metrics.prometheus import ROOT

PAGE = (ROOT / "docs" / "metrics.md").read_text("utf-8")
SECTIONS = ("Every tier", "The cloud", "Edges", "Device hosts")


def section(heading: str) -> str:
    """What stands below a heading, up to the next."""
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def documented(heading: str) -> list[Described]:
    """The rows of a section's table."""
    found = []
    for line in section(heading).splitlines():
        row = re.fullmatch(r"\| `(\w+)` \| (counter|gauge|histogram) \| (.*?) \| (.*) \|", line)
        if row is not None:
            name, kind, labels, what = row.groups()
            found.append(Described(name, kind, tuple(re.findall(r"`(\w+)`", labels)), what))  # type: ignore[arg-type]
    return found


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
