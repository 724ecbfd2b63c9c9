"""The control of random draws (method 9): which of a suite's entries it is."""

from collections.abc import Iterable
from typing import Any

from console.report.suite_results import Entry

TREE = ("task", "histogram", "hrg")
"""The sections of the run file that the sharing probabilities follow from, but for data: that is the same for all."""


def control_of(entries: Iterable[Entry], reference: Entry) -> Entry | None:
    """The entry of Random with the reference's sharing probabilities; None if there is none.

    Random draws as many zones as they give in expectation, so only with the same ones is it a control of what they are
    worth. Of several, one that differs from the reference in nothing else, or else the first.
    """
    matched = [e for e in entries if e.method == "random" and e is not reference and _tree(e) == _tree(reference)]
    return min(matched, key=lambda entry: entry.settings != reference.settings, default=None)


def _tree(entry: Entry) -> dict[str, Any]:
    return {key: value for key, value in entry.settings.items() if key.partition(".")[0] in TREE}
