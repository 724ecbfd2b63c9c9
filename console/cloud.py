"""`sgfusion cloud`: the cloud as a process of its own."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from sgfusion.errors import InputError

# As in main.py, what a command needs is imported as it runs.


def cloud(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file; it names the zones.")],
    *,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in quorum.zones=0.8.")
    ] = None,
    state: Annotated[
        Path, typer.Option(metavar="DIR", help="All that it knows; started again with the same, it goes on.")
    ] = Path("state/cloud"),
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to serve; port 0 takes any.")
    ] = "127.0.0.1:7070",
    certs: Annotated[Path | None, typer.Option(metavar="DIR", help="Its own ca.crt, tls.crt and tls.key.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain text; loopback addresses only.")] = False,
    lease: Annotated[
        float,
        typer.Option(min=0.1, max=86_400.0, metavar="SECONDS", help="Without a report a zone is lost after this."),
    ] = 30.0,
) -> None:
    """Serve a run: its zones, its dendrogram, its plans and reports. Killed at any moment, it loses nothing."""
    import numba  # noqa: F401, PLC0415 (missing, it should be missed now and not when all zones have come)

    from cloud.main import run_cloud  # noqa: PLC0415
    from sgfusion.runfile import load_run_file  # noqa: PLC0415
    from sgfusion.wire.channel import Keys  # noqa: PLC0415
    from sgfusion.wire.identity import Identity  # noqa: PLC0415
    from sgfusion.wire.service import setup_logging  # noqa: PLC0415

    if insecure == (certs is not None):
        raise InputError("give --certs DIR (made by `sgfusion certs`), or --insecure on a loopback address")
    run = load_run_file(run_file, overrides or ())
    keys = None if certs is None else Keys.load(certs, Identity("cloud"))
    setup_logging("sgfusion.cloud")
    asyncio.run(
        run_cloud(
            run,
            state=state,
            listen=listen,
            keys=keys,
            lease=lease,
            serving=lambda address: print(f"cloud of {run.name}: serves at {address}", flush=True),
        )
    )
