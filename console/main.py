"""The `sgfusion` command."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from console.demo import Demonstration, demonstrate
from sgfusion.errors import SGFusionError
from sgfusion.runfile import load_run_file

app = typer.Typer(no_args_is_help=True, add_completion=False, help="One model per zone; alike zones share gradients.")

RunPath = Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in hrg.schedule=paper.")
]


@app.callback()
def _root() -> None:
    """One model per zone; alike zones share gradients."""


@app.command()
def demo(
    run_file: RunPath,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="Results folder; results/<name> by default.")] = None,
) -> None:
    """Fit, draw and fuse on generated zones, in one process."""
    run = load_run_file(run_file, overrides or ())
    folder = out or Path("results") / run.name
    screen = Console()
    columns = (TextColumn("{task.description:20}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bars:
        tasks = {}

        def progress(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        found = demonstrate(run, folder, progress)
    screen.print(_table(found))
    screen.print(_outcome(found, folder), highlight=False, soft_wrap=True)


def _table(found: Demonstration) -> Table:
    table = Table(title="RMSE on samples kept apart", title_justify="left")
    table.add_column("zone", no_wrap=True)
    for heading in ("before", "alone", "SGFusion", "gain", "drawn a round"):
        table.add_column(heading, justify="right")
    for z in found.fit.dendrogram.leaf_order:
        gain = 1 - found.fused[z] / found.alone[z]
        table.add_row(
            found.zones[z],
            f"{found.before[z]:.2f}",
            f"{found.alone[z]:.3f}",
            f"{found.fused[z]:.3f}",
            f"[{'green' if gain > 0 else 'red'}]{gain:+.1%}",
            f"{found.drawn_per_round[z]:.1f}",
        )
    return table


def _outcome(found: Demonstration, folder: Path) -> str:
    won = int((found.fused < found.alone).sum())
    ended = "converged" if found.fit.converged else "stopped at its cap on moves"
    return (
        f"SGFusion beats training alone in {won} of {len(found.zones)} zones;"
        f" mean RMSE {found.alone.mean():.3f} alone, {found.fused.mean():.3f} with SGFusion.\n"
        f"Dendrogram: L = {found.fit.loss:.4f} after {found.fit.moves:,} moves ({ended}).\n"
        f"Results in {folder}; look at {folder / 'dendrogram.png'}."
    )


def main() -> None:
    """Run the command; an error of ours is a message, not a traceback."""
    try:
        app()
    except SGFusionError as error:
        Console(stderr=True).print(Text.assemble(("error: ", "red"), str(error)), soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
