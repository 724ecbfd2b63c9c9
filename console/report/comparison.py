"""One entry against another, zone by zone (method 9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from console.formats import mean
from console.report.measure import Measure
from console.report.statistics import PairedTest, Won, paired_test, zones_won
from console.report.suite_results import Entry, SuiteResults

TOTAL = "all data"
"""All data sets together; no data set has a space in its name."""


@dataclass(frozen=True)
class Comparison:
    """One entry against another on some zones: each zone's value averaged over seeds, and its values by seed."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    by_seed: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]

    def won(self, measure: Measure) -> Won:
        """Zones won by the values averaged over the seeds."""
        return zones_won(_costs(self.ours, measure), _costs(self.theirs, measure))

    def won_by_seed(self, measure: Measure) -> list[Won]:
        """Zones won in each seed on its own."""
        return [zones_won(_costs(ours, measure), _costs(theirs, measure)) for ours, theirs in self.by_seed]

    def test(self, measure: Measure) -> PairedTest:
        """Whether the values averaged over the seeds differ by more than chance."""
        return paired_test(_costs(self.ours, measure), _costs(self.theirs, measure))

    def gain(self, measure: Measure) -> float:
        """By what share our values are better, in the mean over zones."""
        return mean([measure.gain(ours, theirs) for ours, theirs in zip(self.ours, self.theirs, strict=True)])

    def joined(self, other: "Comparison") -> "Comparison":
        """The two on the zones of both, seed by seed: that of several data sets."""
        by_seed = zip(self.by_seed, other.by_seed, strict=True)
        return Comparison(
            self.ours + other.ours, self.theirs + other.theirs, tuple((a + c, b + d) for (a, b), (c, d) in by_seed)
        )


def compared_with(results: SuiteResults) -> list[Entry]:
    """The entries that all others are compared with: the reference, and χ-SGFusion as in the paper."""
    reference = results.suite.reference
    chi = [entry for entry in results.suite.entries if entry.method == "chi-sgfusion" and entry is not reference]
    return [entry for entry in (reference, *chi[:1]) if any((d, entry.name) in results.runs for d in results.data)]


def compare(results: SuiteResults, ours: Entry) -> dict[str, dict[str, Comparison]]:
    """By the other entry's name and then by data set, those where both are complete.

    The total comes last, for others that are complete wherever ours is: totals over other data would not compare.
    """
    found: dict[str, dict[str, Comparison]] = {}
    places = [data for data in results.data if (data, ours.name) in results.runs]
    for other in results.suite.entries:
        shared = [data for data in places if (data, other.name) in results.runs]
        if other is not ours and shared:
            found[other.name] = {data: _compare(results, data, ours, other) for data in shared}
            if shared == places:
                found[other.name][TOTAL] = reduce(Comparison.joined, found[other.name].values())
    return found


def _compare(results: SuiteResults, data: str, ours: Entry, other: Entry) -> Comparison:
    measure, zones = results.suite.measure, results.zones(data)
    by_seed = tuple(
        (tuple(a.values(measure, zones)), tuple(b.values(measure, zones)))
        for a, b in zip(results.runs[data, ours.name], results.runs[data, other.name], strict=True)
    )
    return Comparison(
        tuple(mean(values) for values in zip(*(seed[0] for seed in by_seed), strict=True)),
        tuple(mean(values) for values in zip(*(seed[1] for seed in by_seed), strict=True)),
        by_seed,
    )


def _costs(values: Sequence[float], measure: Measure) -> list[float]:
    return [measure.cost(value) for value in values]
