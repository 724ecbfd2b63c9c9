"""The `sgfusion` command."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from console.demo import Demonstration, demonstrate
from console.progress import phases
from sgfusion.errors import SGFusionError
from sgfusion.runfile import load_run_file

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

RunPath = Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in hrg.schedule=paper.")
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it)
    if wanted:
        print(version("sgfusion"))
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
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
    with phases(screen) as progress:
        found = demonstrate(run, folder, progress)
    screen.print(_table(found))
    screen.print(_outcome(found, folder), highlight=False, soft_wrap=True)


def _table(found: Demonstration) -> Table:
    table = Table(title="RMSE on samples kept apart, zones in the dendrogram's order", title_justify="left")
    table.add_column("zone", overflow="fold", max_width=24)  # the one column that gives way on a narrow screen
    for heading in ("before", "alone", "SGFusion", "gain", "drawn"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=max(len(heading), 6))
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
        f"Dendrogram: L = {found.fit.loss:.4f} after {found.fit.moves:,} moves ({ended});"
        f" {found.drawn_per_round.mean():.1f} zones drawn a round.\n"
        f"Results in {folder}" + (f"; look at {folder / 'dendrogram.png'}." if len(found.zones) > 1 else ".")
    )


def main() -> None:
    """Run the command; an error of ours is a message, not a traceback."""
    try:
        app()
    except SGFusionError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _fail(message: str) -> NoReturn:
    Console(stderr=True).print(Text.assemble(("error: ", "red"), message), soft_wrap=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
