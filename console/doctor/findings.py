"""What a check has found: fine, worth a look, or broken; and then what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "look", "broken"]
MARKS: dict[Verdict, str] = {"ok": "✓", "look": "!", "broken": "✗"}


@dataclass(frozen=True)
class Finding:
    """One line. Invariant: there is a remedy unless all is well."""

    check: str
    verdict: Verdict
    text: str
    remedy: str = ""

    def __post_init__(self) -> None:
        if (self.verdict == "ok") == bool(self.remedy):
            raise ValueError(f"{self}: a remedy is for what is not well")


def ok(check: str, text: str) -> Finding:
    """All is well."""
    return Finding(check, "ok", text)


def look(check: str, text: str, remedy: str) -> Finding:
    """It works, or may; somebody should know."""
    return Finding(check, "look", text, remedy)


def broken(check: str, text: str, remedy: str) -> Finding:
    """It does not work."""
    return Finding(check, "broken", text, remedy)


def is_broken(findings: Iterable[Finding]) -> bool:
    """Whether anything is."""
    return any(finding.verdict == "broken" for finding in findings)
