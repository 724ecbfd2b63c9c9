"""What a check has found: fine, worth a look, or broken; and then what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Verdict = Literal["ok", "look", "broken"]
MARKS: dict[Verdict, str] = {"ok": "✓", "look": "!", "broken": "✗"}
MOST_EFFECTS = 3
"""What one cause has led to, told with it: a host that is frozen may hold up fifty zones."""


@dataclass(frozen=True)
class Finding:
    """One line. Invariant: there is a remedy unless all is well."""

    check: str
    verdict: Verdict
    text: str
    remedy: str = ""
    explains: frozenset[str] = field(default=frozenset(), kw_only=True, compare=False)
    """What is in trouble because of it: `cloud`, `edge ash`, `devices of ash`."""
    of: frozenset[str] = field(default=frozenset(), kw_only=True, compare=False)
    """Whose trouble it tells of, by the same names: one of these explains it."""

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


def by_cause(findings: Sequence[Finding]) -> list[Finding]:
    """One finding a cause: what a cause explains is told with it, and no more on its own. It is as bad as the worst.

    What is broken goes before what is only worth a look: who was just started again may be well by now.
    """
    causes = sorted(
        (finding for finding in findings if finding.verdict != "ok"), key=lambda finding: finding.verdict != "broken"
    )
    told: dict[int, list[Finding]] = {}
    kept: list[Finding] = []
    for finding in findings:
        cause = next((other for other in causes if other is not finding and other.explains & finding.of), None)
        if cause is None:
            kept.append(finding)
        else:
            told.setdefault(id(cause), []).append(finding)
    return [_with_effects(finding, told.get(id(finding), [])) for finding in kept]


def _with_effects(cause: Finding, effects: list[Finding]) -> Finding:
    if not effects:
        return cause
    named = [f"{effect.check}: {effect.text}" for effect in effects[:MOST_EFFECTS]]
    more = len(effects) - MOST_EFFECTS
    text = "; ".join([f"{cause.text}. So {named[0]}", *named[1:], *([f"and {more} more"] if more > 0 else [])])
    return replace(cause, verdict="broken" if is_broken([cause, *effects]) else "look", text=text)


def is_broken(findings: Iterable[Finding]) -> bool:
    """Whether anything is."""
    return any(finding.verdict == "broken" for finding in findings)
