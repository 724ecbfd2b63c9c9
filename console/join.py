"""`sgfusion join`: its command line."""

from typing import Annotated

import typer
from rich.console import Console

from console.interruption import interruptible
from console.operate import Folder

# As in main.py, what a command needs is imported as it runs.


def join(
    folder: Folder = None,
    *,
    zone: Annotated[str, typer.Option(metavar="Z", help="The zone that joins.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Another value for the new zone, as in data.path=more.csv."),
    ] = None,
) -> None:
    """Add a zone to a cluster that `sgfusion up` runs: its edge and its devices, as processes of this machine.

    Type it in another terminal. It ends with the run; Ctrl-C takes the zone out again.
    """
    from console.main import import_from_here  # noqa: PLC0415
    from console.reach import running  # noqa: PLC0415

    import_from_here()
    local = folder or running()
    screen = Console()
    try:
        with interruptible():
            with screen.status("loading"):
                from console.joining import join as join_and_watch  # noqa: PLC0415 (torch takes seconds)
            join_and_watch(local, zone, overrides or (), screen)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
