"""The controls of what the dendrogram does (method 9): which of a suite's entries they are."""

from collections.abc import Iterable
from typing import Any

from console.report.suite_results import Entry


def control_of(entries: Iterable[Entry], reference: Entry, method: str = "random") -> Entry | None:
    """The entry of Random (or Shuffled) with the reference's settings; None if there is none.

    It draws as many zones as the reference's sharing probabilities give in expectation, so only with the same ones, and
    with all else the same, does it tell what they are worth.
    """
    matched = (e for e in entries if e.method == method and e is not reference and _shared(e) == _shared(reference))
    return next(matched, None)


def _shared(entry: Entry) -> dict[str, Any]:
    """The settings but for those of the sampler, which is what differs."""
    return {key: value for key, value in entry.settings.items() if key.partition(".")[0] != "sampler"}
