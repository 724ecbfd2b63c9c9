"""The report of a suite: which tables and figures, in which order, with which words."""

from collections.abc import Callable, Iterator
from itertools import chain

from console.figures import zone_tree_figure
from console.formats import counted, file_stem, listed
from console.report.comparison import compared_with
from console.report.curves import curves_caption, learning_curves
from console.report.document import Block, Command, Document, Heading, Paragraph, Picture, Points, Shown
from console.report.draws import drawing_entries, draws_figure
from console.report.findings import findings
from console.report.histogram import histogram_figure
from console.report.main_table import main_table
from console.report.other_tables import data_table, notes_on
from console.report.suite_results import Suite, SuiteResults
from console.report.sweeps import epsilon_sweep, sweep_figure, top_k_sweep
from console.report.target_table import target_table
from console.report.won_tables import won_tables
from console.report.zone_path import zone_path_figure

Progress = Callable[[str, int, int], None]


def compose(results: SuiteResults, progress: Progress) -> Document:
    """Everything that can be said of what is finished."""
    suite = results.suite
    entries = "1 entry" if len(suite.entries) == 1 else f"{len(suite.entries)} entries"
    subtitle = (
        f"Task {suite.task}, {suite.measure.label}; {_all_data(suite)}; {entries}, {counted(len(suite.seeds), 'seed')}"
    )
    blocks: list[Block] = []
    parts = (_opening(results), *(_data_set(results, data) for data in results.data), _comparisons(results))
    steps = 8 * len(results.data) + 12  # at most: figures are what takes its time
    for block in chain.from_iterable(parts):
        blocks.append(block)
        progress("tables and figures", min(len(blocks), steps), steps)
    return Document(f"Suite {suite.name}", subtitle, tuple(blocks))


def _all_data(suite: Suite) -> str:
    """The data sets, with what nobody must overlook: once for all, or beside each name where some are real."""
    if suite.synthetic >= set(suite.data):
        return f"SYNTHETIC data: {listed(suite.data)}"
    return f"data: {listed([suite.shown(data) for data in suite.data])}"


def _opening(results: SuiteResults) -> Iterator[Block]:
    suite = results.suite
    made_up = [data for data in suite.data if data in suite.synthetic]
    if made_up:
        whose = "The data" if len(made_up) == len(suite.data) else f"The data of {listed(made_up)}"
        here = "here" if len(made_up) == len(suite.data) else "there"
        yield Paragraph(
            f"{whose} is synthetic: generated, not measured. No number {here} is about real people.", "warning"
        )
    if results.missing:
        yield Paragraph(
            "The suite is not finished. Tables and figures are of complete pairs of a data set and an entry only."
            " Missing:",
            "warning",
        )
        yield Points(results.missing, "warning")
    yield Heading("Findings")
    yield Points(tuple(findings(results)))
    better = "lower" if suite.measure.lower_is_better else "higher"
    yield Paragraph(
        f"{suite.measure.name}: {better} is better. Models are chosen on the validation split, never on the test split."
        " A mean over zones counts every zone the same; a pooled value counts every label the same."
        f" {_on_seeds(suite)} Device gradients and bytes sent are those of a whole run of all zones. Homophily is the"
        " mean distance between a zone's label histogram and those of the zones it drew: the lower, the more alike.",
        "note",
    )
    if suite.command:
        yield Command("Made by:", suite.command)
    yield Heading("Data")
    if results.data:
        yield Shown(data_table(results))
    notes = [f"{suite.shown(data)}: {note}" for data in results.data for note in notes_on(results, data)]
    if notes:
        yield Points(tuple(notes), "note")


def _on_seeds(suite: Suite) -> str:
    """What ± is; a single seed has no deviation, and tells nothing of chance."""
    if len(suite.seeds) == 1:
        return f"All is of one seed, {suite.seeds[0]}: how much chance has a part in it cannot be told."
    return (
        f"± is the standard deviation over the seeds {listed([str(seed) for seed in suite.seeds])}. A seed is that of"
        " first weights, noise and draws, and of what a source makes up or picks; measured samples and splits stay."
    )


def _data_set(results: SuiteResults, data: str) -> Iterator[Block]:
    suite, world, name = results.suite, results.world(data), results.suite.shown(data)
    first = f"seed {suite.seeds[0]}"
    yield Heading(f"Results on {name}")
    yield Shown(main_table(results, data))
    target = target_table(results, data)
    if target is not None:
        yield Shown(target)
    yield Picture(file_stem("learning-curves", data), curves_caption(results, data), learning_curves(results, data))
    if drawing_entries(results, data):
        yield Picture(
            file_stem("draws", data),
            f"Zones drawn a round and homophily on {name}"
            + ("; whiskers are deviations over the seeds." if len(suite.seeds) > 1 else f" ({first})."),
            draws_figure(results, data),
        )
    if len(world.zones) > 1:
        yield Picture(
            file_stem("dendrogram", data),
            f"The dendrogram of {name} and the sharing probabilities it gives, κ = {world.sharpness:g} ({first})."
            " A node stands at its own mean distance; where that is less than a lower node's, lines cross.",
            zone_tree_figure(name, world.tree, world.probabilities, world.sharpness, "png", "svg"),
        )
        zone = world.zones.index(world.example.zone) if world.example else 0
        yield Picture(
            file_stem("probabilistic-dendrogram", data),
            f"The probabilistic dendrogram of {world.zones[zone]}, {name}: its ancestors from the nearest to the root,"
            f" with the zones that hang off each, κ = {world.sharpness:g} ({first}).",
            zone_path_figure(name, world, zone),
        )
    if world.example:
        yield Picture(
            file_stem("histogram", data),
            f"{name}: a device's label histogram before and after the noise of the Laplace mechanism ({first}).",
            histogram_figure(name, world, world.example, suite.measure.unit if suite.measure.root else ""),
        )


def _comparisons(results: SuiteResults) -> Iterator[Block]:
    for entry in compared_with(results) if results.data else ():
        tables = won_tables(results, entry)
        if tables:
            won, by_seed, tests = tables
            yield Heading(f"Zones won by {entry.title}")
            yield Shown(won)
            if len(results.suite.seeds) > 1:
                yield Shown(by_seed)
            yield Shown(tests, folded=len(tests.rows) > 30)
    for heading, sweep in (
        ("Stochastic versus deterministic", top_k_sweep(results) if results.data else None),
        ("Privacy and utility", epsilon_sweep(results) if results.data else None),
    ):
        if sweep is not None:
            yield Heading(heading)
            yield Picture(
                sweep.key,
                f"{sweep.title}: mean over zones of {results.suite.measure.label} on the test split,"
                f" {_over_seeds(results)}; lines without dots are the entries named in the legend.",
                sweep_figure(results, sweep),
            )


def _over_seeds(results: SuiteResults) -> str:
    """What dots, whiskers and bands are; one seed has no deviation."""
    seeds = results.suite.seeds
    return "mean and deviation over seeds" if len(seeds) > 1 else f"seed {seeds[0]}"
