"""How fast and how well the dendrogram is fitted: `make bench`.

For each number of zones, in a process of its own: the annealed fit beside SciPy's average linkage and beside the
paper's schedule, on the same distances. Then one fit beside Debian's libigraph, where it is installed. Writes a table
(`hrg.md`, `hrg.csv`) and a plot (`hrg.png`) to the results folder.
"""

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Column, Table
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from benchmarks import igraph_hrg
from benchmarks.hrg_plot import plot_cost
from sgfusion.distance import zone_distances
from sgfusion.hrg import fit_dendrogram, sample_chain

SIZES = (16, 32, 115, 500, 1000, 4000)
IGRAPH_NODES, IGRAPH_MOVES, IGRAPH_SEEDS = 100, 500_000, 5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """What was measured for one number of zones. Seconds are CPU seconds, all with compiled code at hand."""

    zones: int
    fit_s: float
    linkage_s: float
    moves: int
    acceptance: float
    fit_moves_per_s: float
    hot_moves_per_s: float
    """At temperature infinity, where every move is accepted and costs O(|Z|): the worst case."""
    converged: bool
    loss: float
    linkage_loss: float
    paper_loss: float
    paper_acceptance: float
    peak_mb: float


def generated_distances(zones: int, seed: int = 1) -> Floats:
    """Distances between zones whose labels are heart rates: a level and a spread for each zone, and some noise."""
    random = np.random.default_rng(seed)
    level, spread = random.normal(140, 12, zones)[:, None], random.uniform(10, 25, zones)[:, None]
    bins = np.linspace(60, 220, 40)
    mass = np.exp(-0.5 * ((bins - level) / spread) ** 2) + 0.02 * random.random((zones, len(bins)))
    return zone_distances(mass / mass.sum(axis=1, keepdims=True))


def measure(zones: int) -> Row:
    """One number of zones, in this process."""
    _warm_up()
    distances = generated_distances(zones)
    linkage_s, tree = _timed(lambda: linkage(squareform(distances, checks=False), "average"))
    fit_s, fit = _timed(lambda: fit_dendrogram(distances, seed=1))
    hot_moves = 500_000 if zones < 1000 else 50_000
    hot_s = _chain_seconds(distances, np.inf, hot_moves)
    paper = fit_dendrogram(distances, seed=1, schedule="paper", max_moves=min(fit.moves, 200 * 100 * zones))
    return Row(
        zones=zones,
        fit_s=fit_s,
        linkage_s=linkage_s,
        moves=fit.moves,
        acceptance=fit.acceptance,
        fit_moves_per_s=fit.moves / fit_s,
        hot_moves_per_s=hot_moves / hot_s,
        converged=fit.converged,
        loss=fit.loss,
        linkage_loss=float(tree[:, 2].sum()),
        paper_loss=paper.loss,
        paper_acceptance=paper.acceptance,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def beside_igraph() -> str:
    """One line on igraph's HRG of a graph with as many nodes; it has another loss, so only costs compare."""
    if not igraph_hrg.available():
        return "libigraph is not installed (apt-get install libigraph3): not compared."
    _warm_up()
    distances = generated_distances(IGRAPH_NODES)
    near = distances < np.median(distances)
    np.fill_diagonal(near, val=False)
    theirs = igraph_hrg.fit_hrg(near, seed=1, steps=IGRAPH_MOVES).seconds
    ours = _chain_seconds(distances, 1.0, IGRAPH_MOVES)
    settled = [igraph_hrg.fit_hrg(near, seed=seed).seconds for seed in range(IGRAPH_SEEDS)]
    fitted = [_timed(lambda seed=seed: fit_dendrogram(distances, seed=seed))[0] for seed in range(IGRAPH_SEEDS)]  # type: ignore[misc]
    return (
        f"Beside libigraph's HRG (C), {IGRAPH_NODES} nodes, the graph of distances below the median: a move at"
        f" temperature 1 costs {ours / IGRAPH_MOVES * 1e9:.0f} ns here and {theirs / IGRAPH_MOVES * 1e9:.0f} ns there"
        f" (ratio {theirs / ours:.1f}); a whole fit takes {statistics.median(fitted):.2f} CPU-seconds here and"
        f" {statistics.median(settled):.2f} ({min(settled):.2f} to {max(settled):.2f}) there until it calls its walk"
        f" settled (median of {IGRAPH_SEEDS} seeds). igraph fits the likelihood of an unweighted graph: costs compare,"
        " losses do not."
    )


def _chain_seconds(distances: Floats, temperature: float, moves: int) -> float:
    """The time that `moves` moves take; the chain is set up, and on its way, before the clock starts."""
    chain = sample_chain(distances, seed=1, temperature=temperature, moves=2 * moves, thin=moves)
    next(chain)
    return _timed(lambda: next(chain))[0]


def _warm_up() -> None:
    """Load compiled code, so that no measurement has it in."""
    few = generated_distances(8)
    fit_dendrogram(few, seed=0, max_moves=10)
    list(sample_chain(few, seed=0, temperature=1, moves=1))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def _in_own_process(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.hrg", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 (ourselves)


LEGEND = (
    "fit s: CPU seconds until the search converged. M/s: million proposals a second in the fit; hot: with every one"
    " accepted. to linkage, paper's: loss above (+) or below (-) that of SciPy's average linkage, of the fit and of the"
    " paper's schedule. MB: peak memory of the whole process."
)


def as_table(rows: Sequence[Row]) -> list[list[str]]:
    """Heading and cells, as people read them."""
    heading = ["zones", "fit s", "moves M", "M/s", "M/s hot", "loss", "to linkage", "paper's", "MB"]
    cells = [
        [
            str(row.zones),
            f"{row.fit_s:.2f}" + ("" if row.converged else " (capped)"),
            f"{row.moves / 1e6:.1f}",
            f"{row.fit_moves_per_s / 1e6:.1f}",
            f"{row.hot_moves_per_s / 1e6:.2f}",
            f"{row.loss:.4f}",
            f"{row.loss / row.linkage_loss - 1:+.2%}",
            f"{row.paper_loss / row.linkage_loss - 1:+.0%}",
            f"{row.peak_mb:.0f}",
        ]
        for row in rows
    ]
    return [heading, *cells]


def _write(folder: Path, rows: Sequence[Row], peer: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    heading, *cells = as_table(rows)
    lines = [heading, ["---:"] * len(heading), *cells]
    (folder / "hrg.md").write_text(
        "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{LEGEND}\n\n{peer}\n"
    )
    with (folder / "hrg.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    plot_cost(
        folder / "hrg.png",
        zones=[row.zones for row in rows],
        seconds={"annealed fit": [row.fit_s for row in rows], "SciPy average linkage": [row.linkage_s for row in rows]},
        move_ns={
            "in the fit": [1e9 / row.fit_moves_per_s for row in rows],
            "every move accepted": [1e9 / row.hot_moves_per_s for row in rows],
        },
    )


def main() -> None:
    """Measure and report; with `--only`, one part, as JSON or text, for the process that asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--zones", type=int, nargs="+", default=SIZES, help="numbers of zones to measure")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--igraph", action=argparse.BooleanOptionalAction, default=True, help="compare with libigraph")
    parser.add_argument("--only", choices=("row", "igraph"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only == "row":
        print(json.dumps(asdict(measure(arguments.zones[0]))))
        return
    if arguments.only == "igraph":
        print(beside_igraph())
        return
    screen = Console()
    rows = []
    for zones in arguments.zones:
        with screen.status(f"{zones} zones"):
            rows.append(Row(**json.loads(_in_own_process("--only", "row", "--zones", str(zones)))))
        screen.print(f"{zones} zones: {rows[-1].fit_s:.2f} s", highlight=False)
    with screen.status("libigraph"):
        peer = _in_own_process("--only", "igraph") if arguments.igraph else "Not compared with libigraph."
    _write(arguments.out, rows, peer)
    heading, *cells = as_table(rows)
    table = Table(*(Column(name, justify="right") for name in heading), caption=LEGEND, caption_justify="left")
    for line in cells:
        table.add_row(*line)
    screen.print(table)
    screen.print(peer, highlight=False)
    screen.print(f"Written to {arguments.out}: hrg.md, hrg.csv, hrg.png", highlight=False)
    worse = [row.zones for row in rows if row.loss > row.linkage_loss * (1 + 1e-12)]
    if worse:
        sys.exit(f"loss above average linkage's at {worse} zones: the search has lost its start")


if __name__ == "__main__":
    main()
