"""`sgfusion up`, `status`, `export` and `predict`: a cluster and its models in an operator's hands."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

# As in main.py, what a command needs is imported as it runs.

Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in hrg.schedule=paper.")
]


def up(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")],
    *,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Results folder; results/<name> by default.")] = None,
    hosts: Annotated[
        int | None, typer.Option(min=1, help="Processes that devices share; by default as many as cores.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain text on loopback, no certificates.")] = False,
    alone: Annotated[bool, typer.Option(help="Train zones alone too, in the simulator, to compare with.")] = True,
) -> None:
    """Train a run on a cluster of local processes: a cloud, an edge for each zone, their devices. Shows it live.

    Ctrl-C stops all of them; the same command then goes on where it was. The results folder is that of `simulate`.
    """
    from console.main import import_from_here  # noqa: PLC0415
    from console.run_argument import load_one_run  # noqa: PLC0415

    import_from_here()
    screen = Console()
    run = load_one_run(run_file, overrides or ())
    folder = out or Path("results") / run.name
    screen.print(f"{run.name}: a cluster on this machine, in {folder}", highlight=False, soft_wrap=True)
    from console.up import Asked  # noqa: PLC0415 (torch: seconds, so the line above comes first)
    from console.up import up as train_and_write  # noqa: PLC0415
    from simulator.pool import cores  # noqa: PLC0415

    try:
        train_and_write(run, Asked(folder, hosts or cores(), secure=not insecure, alone=alone), screen)
    except KeyboardInterrupt:
        screen.print(
            "stopped. Finished rounds are kept: run the same command again to go on", highlight=False, soft_wrap=True
        )
        raise typer.Exit(130) from None
