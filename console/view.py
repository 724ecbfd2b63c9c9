"""`sgfusion view`: a finished run in the browser."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

# As in main.py, what a command needs is imported as it runs.


def view(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder of simulate, up or follow.")],
    *,
    page: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where to serve; loopback addresses only. By default 127.0.0.1:7080, or any port if that is taken.",
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")] = False,
) -> None:
    """Show a finished run on a page: its map, dendrogram, learning curves. Ctrl-C ends it."""
    from console.viewing import view as serve  # noqa: PLC0415

    serve(folder, page, browser=open_browser, screen=Console())
