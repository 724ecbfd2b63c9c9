"""Zones won in the paper's shape, one entry against each other, and the paired tests behind it (methods 9 and 10)."""

from collections.abc import Callable
from dataclasses import dataclass

from console.formats import deviation, file_stem, mean, p_value, percent
from console.report.comparison import TOTAL, Comparison, compare
from console.report.measure import Measure
from console.report.statistics import FEWEST, holm
from console.report.suite_results import Entry, SuiteResults
from console.report.tables import Cell, Column, Table

_PAIRED = "Two-sided tests over zones paired by name"
_NOTE = (
    "; corrected by Holm over the entries compared, within a data set. Mean gain: by how much the zones' values are"
    " better than the other's, in the mean over zones. Bold: p < 0.05 after correction, in whichever direction. Zones"
    " share gradients and are not independent of each other: read p as a guide."
)


def won_tables(results: SuiteResults, ours: Entry) -> list[Table]:
    """Zones won by averaged values, the same by seed, and the paired tests; none if there is nobody to compare with."""
    comparisons = compare(results, ours)
    data = [name for name in results.data if any(name in by_data for by_data in comparisons.values())]
    places = (*data, TOTAL) if len(data) > 1 else tuple(data)
    titles = {entry.name: entry.title for entry in results.suite.entries}
    shown = {place: results.suite.shown(place) for place in places}
    against = _Against(ours, comparisons, shown, titles, results.suite.measure, len(results.suite.seeds))
    return [against.won(), against.won_by_seed(), against.tests()] if comparisons else []


@dataclass(frozen=True)
class _Against:
    """One entry against all others, in the data sets and all together: `places`, with the names they are shown by."""

    ours: Entry
    comparisons: dict[str, dict[str, Comparison]]
    places: dict[str, str]
    titles: dict[str, str]
    measure: Measure
    seeds: int

    def won(self) -> Table:
        averaged = " averaged over the seeds" if self.seeds > 1 else ""
        title = f"Zones won, {self.ours.title} : the other, by each zone's test {self.measure.name}{averaged}"
        return self._shaped("zones-won", title, ("won", "lost", "tied"), self._won)

    def won_by_seed(self) -> Table:
        title = f"Zones won, {self.ours.title} : the other, counted in each seed: mean ± deviation of the zones won"
        return self._shaped("zones-won-by-seed", title, ("won", "lost", "tied", "won_deviation"), self._won_by_seed)

    def tests(self) -> Table:
        """A row for each data set and other entry; Holm's correction is over the other entries of a data set."""
        rows: list[tuple[Cell, ...]] = []
        for place, name in self.places.items():
            here = {other: by_data[place] for other, by_data in self.comparisons.items() if place in by_data}
            tests = [comparison.test(self.measure) for comparison in here.values()]
            ranks, signs = holm([test.wilcoxon for test in tests]), holm([test.sign for test in tests])
            for (other, comparison), test, rank, sign in zip(here.items(), tests, ranks, signs, strict=True):
                won, gain = comparison.won(self.measure), comparison.gain(self.measure)
                small = f"fewer than {FEWEST} zones differ: not meaningful" if test.wilcoxon is None else ""
                rows.append(
                    (
                        Cell(name, (name,)),
                        Cell(self.titles[other], (other,)),
                        Cell(str(len(comparison.ours)), (len(comparison.ours),)),
                        Cell(str(won), (won.won, won.lost, won.tied)),
                        Cell(percent(gain), (gain,)),
                        Cell(p_value(test.wilcoxon), (test.wilcoxon,)),
                        Cell(p_value(rank), (rank,), bold=rank is not None and rank < 0.05),
                        Cell(p_value(test.sign), (test.sign,)),
                        Cell(p_value(sign), (sign,), bold=sign is not None and sign < 0.05),
                        Cell(small, (small,)),
                    )
                )
        columns = (
            Column("data", ("data",), left=True),
            Column("against", ("against",), left=True),
            Column("zones", ("zones",)),
            Column("won", ("won", "lost", "tied")),
            Column("mean gain", ("mean_gain",)),
            Column("Wilcoxon p", ("wilcoxon_p",)),
            Column("Holm", ("wilcoxon_p_holm",)),
            Column("sign test p", ("sign_p",)),
            Column("Holm", ("sign_p_holm",)),
            # The reason why a test is missing; a column to read only where there is one.
            Column("note" if any(row[-1].text for row in rows) else "", ("note",), left=True),
        )
        title = f"Paired tests, {self.ours.title} against each other entry"
        note = _PAIRED + (", each zone's value averaged over the seeds" if self.seeds > 1 else "") + _NOTE
        return Table(file_stem("paired-tests", self.ours.name), title, columns, tuple(rows), (note,))

    def _shaped(self, name: str, title: str, keys: tuple[str, ...], cell: Callable[[Comparison], Cell]) -> Table:
        """The other entries downwards, the data sets and their total across."""
        columns = (
            Column("against", ("against",), left=True),
            *(Column(place, tuple(f"{file_stem(place)}_{key}" for key in keys)) for place in self.places.values()),
        )
        nothing = Cell("", (None,) * len(keys))
        rows = tuple(
            (
                Cell(self.titles[other], (other,)),
                *(cell(by_data[place]) if place in by_data else nothing for place in self.places),
            )
            for other, by_data in self.comparisons.items()
        )
        notes = ("Bold: more zones won than lost.",) if any(cell.bold for row in rows for cell in row) else ()
        return Table(file_stem(name, self.ours.name), title, columns, rows, notes)

    def _won(self, comparison: Comparison) -> Cell:
        won = comparison.won(self.measure)
        return Cell(str(won), (won.won, won.lost, won.tied), bold=won.won > won.lost)

    def _won_by_seed(self, comparison: Comparison) -> Cell:
        seeds = comparison.won_by_seed(self.measure)
        won, lost, tied = ([float(getattr(seed, key)) for seed in seeds] for key in ("won", "lost", "tied"))
        around = deviation(won)
        text = f"{mean(won):.1f}:{mean(lost):.1f}" + ("" if around is None else f" ± {around:.1f}")
        if any(tied):
            text += f" ({mean(tied):.1f} tied)"
        return Cell(text, (mean(won), mean(lost), mean(tied), around))
